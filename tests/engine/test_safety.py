"""The emulated plugins refuse a stack on real Azure or a real cluster, whatever the command, before any change."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from identity.clouds import LOCAL_ENVIRONMENT_VARIABLE
from tests.harness import LocalStack

_TENANT = "72f988bf-86f1-41af-91ab-2d7cd011db47"
_SERVER = "https://aks-prod.hcp.eastus.azmk8s.io:443"
_KUBECONFIG = json.dumps(
    {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "prod", "cluster": {"server": _SERVER}}],
        "users": [{"name": "prod", "user": {"token": "t"}}],
        "contexts": [{"name": "prod", "context": {"cluster": "prod", "user": "prod"}}],
        "current-context": "prod",
    }
)


@dataclass(frozen=True)
class Foreign:
    """A provider of another tenant or cluster, and one resource of it that the local cloud has, too."""

    plugin: str
    settings: Mapping[str, Any]
    token: str
    id: str
    inputs: Mapping[str, Any]
    refusal: str
    refusal_unrecorded: str


_GROUP = "/subscriptions/10ca1000-0000-4000-8000-000000000002/resourceGroups/identity-local"
_FOREIGN = [
    Foreign(
        "azure-native",
        {"tenantId": _TENANT},
        "azure-native:keyvault:Vault",
        f"{_GROUP}/providers/Microsoft.KeyVault/vaults/kv-idstack-local",
        {"vaultName": "kv-idstack-local", "resourceGroupName": "identity-local"},
        f"has the tenant {_TENANT}",
        f"has the tenant {_TENANT}",
    ),
    Foreign(
        "azuread",
        {"tenantId": _TENANT},
        "azuread:index/application:Application",
        "/applications/00000000-0000-4000-8000-000000000000",
        {"displayName": "cpo-hc1"},
        f"has the tenant {_TENANT}",
        f"has the tenant {_TENANT}",
    ),
    Foreign(
        "kubernetes",
        {"kubeconfig": _KUBECONFIG},
        "kubernetes:core/v1:Namespace",
        "clusters-hc1",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "clusters-hc1"}},
        f"is for the cluster at {_SERVER}",
        "does not know the local cluster",
    ),
]


# One plugin and the local cloud's record for all: what they refuse, and without it, `cloud/tests/emulated` has of each.
@pytest.mark.parametrize(
    ("foreign", "recorded"),
    [
        pytest.param(
            foreign,
            recorded,
            id=f"{foreign.plugin}, {'the local cloud known' if recorded else 'only the plugins installed'}",
            marks=() if foreign is _FOREIGN[0] and recorded else pytest.mark.nightly,
        )
        for foreign in _FOREIGN
        for recorded in (True, False)
    ],
)
def test_a_foreign_stack_is_refused(stack: LocalStack, tmp_path: Path, foreign: Foreign, recorded: bool) -> None:
    project = _project(tmp_path, foreign)
    variables = {} if recorded else {LOCAL_ENVIRONMENT_VARIABLE: ""}

    def pulumi(*command: str, check: bool = True) -> str:
        done = stack.run("pulumi", *command, "--non-interactive", check=check, variables=variables, directory=project)
        assert check or done.returncode != 0, f"{command} was not refused: {done.stdout}"
        return done.stdout + done.stderr

    pulumi("stack", "init", "foreign")
    try:
        (project / "state.json").write_text(json.dumps(_state(foreign)), encoding="utf-8")
        pulumi("stack", "import", "--file", "state.json")
        before, state = stack.inventory(), _resources(stack)
        for command in ("up", "refresh", "destroy"):
            printed = pulumi(command, "--yes", "--skip-preview", check=False)
            assert (foreign.refusal if recorded else foreign.refusal_unrecorded) in printed
            assert "Nothing was changed" in printed
            assert stack.inventory() == before
            assert _resources(stack) == state
    finally:
        pulumi("stack", "rm", "foreign", "--yes", "--force")


def _project(directory: Path, foreign: Foreign) -> Path:
    """A program of one foreign provider and one resource of it."""
    properties = json.dumps(dict(foreign.inputs))
    settings = json.dumps(dict(foreign.settings))
    (directory / "Pulumi.yaml").write_text("name: foreign\nruntime: python\n", encoding="utf-8")
    (directory / "__main__.py").write_text(
        "import pulumi\n"
        f"provider = pulumi.ProviderResource({foreign.plugin!r}, 'foreign', {settings})\n"
        f"pulumi.CustomResource({foreign.token!r}, 'thing', {properties}, pulumi.ResourceOptions(provider=provider))\n",
        encoding="utf-8",
    )
    return directory


def _state(foreign: Foreign) -> dict[str, Any]:
    """What a stack that was brought up elsewhere has in its state."""
    stack = "urn:pulumi:foreign::foreign"
    provider = f"{stack}::pulumi:providers:{foreign.plugin}::foreign"
    root = f"{stack}::pulumi:pulumi:Stack::foreign-foreign"
    provider_id = "5b2c7e0e-0000-4000-8000-000000000001"
    resources = [
        {"urn": root, "type": "pulumi:pulumi:Stack", "custom": False},
        {
            "urn": provider,
            "type": f"pulumi:providers:{foreign.plugin}",
            "custom": True,
            "id": provider_id,
            "parent": root,
            "inputs": dict(foreign.settings),
            "outputs": dict(foreign.settings),
        },
        {
            "urn": f"{stack}::{foreign.token}::thing",
            "type": foreign.token,
            "custom": True,
            "id": foreign.id,
            "parent": root,
            "provider": f"{provider}::{provider_id}",
            "inputs": dict(foreign.inputs),
            "outputs": dict(foreign.inputs),
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
