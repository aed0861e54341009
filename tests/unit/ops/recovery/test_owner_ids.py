"""A person says which owner id a stack had: it becomes the stack's, unless it is another's."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from ops.recovery import settle
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from tests.unit.ops.conftest import FakeEngine

LOST = "0c5f1f7e-0000-4000-8000-00000000000a"
OTHER = "0c5f1f7e-0000-4000-8000-00000000000b"
URN = "urn:pulumi:dev::idstack::idstack:index:StackOwner::owner"


def has_owner(engine: FakeEngine, owner_id: str) -> None:
    engine.has_resources(
        {"urn": URN, "type": "idstack:index:StackOwner", "id": owner_id, "outputs": {"ownerId": owner_id}}
    )


@pytest.mark.parametrize("there", [True, False])
def test_the_id_takes_the_place_of_the_one_that_a_run_has_made(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    engine.has_stacks("dev")
    if there:
        has_owner(engine, OTHER)
    created: list[str] = []

    def create_alone(of: Engine, urns: Sequence[str]) -> None:
        created.extend(urns)
        has_owner(engine, OTHER)
        of.forget()

    monkeypatch.setattr(settle, "create_alone", create_alone)
    written = []
    monkeypatch.setattr(Engine, "replace_state", lambda self, state: written.append(state))

    settle.take_owner_id(Engine("dev"), LOST.upper())

    [state] = written
    *_, owner = state["deployment"]["resources"]
    assert (owner["id"], owner["outputs"]) == (LOST, {"ownerId": LOST})
    assert created == ([] if there else ["::idstack:index:StackOwner::*"])


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
        settle.take_owner_id(Engine("dev"), owner_id)
    assert json.loads((engine.folder / "state.json").read_text()) == before
