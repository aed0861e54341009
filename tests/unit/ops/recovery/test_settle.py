"""The search for orphans while the program cannot plan a certificate, and for secrets that a vault keeps deleted."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any

import pytest

from identity import resource_types
from identity.azure.client import AzureClient
from identity.credentials.secret_tags import OWNER
from identity.naming import parse_arm_id
from localcloud.testing.arm import VAULT, ArmWorld
from ops.recovery import settle
from ops.recovery.settle import find_orphans
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.world.adoption_guard import AdoptionGuard
from ops.world.stacks import Contents, Stacks
from tests.unit.ops.conftest import FakeEngine
from tests.unit.ops.recovery.engine_answers import EngineAnswers

_CONFIGURATION = {"idstack:subscriptionId": "s"}


# As the engine words what a schedule's Check refuses.
_REFUSED = "idstack:index:RenewalSchedule resource 'hc1-ingress-entra-schedule' has a problem: it is too soon"
_SCHEDULE = "urn:pulumi:dev::idstack::idstack:index:RenewalSchedule::hc1-ingress-entra-schedule"


@pytest.fixture(autouse=True)
def _configured(engine: FakeEngine) -> None:
    engine.configures(tenantId="t")


def _state(*urns: str) -> dict[str, Any]:
    resources = [{"urn": urn, "type": urn.split("::")[2], "inputs": {}} for urn in urns]
    return {"version": 3, "deployment": {"resources": resources}}


def _preview(*complaints: str) -> tuple[int, str, str]:
    """The schedule's own complaint has its URN, as every diagnostic about a resource."""
    diagnostics = [
        {"message": f"error: {one}\n", "severity": "error"} | ({"urn": _SCHEDULE} if one is _REFUSED else {})
        for one in complaints
    ]
    return len(complaints), json.dumps({"config": _CONFIGURATION, "steps": [], "diagnostics": diagnostics}), ""


def _nothing_to_report(line: str) -> None:
    pytest.fail(line)


def test_a_certificate_that_cannot_be_planned_hides_no_other_orphan(answers: EngineAnswers) -> None:
    answers.to("stack export", (0, json.dumps(_state(_SCHEDULE)), ""))
    answers.to("preview", _preview(_REFUSED), _preview())
    reported: list[str] = []
    assert find_orphans(Engine("dev"), reported.append) == []
    [first, second] = [call for call in answers.calls if call.startswith("preview")]
    assert "--exclude" not in first
    assert f"--exclude {_SCHEDULE}" in second
    [line] = reported
    assert line.startswith("no certificate can be planned")
    assert line.endswith(_REFUSED)
    before = len(answers.calls)
    assert find_orphans(Engine("dev"), _nothing_to_report) == []
    asked = [call for call in answers.calls[before:] if call.startswith("preview")]
    assert asked == ["preview --json --stack dev --non-interactive"], "they are looked for once"


@pytest.mark.parametrize("previews", [["Graph does not answer"], [_REFUSED, "Graph does not answer"]])
def test_a_preview_that_fails_for_another_reason_is_an_error(answers: EngineAnswers, previews: list[str]) -> None:
    answers.to("stack export", (0, json.dumps(_state(_SCHEDULE)), ""))
    answers.to("preview", *map(_preview, previews), _preview())
    with pytest.raises(CommandError, match="Graph does not answer"):
        find_orphans(Engine("dev"), _nothing_to_report)


def test_secrets_that_a_vault_keeps_deleted_are_recovered_but_for_another_stacks(
    answers: EngineAnswers, azure: AzureClient, world: ArmWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.create_vault()
    provider = "urn:pulumi:dev::idstack::pulumi:providers:idstack::default"
    steps: list[dict[str, Any]] = []
    for name in ("mine", "theirs"):
        world.call("PUT", f"{VAULT}/secrets/{name}", {"properties": {"value": "v"}, "tags": {OWNER: name}})
        azure.vault(parse_arm_id(VAULT).name, "DELETE", f"/secrets/{name}")
        kind = resource_types.CREDENTIAL_SECRET
        planned = {"urn": f"x::{kind}::{name}", "type": kind, "custom": True, "provider": f"{provider}::1"}
        inputs = {"vaultId": VAULT, "secretName": name}
        new = {**planned, "dependencies": ["later"], "inputs": inputs}
        steps.append({"op": "create", "urn": planned["urn"], "newState": new})
    answers.to("preview", (0, json.dumps({"config": _CONFIGURATION, "steps": steps}), ""))
    answers.to("stack export", (0, json.dumps(_state(provider)), ""))
    guard = AdoptionGuard(azure, Stacks({"dev": Contents(owner="mine"), "prod": Contents(owner="theirs")}), "dev")
    monkeypatch.setattr(settle, "deployer", lambda _: nullcontext(azure))
    monkeypatch.setattr(settle, "adoption_guard", lambda _: nullcontext(guard))
    reported: list[str] = []

    found = find_orphans(Engine("dev"), reported.append)
    settle.undelete(Engine("dev"), found)

    assert [(orphan.id, orphan.is_deleted) for orphan in found] == [(f"{VAULT}/secrets/mine", True)]
    assert reported == [
        f"left alone:\n  it has the owner id of the stack prod:\n    theirs: {VAULT}/secrets/theirs, deleted"
    ]
    assert azure.resource(found[0].id, resource_types.KEY_VAULT_API) is not None
    assert find_orphans(Engine("dev"), reported.append) == []


def test_providers_are_created_alone_once_all_that_they_need_is_there(answers: EngineAnswers) -> None:
    def planned(name: str, *needs: str) -> dict[str, Any]:
        urn = f"urn:pulumi:dev::idstack::pulumi:providers:{name}::{name}"
        new = {"urn": urn, "type": f"pulumi:providers:{name}", "custom": True, "dependencies": [*needs]}
        return {"op": "create", "urn": urn, "newState": new}

    steps = [planned("azuread"), planned("kubernetes", "cluster")]
    answers.to("preview", (0, json.dumps({"config": _CONFIGURATION, "steps": steps}), ""))
    answers.to("stack export", *((0, json.dumps(_root(outputs)), "") for outputs in ({"a": 1}, {"a": 2, "b": {}})))
    reported: list[str] = []

    assert settle.create_providers(Engine("dev"), reported.append)

    [up] = [call for call in answers.calls if call.startswith("up ")]
    assert up.endswith(f"--yes --skip-preview --target **{steps[0]['urn']} --stack dev")
    assert answers.imported == _root({"a": 1}), "the outputs are those of the last complete run"
    assert reported == ["creating what the search needs: azuread"]
    answers.to("preview", _preview())
    assert not settle.create_providers(Engine("dev"), _nothing_to_report)


def _root(outputs: dict[str, Any]) -> dict[str, Any]:
    root = {"urn": "urn:root", "type": resource_types.STACK, "custom": False, "outputs": outputs}
    return {"version": 3, "deployment": {"resources": [root]}}
