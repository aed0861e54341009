"""A run ends when it has made the namespace, and HyperShift gets a control plane there: whatever follows keeps it."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Any

import httpx

from tests.apiserver.hosted_control_plane import NAMESPACE, PLANES, control_plane
from tests.engine.small_stack import small_stack
from tests.harness import LocalStack

HOLDS = 'clusters-hc1 holds HyperShift\'s control plane "hc1"'
_OWN = ("hc1-cluster-side-", "hc1-namespace-guard")


def test_no_command_deletes_a_control_plane_in_the_namespace_of_an_interrupted_run(tmp_path: Path) -> None:
    with small_stack(tmp_path, "stack") as stack, stack.kubernetes("administrator") as http:
        interrupted_by_its_namespace(stack)
        interrupted = own(stack)
        assert "hc1-cluster-side-namespace" in interrupted
        assert "hc1-namespace-guard" not in interrupted
        with control_plane(http):
            before = objects(http)
            assert before.keys() == {"namespace Active", "plane hc1"}

            def run(*command: str, **changes: Any) -> str:
                with stack.configured(**changes):
                    done = stack.idstack(*command, check=False)
                assert objects(http) == before, (command, changes)
                return " ".join((done.stdout + done.stderr).split())

            def refused(*command: str, **changes: Any) -> None:
                printed = run(*command, **changes)
                assert HOLDS in printed
                assert "clusterSide hypershift" in printed.replace("clusterSide: hypershift", "clusterSide hypershift")

            [first] = stack.configuration("hostedClusters")
            other = {**first, "name": "hc2", "infraID": "hc2-infra"}
            refused("up")
            refused("down")
            refused("up", hostedClusters=[other])
            refused("up", hostedClusters=[other], clusterSide="hypershift")
            assert own(stack) == interrupted, "what is refused leaves the state as it was"
            stack.configure(clusterSide="hypershift")
            switch = {name: step for name, step in stack.preview().items() if name.startswith(_OWN)}
            made = {name for name, step in switch.items() if step == "create"}
            assert made <= {"hc1-cluster-side-guard", "hc1-namespace-guard"}, "all else there is HyperShift's"
            assert "delete" not in switch.values()
            assert "clusters-hc1 is left to HyperShift" in run("up")
            assert stack.preview().keys() >= {"hc1-cluster-side-namespace", "hc1-namespace-guard"}
            run("up")
            assert own(stack) == []
            refused("up", clusterSide="stack")
            stack.up("--expect-no-changes")


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
