"""A state in another schema stops each command that changes a stack, before the engine starts."""

from __future__ import annotations

from typing import Any

import pytest

from identity.state_schema import CURRENT
from tests.unit.ops.conftest import FakeEngine, Idstack

_CHANGING = {"up", "preview", "refresh", "import"}


@pytest.mark.parametrize("command", ["up", "renew", "rotate", "backup"])
@pytest.mark.parametrize("schema", [CURRENT + 1, 0, "x", None])
def test_a_state_of_another_version_stops_the_command(
    engine: FakeEngine, idstack: Idstack, command: str, schema: Any
) -> None:
    engine.has({"keyVaultName": "kv"})
    engine.has_resources({"urn": "urn:x", "type": "idstack:index:RenewalSchedule", "inputs": {"schema": schema}})

    printed = idstack(command, *(["--output", "x"] if command == "backup" else []), "--stack", "dev")

    assert printed.code == 1
    assert printed.error == (
        f"idstack: the state has the schema {schema} of this plugin; this version reads {CURRENT}: use the version "
        "that brought the stack up last, or a later one\n"
    )
    assert [call for call in engine.calls if call.split()[0] in _CHANGING] == []
