"""Each injected fault: the check that is named, and that no other is blamed."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from ops.doctor.checks.check import CheckResult, CheckStatus, ExitCode, diagnose, exit_code
from ops.doctor.examination import CHECKS
from ops.world.seen import HostedClusterCondition, StackWorld, Unread, known
from tests.unit.ops.doctor import changes, worlds
from tests.unit.ops.doctor.changes import IMPORTED
from tests.unit.ops.doctor.faults import FAULTS, InjectedFault
from tests.unit.ops.doctor.worlds import CLUSTER

BY_NAME = {fault.name: fault for fault in FAULTS}


def broken(results: list[CheckResult]) -> set[tuple[str | None, str | None, str]]:
    """Cluster, identity and check of everything that is blamed."""
    return {
        (result.cluster, result.identity, result.check) for result in results if result.status is CheckStatus.BROKEN
    }


def examined(world: StackWorld) -> list[CheckResult]:
    return diagnose(world, CHECKS)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_a_fault_is_blamed_on_its_own_check_alone(fault: InjectedFault) -> None:
    results = examined(fault.change(worlds.healthy()))

    assert broken(results) == {fault.blamed}
    assert exit_code(results) is ExitCode.BROKEN
    for result in results:
        assert bool(result.evidence) == (result.status is not CheckStatus.OK)
        assert result.fix or result.status is not CheckStatus.BROKEN


def test_every_check_has_a_fault_that_it_alone_is_blamed_for() -> None:
    assert {fault.check for fault in FAULTS} == {check.name for check in CHECKS}
    assert len(FAULTS) == len(BY_NAME) >= 30


def test_a_stack_that_keeps_nothing_in_a_vault_misses_none() -> None:
    """Its clusters sign in by workload identities: what they have of the stack is among the guests' identities."""
    world = worlds.in_hypershift(worlds.healthy())
    state = known(world.state)
    clusters = tuple(replace(cluster, identities=()) for cluster in state.clusters)
    guests = {cluster.cluster: tuple(one.identity for one in cluster.guests) for cluster in clusters}
    without = replace(state, vault_id="", vault_name="", key_vault_user="", reader_roles=(), clusters=clusters)
    configured = replace(known(world.configuration), identities=guests)
    bare = replace(world, state=without, vault=None, configuration=configured)
    shares_a_vault = replace(world, state=replace(state, reader_roles=(), clusters=clusters), configuration=configured)

    assert exit_code(examined(bare)) is exit_code(examined(shares_a_vault)) is ExitCode.SOUND


@pytest.mark.parametrize(
    "world", [worlds.healthy(), worlds.in_hypershift(worlds.healthy())], ids=["stack", "hypershift"]
)
def test_nothing_is_blamed_on_a_healthy_stack(world: StackWorld) -> None:
    results = examined(world)

    assert {result.status for result in results} <= {CheckStatus.OK, CheckStatus.NOT_CHECKED}
    checked = [result for result in results if result.status is CheckStatus.OK]
    assert len(checked) >= 8 * len(worlds.state(world).identities)


def test_every_check_is_made_where_the_stack_makes_the_cluster_side() -> None:
    results = examined(worlds.with_token_probe(worlds.healthy()))

    assert exit_code(results) is ExitCode.SOUND
    assert {(result.stage, result.check) for result in results} == {(check.stage, check.name) for check in CHECKS}


def test_what_a_fault_breaks_in_later_stages_is_skipped_and_not_blamed() -> None:
    results = examined(BY_NAME["secret deleted"].change(worlds.healthy()))

    behind = [result for result in results if result.status is CheckStatus.SKIPPED]
    assert {result.identity for result in behind} == {IMPORTED}
    assert [result.check for result in behind] == ["mount", "path", "document", "sign-in", "proof-call"]
    assert "SecretNotFound" in behind[0].evidence
    assert not [result for result in results if result.status is CheckStatus.NOT_CHECKED]


@pytest.mark.parametrize(
    ("faults", "blamed"),
    [
        (["registration removed", "secret disabled"], ["secret disabled", "registration removed"]),
        (["registration removed", "secret expired"], ["secret expired"]),
        (["a condition", "secret disabled"], ["secret disabled"]),
        *(
            ([before, "secret disabled"], [before, "secret disabled"])
            for before in ("locked by a run", "a pending operation", "a wrong passphrase", "a refused sign-in")
        ),
    ],
    ids=["two identities", "one identity, the earlier", "a condition of it", *["before the chain"] * 4],
)
def test_a_fault_explains_later_ones_of_its_identity_alone(faults: list[str], blamed: list[str]) -> None:
    world = worlds.healthy()
    for name in faults:
        world = BY_NAME[name].change(world)

    assert broken(examined(world)) == {BY_NAME[name].blamed for name in blamed}


def test_a_fault_of_the_stack_explains_those_of_every_identity() -> None:
    results = examined(BY_NAME["reader's role gone"].change(worlds.healthy()))

    behind = {result.identity for result in results if result.status is CheckStatus.SKIPPED}
    assert behind == {identity.identity for identity in worlds.state(worlds.healthy()).identities}
    world = replace(BY_NAME["a wrong passphrase"].change(worlds.healthy()), state=Unread("no stack named 'x' found"))
    assert broken(examined(world)) == {(None, None, "state")}, "without a state no other fault is blamed"


def with_conditions(*found: tuple[str, str]) -> StackWorld:
    """A cluster of HyperShift's with conditions of these types and statuses."""
    world = worlds.in_hypershift(worlds.healthy())
    seen = known(worlds.plane(world).hosted_cluster)
    assert seen is not None
    conditions = tuple(HostedClusterCondition(CLUSTER, name, status, "Reason", "said") for name, status in found)
    return worlds.with_plane(world, hosted_cluster=replace(seen, conditions=conditions))


def told(world: StackWorld) -> list[tuple[str, str]]:
    """Evidence and fix of what is blamed, in order."""
    return [(result.evidence, result.fix) for result in examined(world) if result.status is CheckStatus.BROKEN]


def test_conditions_that_follow_from_others_are_told_behind_them_as_one() -> None:
    world = with_conditions(
        ("EtcdAvailable", "Unknown"),
        ("Available", "False"),
        ("KubeAPIServerAvailable", "Unknown"),
        ("ValidConfiguration", "False"),
    )

    first, second, consequence = told(world)

    assert first[0] == "ValidConfiguration is False (Reason): said"
    assert second[0] == "Available is False (Reason): said"
    assert consequence == (
        "a consequence of ValidConfiguration: HyperShift does not know yet about EtcdAvailable, KubeAPIServerAvailable",
        "correct ValidConfiguration, then run the doctor again",
    )


def test_conditions_that_nobody_knows_yet_are_told_each_if_there_is_no_cause() -> None:
    found = told(with_conditions(("EtcdAvailable", "Unknown"), ("KubeAPIServerAvailable", "Unknown")))

    assert [evidence.partition(" ")[0] for evidence, _ in found] == ["EtcdAvailable", "KubeAPIServerAvailable"]


@pytest.mark.parametrize("name", ["no cloud configuration", "a container that crashes"])
def test_what_hypershift_makes_is_not_repaired_by_the_stack(name: str) -> None:
    world = worlds.in_hypershift(worlds.healthy())

    [(_, fix)] = told(BY_NAME[name].change(world))

    assert world.repair not in fix
    assert "HyperShift creates" in fix


@pytest.mark.parametrize(("interval", "is_old"), [("2m", True), ("39m1s", False), ("38m", True), ("1h", False)])
def test_a_mount_is_old_only_after_the_drivers_own_interval(interval: str, is_old: bool) -> None:
    """The vault has had the later version for 47 minutes."""
    world = changes.old_version(changes.add_on(rotationPollInterval=interval)(worlds.healthy()))

    assert broken(examined(world)) == ({BY_NAME["rotation fails"].blamed} if is_old else set())


@pytest.mark.parametrize("add_on", [None, Unread("403: you may not")], ids=["none", "unread"])
def test_a_mount_is_not_called_old_where_nobody_tells_the_interval(add_on: Unread | None) -> None:
    world = replace(changes.old_version(worlds.healthy()), add_on=add_on)

    assert "mount" not in {result.check for result in examined(world) if result.status is CheckStatus.BROKEN}


def unread(world: StackWorld, why: str, *parts: str) -> StackWorld:
    """Nothing of these parts of the world could be read."""
    changes: dict[str, Any] = {
        part: dict.fromkeys(found, Unread(why)) if isinstance(found := getattr(world, part), dict) else Unread(why)
        for part in parts
    }
    return replace(world, **changes)


def test_without_a_state_there_is_one_finding_and_nothing_else_to_look_at() -> None:
    parts = {field.name for field in fields(StackWorld)} - {"stack", "now"}

    results = examined(unread(worlds.healthy(), "error: unable to open state directory", *parts))

    assert broken(results) == {(None, None, "state")}
    assert {result.status for result in results} == {CheckStatus.BROKEN, CheckStatus.SKIPPED}


def test_what_cannot_be_read_because_of_a_fault_is_a_consequence_of_it() -> None:
    refused = BY_NAME["a refused sign-in"]

    results = examined(unread(refused.change(worlds.healthy()), "not read", "control_planes"))

    assert broken(results) == {refused.blamed}
    assert not [result for result in results if result.status is CheckStatus.NOT_CHECKED]
