"""A run ends when it has made the namespace, and HyperShift gets a control plane there: whatever follows keeps it."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.apiserver.hosted_control_plane import NAMESPACE, PLANES, control_plane
from tests.engine.small_stack import small_stack
from tests.harness import LocalStack

HOLDS = 'clusters-hc1 holds HyperShift\'s control plane "hc1"'
_OWN = ("hc1-cluster-side-", "hc1-namespace-guard")


@dataclass(frozen=True, kw_only=True)
class CutOff:
    """What each command printed, its steps, and what is there after each: uids of the namespace and its objects."""

    printed: dict[str, str]
    alive: dict[str, dict[str, str]]
    switch: dict[str, str]
    next_run: dict[str, str]
    in_state: dict[str, list[str]]


@pytest.fixture(scope="module")
def cut_off(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CutOff]:
    folder = tmp_path_factory.mktemp("cut-off")
    with small_stack(folder, "stack") as stack, stack.kubernetes("administrator") as http:
        interrupted_by_its_namespace(stack)
        in_state = {"interrupted": own(stack)}
        with control_plane(http):
            alive, printed = {"before": objects(http)}, {}

            def run(name: str, *command: str, **changes: Any) -> None:
                with stack.configured(**changes):
                    done = stack.idstack(*command, check=False)
                printed[name] = " ".join((done.stdout + done.stderr).split())
                alive[name] = objects(http)

            [first] = stack.configuration("hostedClusters")
            other = {**first, "name": "hc2", "infraID": "hc2-infra"}
            run("up", "up")
            run("down", "down")
            run("removed", "up", hostedClusters=[other])
            run("removed and switched", "up", hostedClusters=[other], clusterSide="hypershift")
            in_state["refused"] = own(stack)
            stack.configure(clusterSide="hypershift")
            switch = stack.preview()
            run("switch", "up")
            next_run = stack.preview()
            run("next run", "up")
            in_state["next run"] = own(stack)
            run("back", "up", clusterSide="stack")
            stack.up("--expect-no-changes")
            yield CutOff(printed=printed, alive=alive, switch=switch, next_run=next_run, in_state=in_state)


def interrupted_by_its_namespace(stack: LocalStack) -> None:
    """The stack's first `up`, which gets a SIGINT when it has made the namespace."""
    options = ("--yes", "--skip-preview", "--non-interactive", "--stack", stack.name)
    with stack.started(
        *("pulumi", "up", *options), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        assert running.stdout is not None
        next(line for line in running.stdout if "hc1-cluster-side-namespace created" in line)
        running.send_signal(signal.SIGINT)
        printed = running.communicate()[0]
    assert running.returncode != 0, printed


def own(stack: LocalStack) -> list[str]:
    """The names of what the state has of the cluster side."""
    names = (resource["urn"].rpartition("::")[2] for resource in stack.resources() if resource["custom"])
    return sorted(name for name in names if name.startswith(_OWN))


def objects(http: httpx.Client) -> dict[str, str]:
    """Uids of the namespace, with its phase, and of the control planes in it; nothing without the namespace."""
    answer = http.get(NAMESPACE)
    if answer.status_code == httpx.codes.NOT_FOUND:
        return {}
    namespace = answer.raise_for_status().json()
    planes = http.get(PLANES).raise_for_status().json()["items"]
    found = {f"plane {plane['metadata']['name']}": plane["metadata"]["uid"] for plane in planes}
    return {f"namespace {namespace['status']['phase']}": namespace["metadata"]["uid"], **found}


def test_the_interrupted_run_has_left_the_namespace_in_the_state(cut_off: CutOff) -> None:
    assert "hc1-cluster-side-namespace" in cut_off.in_state["interrupted"]
    assert "hc1-namespace-guard" not in cut_off.in_state["interrupted"]


def test_no_command_deletes_namespace_or_control_plane(cut_off: CutOff) -> None:
    before = cut_off.alive["before"]

    assert before.keys() == {"namespace Active", "plane hc1"}
    assert [name for name, after in cut_off.alive.items() if after != before] == []


@pytest.mark.parametrize("command", ["up", "down", "removed", "removed and switched", "back"])
def test_each_is_refused_and_names_the_control_plane(cut_off: CutOff, command: str) -> None:
    assert HOLDS in cut_off.printed[command]
    assert "clusterSide hypershift" in cut_off.printed[command].replace(
        "clusterSide: hypershift", "clusterSide hypershift"
    )


def test_what_is_refused_leaves_the_state_as_it_was(cut_off: CutOff) -> None:
    assert cut_off.in_state["refused"] == cut_off.in_state["interrupted"]


def test_the_printed_switch_hands_over_what_the_state_has(cut_off: CutOff) -> None:
    made = {name for name, step in cut_off.switch.items() if step == "create" and name.startswith(_OWN)}

    assert made <= {"hc1-cluster-side-guard", "hc1-namespace-guard"}, "all else there is HyperShift's"
    assert "delete" not in {step for name, step in cut_off.switch.items() if name.startswith(_OWN)}
    assert "clusters-hc1 is left to HyperShift" in cut_off.printed["switch"]


def test_the_next_run_takes_it_out_of_the_state(cut_off: CutOff) -> None:
    assert cut_off.next_run.keys() >= {"hc1-cluster-side-namespace", "hc1-namespace-guard"}
    assert cut_off.in_state["next run"] == []
