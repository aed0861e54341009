"""The emulated plugins refuse a stack on real Azure, whatever the command, before any change.

One of them with the local cloud's record stands for all: `cloud/tests/emulated/test_settings.py` has what each refuses.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from tests.harness import LocalStack

_TENANT: Final = "72f988bf-86f1-41af-91ab-2d7cd011db47"
_SETTINGS: Final = {"tenantId": _TENANT}
# A vault that the local cloud has, too.
_TOKEN: Final = "azure-native:keyvault:Vault"
_GROUP: Final = "/subscriptions/10ca1000-0000-4000-8000-000000000002/resourceGroups/identity-local"
_ID: Final = f"{_GROUP}/providers/Microsoft.KeyVault/vaults/kv-idstack-local"
_INPUTS: Final = {"vaultName": "kv-idstack-local", "resourceGroupName": "identity-local"}
_PROGRAM: Final = f"""\
import pulumi
provider = pulumi.ProviderResource("azure-native", "foreign", {_SETTINGS})
pulumi.CustomResource("{_TOKEN}", "thing", {_INPUTS}, pulumi.ResourceOptions(provider=provider))
"""


def test_a_foreign_stack_is_refused(stack: LocalStack, tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: foreign\nruntime: python\n", encoding="utf-8")
    (tmp_path / "__main__.py").write_text(_PROGRAM, encoding="utf-8")
    (tmp_path / "state.json").write_text(json.dumps(_state()), encoding="utf-8")

    def pulumi(*command: str, check: bool = True) -> str:
        done = stack.run("pulumi", *command, "--non-interactive", check=check, directory=tmp_path)
        assert check or done.returncode != 0, f"{command} was not refused: {done.stdout}"
        return done.stdout + done.stderr

    pulumi("stack", "init", "foreign")
    try:
        pulumi("stack", "import", "--file", "state.json")
        before, state = stack.inventory(), _resources(stack)
        for command in ("up", "refresh", "destroy"):
            printed = pulumi(command, "--yes", "--skip-preview", check=False)
            assert f"has the tenant {_TENANT}" in printed
            assert "Nothing was changed" in printed
            assert stack.inventory() == before
            assert _resources(stack) == state
    finally:
        pulumi("stack", "rm", "foreign", "--yes", "--force")


def _state() -> dict[str, Any]:
    """What a stack that was brought up elsewhere has in its state."""
    stack = "urn:pulumi:foreign::foreign"
    root = f"{stack}::pulumi:pulumi:Stack::foreign-foreign"
    kind, provider_id = "pulumi:providers:azure-native", "5b2c7e0e-0000-4000-8000-000000000001"
    provider = f"{stack}::{kind}::foreign"
    made = {"custom": True, "parent": root}
    resources = [
        {"urn": root, "type": "pulumi:pulumi:Stack", "custom": False},
        {**made, "urn": provider, "type": kind, "id": provider_id, "inputs": _SETTINGS, "outputs": _SETTINGS},
        {
            **made,
            "urn": f"{stack}::{_TOKEN}::thing",
            "type": _TOKEN,
            "id": _ID,
            "provider": f"{provider}::{provider_id}",
            "inputs": _INPUTS,
            "outputs": _INPUTS,
        },
    ]
    return {"version": 3, "deployment": {"manifest": {"time": "2026-01-01T00:00:00Z"}, "resources": resources}}


def _resources(stack: LocalStack) -> list[tuple[Any, ...]]:
    """The foreign stack's custom resources; of the stack itself `up` records its line in the program."""
    return [
        tuple(resource.get(key) for key in ("urn", "id", "inputs", "outputs"))
        for resource in stack.resources("foreign/foreign")
        if resource["custom"]
    ]
