"""`idstack fleet up` on the real engine: a shared stack and three clusters, of which the canary fails at first."""

from __future__ import annotations

import json
from pathlib import Path
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


def test_a_fleet_goes_on_behind_a_repaired_canary_and_then_stays_as_it_is(tmp_path: Path) -> None:
    with running_stack(tmp_path) as stack:
        (stack.root / "fleet.yaml").write_text(_fleet_file(stack), encoding="utf-8")
        stack.idstack("fleet", "prepare")
        with held(stack, gate_refuses(stack)):
            _require_broken(_command(stack, "up"))
        known = {path.stem for path in (stack.state / "pulumi/backend/.pulumi/stacks/idstack").glob("*.json")}
        assert not known & set(_LATER), "they were never made"
        _require_named(_command(stack, "status"))

        repaired = _command(stack, "up", "--parallel", "2")
        assert repaired[0] == 0, repaired[2]
        assert _outcomes(repaired) == {"local-shared": "unchanged", **dict.fromkeys(("local-hc2", *_LATER), "up")}
        again = _command(stack, "up")
        assert (again[0], set(_outcomes(again).values())) == (0, {"unchanged"})
        _require_order(_command(stack, "status"), stack.idstack("fleet", "status").stdout)


def _require_broken(up: tuple[int, dict[str, Any], str]) -> None:
    """A canary that cannot sign in keeps the waves from beginning."""
    code, _, printed = up
    assert code == 1
    assert _outcomes(up) == {"local-shared": "up", "local-hc2": "failed", **dict.fromkeys(_LATER, "left out")}
    assert "not up: local-hc2; the reason is printed above. Not begun: local-hc1, local-hc3." in printed
    assert "sign-in" in printed


def _require_named(status: tuple[int, dict[str, Any], str]) -> None:
    """The status names the stack whose run failed."""
    code, document, printed = status
    stacks = {stack["stack"]: stack for stack in document["stacks"]}
    assert code == 1
    assert stacks["local-shared"]["isUp"]
    assert stacks["local-hc2"]["lastRunFailed"]["reason"]
    assert [stacks[name]["isUp"] for name in ("local-hc2", *_LATER)] == [False, False, False]
    assert printed.splitlines()[-1].endswith("a sign-in in them fails: local-hc2, local-hc1, local-hc3")


def _require_order(status: tuple[int, dict[str, Any], str], text: str) -> None:
    """The status has all stacks in the order of the waves."""
    code, document, _ = status
    stacks = document["stacks"]
    order = {"local-shared": "shared", "local-hc2": "canaries", "local-hc1": "wave 1", "local-hc3": "wave 1"}
    assert code == 0
    assert [(stack["stack"], stack["wave"]) for stack in stacks] == [*order.items()]
    assert all(stack["isUp"] for stack in stacks)
    assert [stack["nearestExpiry"] is None for stack in stacks] == [True, False, False, False]
    assert all(stack["lastRunFailed"] is None and stack["overdueRenewals"] == [] for stack in stacks)
    assert [line.split()[0] for line in text.splitlines() if line.startswith("local-")] == [*order]
