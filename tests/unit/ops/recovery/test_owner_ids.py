"""A person says which owner id a stack had: it becomes the stack's, unless it is another's."""

from __future__ import annotations

import json

import pytest

from identity.plugin_schema import SCHEMA
from ops.recovery import owner_ids
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.state import UNKNOWN
from tests.unit.ops.conftest import FakeEngine

LOST = "0c5f1f7e-0000-4000-8000-00000000000a"
OTHER = "0c5f1f7e-0000-4000-8000-00000000000b"
_PROVIDER = "urn:pulumi:dev::idstack::pulumi:providers:idstack::default"
URN = "urn:pulumi:dev::idstack::idstack:index:StackOwner::owner"


def has_owner(engine: FakeEngine, owner_id: str) -> None:
    engine.has_resources(
        {"urn": URN, "type": "idstack:index:StackOwner", "id": owner_id, "outputs": {"ownerId": owner_id}}
    )


def test_the_id_takes_the_place_of_the_one_that_an_up_has_made(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.has_stacks("dev")
    has_owner(engine, OTHER)
    written = []
    monkeypatch.setattr(Engine, "replace_state", lambda self, state: written.append(state))

    owner_ids.take(Engine("dev"), LOST.upper())

    [state] = written
    *_, owner = state["deployment"]["resources"]
    assert (owner["id"], owner["outputs"]) == (LOST, {"ownerId": LOST})
    assert not any(call.startswith("up") for call in engine.calls)


@pytest.mark.parametrize("there", [False, True])
def test_a_stack_without_one_gets_it_as_planned(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    root = {"urn": "urn:root", "type": "pulumi:pulumi:Stack", "custom": False}
    provider = {"urn": _PROVIDER, "type": "pulumi:providers:idstack", "custom": True, "inputs": {}}
    owner = {
        **{"urn": URN, "type": "idstack:index:StackOwner", "custom": True, "inputs": {"schema": SCHEMA}},
        **{"parent": "urn:root", "provider": f"{_PROVIDER}::{'p' if there else UNKNOWN}"},
    }
    engine.has_stacks("dev")
    if there:
        engine.has_resources(root, {**provider, "id": "p"})
    steps = [
        {"op": "create", "urn": resource["urn"], "newState": resource}
        for resource in ([owner] if there else [root, owner])
    ]
    monkeypatch.setattr(Engine, "planned", lambda self: {"steps": steps})
    written = []
    monkeypatch.setattr(Engine, "replace_state", lambda self, state: written.append(state))

    owner_ids.take(Engine("dev"), LOST)

    [state] = written
    found = {resource["urn"]: resource for resource in state["deployment"]["resources"]}
    assert list(found) == ["urn:root", _PROVIDER, URN]
    assert found[URN]["id"] == LOST
    assert found[URN]["provider"] == f"{_PROVIDER}::{found[_PROVIDER]['id']}"


@pytest.mark.parametrize(
    ("owner_id", "reason"),
    [
        ("mine", r"--owner: found mine; accepted: an owner id \(a UUID\)"),
        (LOST, f"--owner: {LOST} is the owner id of the stack prod, which owns the resources with it"),
    ],
)
def test_another_stacks_id_is_refused(engine: FakeEngine, owner_id: str, reason: str) -> None:
    engine.has_stacks("dev", "prod")
    has_owner(engine, LOST)
    before = json.loads((engine.folder / "state.json").read_text())

    with pytest.raises(CommandError, match=reason):
        owner_ids.take(Engine("dev"), owner_id)
    assert json.loads((engine.folder / "state.json").read_text()) == before
