"""docs/guides/fleet.md with the operator itself. The tests are the steps of one fleet's life, in this order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from localcloud.testing.faults import HeldAnswer
from ops.fleet.tree import NAMESPACE
from tests.engine.held_faults import held
from tests.operator.fleet import HC1, OPERATORS_NAMESPACE, SHARED, STACKS, OperatedFleet, holds, operated

_DRIFTS: Final = (f"{HC1}-drift", f"{SHARED}-drift")
_TRUST: Final = "userAssignedIdentities/hc1-disk-hc1-infra/federatedIdentityCredentials/hc1-disk-fed-id-node"
# Of each run, which the preflight ends before its first resource.
_NO_CLUSTER: Final = HeldAnswer("arm", ("GET", "POST"), "/managedClusters/", status=403, code="AuthorizationFailed")


@pytest.fixture(scope="module")
def fleet(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatedFleet]:
    with operated(release, tmp_path_factory.mktemp("operator")) as fleet:
        fleet.runs_are_of(days=60)
        fleet.render()
        fleet.prepare()
        fleet.idstack("up", "--stack", SHARED, "--yes")
        fleet.apply()
        yield fleet


def test_the_operator_takes_over_the_shared_stack_and_then_brings_up_a_cluster(fleet: OperatedFleet) -> None:
    """Each run has a new workspace, in which the state alone names its key."""
    fleet.settled(HC1, "Ready")

    runs = {stack: fleet.runs(stack) for stack in (SHARED, HC1)}
    assert [len(each) for each in runs.values()] == [1, 1], json.dumps(runs, indent=1)
    [shared], [hc1] = runs.values()
    assert shared["status"]["endTime"] <= hc1["metadata"]["creationTimestamp"]
    assert [set(changes) for changes in fleet.changes(SHARED)] == [{"create"}, {"same"}], "of one machine, then here"
    assert [set(changes) for changes in fleet.changes(HC1)] == [{"create"}]


def test_a_second_apply_changes_nothing(fleet: OperatedFleet) -> None:
    applied = fleet.apply().splitlines() + fleet.apply("--server-side", "--force-conflicts").splitlines()

    assert [line for line in applied if "stack.pulumi.com" in line and "unchanged" not in line] == [
        f"stack.pulumi.com/{stack} serverside-applied" for stack in (SHARED, HC1)
    ]
    assert [stack["metadata"]["generation"] for stack in fleet.objects(STACKS)] == [1, 1]


def test_a_run_renews_what_is_due(fleet: OperatedFleet) -> None:
    before = _thumbprint(fleet.settled(HC1, "Ready"))
    fleet.runs_are_of(days=59)

    fleet.succeeded(HC1)

    assert _thumbprint(fleet.settled(HC1, "Ready")) != before


def test_a_stack_runs_again_once_its_day_is_over(fleet: OperatedFleet) -> None:
    number, minute = len(fleet.runs(SHARED)), '{"spec": {"resyncFrequencySeconds": 60}}'
    fleet.cluster.kubectl("--namespace", NAMESPACE, "patch", "stack", SHARED, "--type=merge", "--patch", minute)

    of_the_patch, by_itself = fleet.ended(SHARED, number), fleet.ended(SHARED, number + 1)

    assert not any(holds(run, "Failed") for run in (of_the_patch, by_itself))


def test_a_change_by_hand_is_a_drift_and_a_due_renewal_is_none(fleet: OperatedFleet) -> None:
    fleet.runs_are_of(days=58)
    fleet.render(drift=True)
    fleet.apply()
    for stack in _DRIFTS:
        fleet.settled(stack, "Ready")
    group = f"/subscriptions/{fleet.cluster.stack.environment.subscription_id}/resourceGroups/identity-local"
    fleet.azure.arm("DELETE", f"{group}/providers/Microsoft.ManagedIdentity/{_TRUST}", "2023-01-31")

    drifted, sound = fleet.run_together(*_DRIFTS)

    assert holds(drifted, "Failed")
    assert "hc1-data-plane-disk-federated-node" in drifted["status"]["message"]
    assert not holds(sound, "Failed")
    both = (drifted, sound)
    ended = [_condition(run, "Complete")["lastTransitionTime"] for run in both]
    assert max(run["metadata"]["creationTimestamp"] for run in both) < min(ended), "one waited for the other"


def test_three_failures_stall_a_stack_and_what_needs_it_waits(fleet: OperatedFleet) -> None:
    with held(fleet.cluster.stack, _NO_CLUSTER):
        fleet.ask(SHARED)
        stalled = fleet.settled(SHARED, "Stalled")
        fleet.ask(HC1)
        waiting = fleet.because(HC1, "Reconciling", "PrerequisiteNotSatisfied")

    assert "up failed 3 times" in _condition(stalled, "Stalled")["message"]
    assert SHARED in _condition(waiting, "Reconciling")["message"]
    fleet.ask(SHARED)
    fleet.settled(SHARED, "Ready")
    fleet.settled(HC1, "Ready")


def test_a_workspace_killed_in_mid_run_stalls_its_stack_until_recover_unlocks_it(fleet: OperatedFleet) -> None:
    fleet.runs_are_of(days=57)
    with fleet.standing(HC1):
        fleet.lose_workspace(HC1)

    fleet.settled(HC1, "Stalled")
    _unlock(fleet)


def test_an_operator_killed_in_mid_run_goes_on_or_stalls_the_stack(fleet: OperatedFleet) -> None:
    """The workspace interrupts the engine and kills it after ten seconds, in which it may have ended by itself."""
    fleet.runs_are_of(days=56)
    with fleet.standing(HC1):
        fleet.force_out(OPERATORS_NAMESPACE, "--all=true")

    if holds(fleet.settled(HC1, "Ready", "Stalled"), "Stalled"):
        _unlock(fleet)
    fleet.succeeded(HC1)
    assert list(fleet.changes(HC1)[-1]) == ["same"]


def test_a_removed_object_leaves_the_stack_to_one_machine(fleet: OperatedFleet) -> None:
    fleet.cluster.kubectl("--namespace", NAMESPACE, "delete", "stack", "--all")
    assert fleet.objects(STACKS) == []

    fleet.idstack("up", "--stack", HC1, "--yes")
    assert list(fleet.changes(HC1)[-1]) == ["same"]

    for stack in (HC1, SHARED):
        fleet.idstack("down", "--stack", stack, "--yes")
        assert {"delete"} <= fleet.changes(stack)[-1].keys() <= {"delete", "discard"}


def _unlock(fleet: OperatedFleet) -> None:
    assert "the stack is currently locked" in fleet.runs(HC1)[-1]["status"]["message"]
    told = fleet.idstack("recover", "--unlock", "--stack", HC1, "--yes")
    assert f"unlocking the stack {HC1}: the process that locked it has ended" in told
    fleet.succeeded(HC1)
    assert list(fleet.changes(HC1)[-1]) == ["same"]


def _condition(stack: dict[str, Any], type_: str) -> dict[str, str]:
    [found] = [each for each in stack["status"]["conditions"] if each["type"] == type_]
    return dict(found)


def _thumbprint(stack: dict[str, Any]) -> str:
    rows = stack["status"]["outputs"]["hostedClusters"]["hc1"]["controlPlane"]
    return str(rows["cloudProvider"]["thumbprint"])
