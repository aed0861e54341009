"""`idstack fleet up` on the real engine: a shared stack and three clusters, of which the canary fails at first."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from tests.engine.changing import another_imported, with_applications
from tests.engine.held_faults import gate_refuses, held
from tests.harness import PLACE, LocalStack, running_stack

pytestmark = pytest.mark.slow

_CLUSTERS = ("hc1", "hc2", "hc3")
_GATE = {"propagation": {"successes": 1, "settleSeconds": 0, "timeoutSeconds": 10}}
_LATER = ["local-hc1", "local-hc3"]


@dataclass
class Fleet:
    """What each command printed, in this order; `known` are the stacks of the backend after the first one."""

    broken: tuple[int, dict[str, Any], str]
    known: set[str]
    status_broken: tuple[int, dict[str, Any], str]
    repaired: tuple[int, dict[str, Any], str]
    again: tuple[int, dict[str, Any], str]
    status: tuple[int, dict[str, Any], str]
    text: str


def _fleet_file(stack: LocalStack) -> str:
    """The fleet: the local stack's hosted cluster three times, with one application each; hc2 is the canary."""
    [cluster] = stack.configuration("hostedClusters")
    own = {key: value for key, value in cluster.items() if key not in ("name", "identities")}
    imported = cluster["identities"]["imageRegistry"]
    clusters = []
    for name in _CLUSTERS:
        identities = with_applications(cluster, "nodePoolManagement", imported=imported)["identities"]
        changes = {"issuerURL": f"https://{name}oidc.blob.core.windows.net/{name}oidc", "infraID": f"{name}-infra"}
        clusters.append({"name": name, "hostedCluster": {**own, **changes, "identities": identities}})
        imported = another_imported(stack, imported)
    environment = {
        "name": "local",
        "settings": {key: stack.configuration(key) for key in (*PLACE, "managementCluster")}
        | {"protect": False, "credentials": _GATE},
        "shared": {"settings": {"vault": stack.configuration("vault")}},
        "clusterDefaults": {"settings": {"clusterSide": "hypershift"}},
        "clusters": clusters,
        "waves": {"canaries": ["hc2"]},
    }
    return yaml.safe_dump({"environments": [environment]}, sort_keys=False)


def _command(stack: LocalStack, *arguments: str) -> tuple[int, dict[str, Any], str]:
    done = stack.idstack("fleet", *arguments, "--json", check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


def _outcomes(printed: tuple[int, dict[str, Any], str]) -> dict[str, str]:
    [environment] = printed[1]["environments"]
    return {stack["stack"]: stack["outcome"] for stack in environment["stacks"]}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    with running_stack(tmp_path_factory.mktemp("fleet")) as stack:
        (stack.root / "fleet.yaml").write_text(_fleet_file(stack), encoding="utf-8")
        stack.idstack("fleet", "prepare")
        with held(stack, gate_refuses(stack)):
            broken = _command(stack, "up")
        known = {path.stem for path in (stack.state / "pulumi/backend/.pulumi/stacks/idstack").glob("*.json")}
        status_broken = _command(stack, "status")
        repaired = _command(stack, "up", "--parallel", "2")
        return Fleet(
            broken,
            known,
            status_broken,
            repaired,
            _command(stack, "up"),
            _command(stack, "status"),
            stack.idstack("fleet", "status").stdout,
        )


def test_a_canary_that_cannot_sign_in_keeps_the_waves_from_beginning(fleet: Fleet) -> None:
    code, _, printed = fleet.broken
    assert code == 1
    assert _outcomes(fleet.broken) == {"local-shared": "up", "local-hc2": "failed", **dict.fromkeys(_LATER, "left out")}
    assert not fleet.known & set(_LATER), "they were never made"
    assert "not up: local-hc2; the reason is printed above. Not begun: local-hc1, local-hc3." in printed
    assert "sign-in" in printed


def test_the_status_names_the_stack_whose_run_failed(fleet: Fleet) -> None:
    code, document, printed = fleet.status_broken
    stacks = {stack["stack"]: stack for stack in document["stacks"]}
    assert code == 1
    assert stacks["local-shared"]["isUp"]
    assert stacks["local-hc2"]["lastRunFailed"]["reason"]
    assert [stacks[name]["isUp"] for name in ("local-hc2", *_LATER)] == [False, False, False]
    assert printed.splitlines()[-1].endswith("a sign-in in them fails: local-hc2, local-hc1, local-hc3")


def test_once_it_is_repaired_the_next_call_goes_on_from_there(fleet: Fleet) -> None:
    assert fleet.repaired[0] == 0, fleet.repaired[2]
    assert _outcomes(fleet.repaired) == {"local-shared": "unchanged", **dict.fromkeys(("local-hc2", *_LATER), "up")}


def test_nothing_changes_in_a_fleet_that_is_up(fleet: Fleet) -> None:
    assert fleet.again[0] == 0
    assert set(_outcomes(fleet.again).values()) == {"unchanged"}


def test_the_status_has_all_stacks_in_the_order_of_the_waves(fleet: Fleet) -> None:
    code, document, _ = fleet.status
    assert code == 0
    found = [(stack["stack"], stack["wave"], stack["isUp"]) for stack in document["stacks"]]
    assert found == [
        ("local-shared", "shared", True),
        ("local-hc2", "canaries", True),
        ("local-hc1", "wave 1", True),
        ("local-hc3", "wave 1", True),
    ]
    assert [stack["nearestExpiry"] is None for stack in document["stacks"]] == [True, False, False, False]
    assert all(stack["lastRunFailed"] is None and stack["overdueRenewals"] == [] for stack in document["stacks"])
    assert [line.split()[0] for line in fleet.text.splitlines() if line.startswith("local-")] == [
        "local-shared",
        "local-hc2",
        "local-hc1",
        "local-hc3",
    ]
