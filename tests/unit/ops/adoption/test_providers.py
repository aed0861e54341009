"""The providers of an import are in the state before it, as the engine writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ops.adoption.matching import enter_providers
from ops.stack.engine import Engine
from ops.stack.errors import CommandError

STACK = "urn:pulumi:dev::idstack::pulumi:pulumi:Stack::idstack-dev"
PROVIDER = "urn:pulumi:dev::idstack::pulumi:providers:azure-native::azure"


class _Recorded(Engine):
    """An engine with a state and a plan; what it is given is in `replaced`."""

    def __init__(self, *resources: Any, steps: Any = ()) -> None:
        super().__init__("dev", output=1)
        given = {"resources": list(resources), "steps": list(steps), "replaced": []}
        for name, value in given.items():
            object.__setattr__(self, name, value)

    def state(self) -> Any:
        return {"version": 3, "deployment": {"resources": self.resources}}

    def planned(self, arguments: Any = ()) -> Any:
        return {"config": {}, "steps": self.steps}  # type: ignore[attr-defined]

    def replace_state(self, state: Any) -> None:
        self.replaced.append(state["deployment"]["resources"])  # type: ignore[attr-defined]


def file(tmp_path: Path, *providers: str) -> Path:
    path = tmp_path / "import.json"
    path.write_text(
        json.dumps({"resources": [], "nameTable": {str(index): provider for index, provider in enumerate(providers)}})
    )
    return path


STEPS = [
    {"op": "create", "urn": STACK, "newState": {"urn": STACK, "type": "pulumi:pulumi:Stack", "custom": False}},
    {
        "op": "create",
        "urn": PROVIDER,
        "newState": {
            "urn": PROVIDER,
            "type": "pulumi:providers:azure-native",
            "custom": True,
            "parent": STACK,
            "inputs": {"tenantId": "t", "__internal": {}},
        },
    },
]


def test_missing_providers_come_with_the_stack_before_everything_else(tmp_path: Path) -> None:
    other = {"urn": "urn:other", "type": "x", "custom": True}
    engine = _Recorded(other, steps=STEPS)

    enter_providers(engine, file(tmp_path, PROVIDER))

    [[root, provider, last]] = engine.replaced  # type: ignore[attr-defined]
    assert (root["urn"], last) == (STACK, other)
    assert provider["inputs"] == {"tenantId": "t", "__internal": {}}
    assert provider["outputs"] == {"tenantId": "t"}, "or the next preview shows an update"
    assert provider["id"]


def test_a_state_that_has_them_stays_as_it_is(tmp_path: Path) -> None:
    engine = _Recorded({"urn": PROVIDER, "type": "pulumi:providers:azure-native"}, steps=STEPS)

    enter_providers(engine, file(tmp_path, PROVIDER))

    assert engine.replaced == []  # type: ignore[attr-defined]


def test_a_file_of_another_stack_is_refused(tmp_path: Path) -> None:
    other = PROVIDER.replace(":dev:", ":prod:")

    with pytest.raises(CommandError, match=f"names {other}, which the stack does not have; write it again"):
        enter_providers(_Recorded(steps=STEPS), file(tmp_path, other))
