"""`pulumi import` of every type that a stack has: what it reads is what a program has to write.

Of the types that this small stack does not have, `cloud/tests/emulated` imports one of each plugin.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from provider.__main__ import RESOURCES as OWN
from tests.harness import PROJECT, LocalStack

pytestmark = pytest.mark.slow

_DEPLOYMENT = "kubernetes:apps/v1:Deployment"
_CREDENTIAL_SECRET = "idstack:index:CredentialSecret"
# `tests/unit/provider/test_vault_signing_key.py` imports the second.
_IN_A_VAULT = (_CREDENTIAL_SECRET, "idstack:index:EncryptionKey", "idstack:index:SigningKey")
# These are in Azure or in the cluster, but part of what they are is not.
_NOT_IMPORTED = {
    "idstack:index:HsmRoleAssignment": "it needs no import",
    "idstack:index:IssuerDocuments": "only its stack knows since when a key is published",
    "idstack:index:EncryptionKeySecret": "only its stack knows which key the Secret holds",
    "idstack:index:SigningKeySecret": "only its stack knows which key the Secret holds",
}
_PLUGINS = ("azure-native:", "azuread:", "kubernetes:")

# What a preview shows right after the import, where it shows anything. A value that a service does not give away can
# not be imported; an empty list and none look the same in an answer; of Kubernetes' defaults nobody can tell whether
# they were asked for.
_SHOWN: Mapping[str, tuple[str, set[str]]] = {
    # Of the document ARM shows what is in attributes and tags. The owner id of the one who wrote it is taken by nobody.
    _CREDENTIAL_SECRET: ("update", {"authorityHost", "clientId", "objectEncoding", "objectId", "ownerId"}),
    "azure-native:keyvault:Vault": (
        "update",
        {"properties.networkAcls.ipRules", "properties.networkAcls.virtualNetworkRules"},
    ),
    "azuread:index/applicationCertificate:ApplicationCertificate": ("replace", {"value"}),
    _DEPLOYMENT: ("update", {"spec.strategy", "spec.template.spec.restartPolicy"}),
    "kubernetes:core/v1:Namespace": ("update", {"metadata.labels", "spec"}),
}

_PROGRAM = """\
import json
from pathlib import Path
import pulumi
spec = json.loads(Path("spec.json").read_text())
providers = {name: pulumi.ProviderResource(name, name, inputs) for name, inputs in spec["providers"].items()}
for each in spec["resources"]:
    options = pulumi.ResourceOptions(provider=providers.get(each["type"].partition(":")[0]))
    pulumi.CustomResource(each["type"], each["name"], each["inputs"], options)
"""


@dataclass(frozen=True)
class Adopter:
    """A stack of its own on the same local cloud, and what its preview printed once everything was imported."""

    stack: LocalStack
    project: Path
    steps: Mapping[str, list[Mapping[str, Any]]]  # by type

    def pulumi(self, *arguments: str, check: bool = True) -> str:
        """Run the engine there; what it printed."""
        done = self.stack.run("pulumi", *arguments, "--non-interactive", directory=self.project, check=check)
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def adopter(small: LocalStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adopter]:
    """The other stack's program is what made the things: their inputs as the state has them."""
    project = tmp_path_factory.mktemp("adopter")
    exported = json.loads(small.pulumi("stack", "export", "--show-secrets").stdout)["deployment"]["resources"]
    made_by_it = [
        {
            "type": resource["type"],
            "name": resource["urn"].rpartition("::")[2],
            "id": resource["id"],
            "inputs": resource["inputs"],
        }
        for resource in _plain(exported)
        if resource["type"].startswith(_PLUGINS) or resource["type"] == _CREDENTIAL_SECRET
    ]
    # A credential that was issued elsewhere has neither an authority's URL nor an object id in the state.
    [secret, *_] = [
        resource
        for resource in made_by_it
        if resource["type"] == _CREDENTIAL_SECRET and "generation" in resource["inputs"]
    ]
    place = f"{secret['inputs']['cloud']}/{secret['inputs']['tenantId']}"
    things = [
        {**secret, "id": f"{place}{secret['id']}"},
        *(resource for resource in made_by_it if resource["type"] != _CREDENTIAL_SECRET),
    ]
    tenant = {"tenantId": small.environment.tenant_id}
    providers = {
        "azure-native": {**tenant, "subscriptionId": small.environment.subscription_id},
        "azuread": tenant,
        "kubernetes": {"kubeconfig": Path(small.environment.kubeconfig).read_text(encoding="utf-8")},
    }
    plugin = {"name": "idstack", "path": str(PROJECT / "provider")}
    about = {"name": "adopter", "runtime": "python", "plugins": {"providers": [plugin]}}
    (project / "Pulumi.yaml").write_text(json.dumps(about), encoding="utf-8")
    (project / "__main__.py").write_text(_PROGRAM, encoding="utf-8")
    made = Adopter(small, project, {})
    made.pulumi("stack", "init", "adopter")
    try:
        _write_spec(project, providers, [])
        made.pulumi("up", "--yes", "--skip-preview")
        (project / "import.json").write_text(json.dumps(_import_file(made, things)), encoding="utf-8")
        made.pulumi("import", "--file", "import.json", "--yes", "--skip-preview", "--generate-code=false")
        _write_spec(project, providers, things)
        plan = json.loads(small.run("pulumi", "preview", "--json", directory=project).stdout)
        steps: dict[str, list[Mapping[str, Any]]] = {}
        for step in plan["steps"]:
            steps.setdefault(step["urn"].split("::")[2], []).append(step)
        yield Adopter(small, project, steps)
    finally:
        made.pulumi("stack", "rm", "adopter", "--yes", "--force")


def test_an_imported_resource_is_what_the_program_says(adopter: Adopter) -> None:
    found = {
        token: steps for token, steps in adopter.steps.items() if token.startswith((*_PLUGINS, _CREDENTIAL_SECRET))
    }

    assert found.keys() > _SHOWN.keys()
    for token, steps in found.items():
        operation, paths = _SHOWN.get(token, ("same", set()))
        assert {step["op"] for step in steps} == {operation}, token
        for step in steps:
            changed = set(step["detailedDiff"] or {})
            # Those of pods have many defaults.
            assert paths <= changed if token == _DEPLOYMENT else changed == paths, (token, changed)


def test_a_refresh_reads_again_what_the_import_has_read(adopter: Adopter) -> None:
    adopter.pulumi("refresh", "--yes", "--skip-preview", "--expect-no-changes")


def test_what_lives_in_a_state_alone_can_not_be_imported(adopter: Adopter) -> None:
    resources = [
        {"type": token, "name": token.rpartition(":")[2], "id": "x"} for token in OWN if token not in _IN_A_VAULT
    ]
    (adopter.project / "own.json").write_text(json.dumps({"resources": resources}), encoding="utf-8")

    printed = adopter.pulumi(
        "import", "--file", "own.json", "--yes", "--skip-preview", "--generate-code=false", check=False
    )

    for resource in resources:
        reason = _NOT_IMPORTED.get(resource["type"], "it exists in the state of its stack alone")
        assert f"{resource['name']} cannot be imported: {reason}" in printed
    assert "Remove the import and let the next `up` create it" in printed
    assert "Traceback" not in printed


def _write_spec(project: Path, providers: Mapping[str, Any], resources: list[dict[str, Any]]) -> None:
    (project / "spec.json").write_text(json.dumps({"providers": providers, "resources": resources}), encoding="utf-8")


def _import_file(adopter: Adopter, things: list[dict[str, Any]]) -> dict[str, Any]:
    exported = json.loads(adopter.pulumi("stack", "export"))["deployment"]["resources"]
    providers = {
        resource["urn"].rpartition("::")[2]: resource["urn"] for resource in exported if "providers" in resource["type"]
    }
    resources = [
        {key: thing[key] for key in ("type", "name", "id")}
        # The project's own plugin has no provider but the default one.
        | ({} if thing["type"] in OWN else {"provider": thing["type"].partition(":")[0]})
        for thing in things
    ]
    return {"nameTable": providers, "resources": resources}


def _plain(value: Any) -> Any:
    """An exported value with its secrets in clear (`4dabf...` is the engine's mark of one)."""
    if isinstance(value, dict):
        if "4dabf18193072939515e22adb298388d" in value:
            return json.loads(value["plaintext"])
        return {key: _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list) else value
