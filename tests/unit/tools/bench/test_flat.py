"""The recording from which the flat script registers what our program registers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tools.bench.flat import recording

SIGNATURE, SECRET = "4dabf18193072939515e22adb298388d", "1b47061264138c4ac30d75fd1eb44270"
STACK, AZURE, COMPONENT, IDENTITY, ROLE = (
    f"urn:{name}" for name in ("stack", "azure", "component", "identity", "role")
)


def secret(value: Any) -> dict[str, Any]:
    return {SIGNATURE: SECRET, "value": value}


def call(method: str, request: dict[str, Any], response: dict[str, Any], progress: str = "response_completed") -> str:
    name = f"/pulumirpc.ResourceMonitor/{method}"
    return json.dumps({"method": name, "request": request, "response": response, "progress": progress})


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A stack with a provider, a component, an identity, and a role assigned to it."""
    identity = {"resourceName": "cpo"}
    role = {"principalId": "p-1", "note": secret("for p-1"), "names": ["a", "true"]}
    depends = {"principalId": {"urns": [IDENTITY]}, "note": {"urns": [IDENTITY]}, "names": {}}
    calls = [
        call("RegisterResource", {"type": "pulumi:pulumi:Stack", "name": "s", "object": {}}, {"urn": STACK}),
        call(
            "RegisterResource",
            {"type": "pulumi:providers:azuread", "name": "azure", "custom": True, "parent": STACK}
            | {"object": {"useMsi": "false"}},
            {"urn": AZURE, "id": "id-0", "object": {}},
        ),
        call(
            "RegisterResource",
            {"type": "idstack:azure:X", "name": "x", "parent": STACK, "object": {}}
            | {"providers": {"azuread": f"{AZURE}::id-0"}},
            {"urn": COMPONENT},
        ),
        call("RegisterResource", {"type": "a:b:C", "name": "never", "object": {}}, {}, progress="request_started"),
        call(
            "RegisterResource",
            {"type": "a:b:Identity", "name": "identity", "custom": True, "parent": COMPONENT, "object": identity}
            | {"protect": False, "providers": {}},
            {"urn": IDENTITY, "id": "id-1", "object": {"principalId": "p-1"}},
        ),
        call(
            "RegisterResource",
            {"type": "a:b:Role", "name": "role", "custom": True, "parent": COMPONENT, "object": role}
            | {"dependencies": [IDENTITY, AZURE], "propertyDependencies": depends, "deleteBeforeReplace": True},
            {"urn": ROLE, "id": "id-2", "object": {}},
        ),
        call("RegisterResourceOutputs", {"urn": COMPONENT, "outputs": {"name": "x"}}, {}),
        call("RegisterResourceOutputs", {"urn": STACK, "outputs": {"vault": "kv"}}, {}),
        call("Invoke", {"tok": "a:b:getC"}, {}),
    ]
    file = tmp_path / "log"
    file.write_text("\n".join(calls), encoding="utf-8")
    return file


def test_everything_that_was_registered_is_recorded_in_order(log: Path) -> None:
    rows = recording(log)
    assert [row["type"] for row in rows] == [
        "pulumi:providers:azuread",
        "idstack:azure:X",
        "a:b:Identity",
        "a:b:Role",
        "pulumi:pulumi:Stack",
    ]
    assert rows[1]["outputs"] == {"name": {"constant": "x", "secret": False}}
    assert rows[-1]["outputs"] == {"vault": {"constant": "kv", "secret": False}}
    provider, component, identity, role, _ = rows
    assert role["inputs"] == {
        "principalId": {"output": "principal_id", "of": IDENTITY},
        "note": {"derived": "for p-1", "of": [IDENTITY], "secret": True},
        "names": {"constant": ["a", "true"], "secret": False},
    }
    assert (role["dependsOn"], role["options"]) == ([AZURE], {"delete_before_replace": True}), "others are implied"
    assert (component["providers"], identity["providers"]) == ([AZURE], []), "they are given at the top"
    assert provider["inputs"] == {"useMsi": {"constant": False, "secret": False}}, "which is no string"
