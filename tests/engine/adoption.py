"""The adoption of a hosted cluster of HyperShift's scripts: the commands of `docs/guides/migration.md`, on a stack."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from azure.identity import CertificateCredential

from identity.catalogue import CONTROL_PLANE
from identity.catalogue_rows import ControlPlaneIdentity
from identity.credentials.document import decode
from tests.engine.clients import Client
from tests.engine.hypershift_scripts import VAULT, HyperShiftScripts
from tests.harness import LocalStack, running_stack

_ARM: Final = "https://management.core.windows.net//.default"
_AKS: Final = "resourceGroups/aks-local/providers/Microsoft.ContainerService/managedClusters/aks-mgmt-local"
SCRIPTED: Final = [row for row in CONTROL_PLANE if row.setting is None and row.enabled_by_default]
"""The identities that the scripts make."""


@dataclass(frozen=True)
class Adoption:
    """The stack after the adoption, what the commands printed, and what there was before.

    `client` signed in as one identity after another from before the adopting `up` until after it, with what the vault
    had at that moment.
    """

    stack: LocalStack
    scripts: HyperShiftScripts
    report: Mapping[str, Any]
    steps: Mapping[str, str]
    before: set[tuple[str, str]]
    import_file: Path
    client: Client

    def run_again(self) -> dict[str, Any]:
        """`idstack import scripts` once more."""
        return _import_scripts(self.stack, self.scripts, self.import_file)

    def require_both_sign_in(self, row: ControlPlaneIdentity) -> None:
        """Assert that the scripts' certificate and that of the vault, which is another one, sign the identity in."""
        found = self.stack.control_plane[row.field]
        new = decode(self.scripts.vault("GET", VAULT, f"/secrets/{found['credentialsSecretName']}")["value"])
        earlier = self.scripts.credential_pem(row.secret_stem)
        assert new.thumbprint == found["thumbprint"]
        assert new.key_material.pem() != earlier
        assert _signs_in(self.stack, found["clientID"], earlier)
        assert _signs_in(self.stack, found["clientID"], new.key_material.pem())


@contextmanager
def adopted_cluster(kind: type[HyperShiftScripts], root: Path, directory: Path) -> Iterator[Adoption]:
    """What the scripts make, the stack beside, and its adoption; `directory` is for the scripts' files."""
    with running_stack(root) as first:
        first.administer()
        scripts = kind(first, directory)
        cluster = scripts.arm("GET", f"/subscriptions/{first.environment.subscription_id}/{_AKS}", "2025-09-01")
        add_on = cluster["properties"]["addonProfiles"]["azureKeyvaultSecretsProvider"]["identity"]
        [configured] = first.configuration("hostedClusters")
        del configured["identities"]
        scripts.run(configured["infraID"], configured["issuerURL"], add_on["objectId"])
        stack = first.beside(
            "local-adopted",
            *("tags", "protect", "managementCluster", "probe"),
            credentials={"propagation": {"successes": 5, "settleSeconds": 2, "timeoutSeconds": 60}},
            # Of the rest the HostedCluster says what it is.
            hostedClusters=[{key: configured[key] for key in ("name", "kms", "externalDnsDomain")}],
        )
        (directory / "hc1.yaml").write_text(yaml.safe_dump(_hosted_cluster(configured)), encoding="utf-8")
        before = stack.inventory()
        import_file = directory / "import.json"
        report = _import_scripts(stack, scripts, import_file)
        assert stack.inventory() == before, "so far nothing has changed in Azure"
        stack.idstack("import", "file", str(import_file), "--stack", stack.name)
        assert stack.inventory() == before, "nor with the import"
        with _signing_in(stack, scripts) as client:
            client.await_certificates(len(SCRIPTED))
            steps = stack.up_with_steps()
            client.await_certificates(2 * len(SCRIPTED))
        yield Adoption(stack, scripts, report, steps, before, import_file, client)


@contextmanager
def _signing_in(stack: LocalStack, scripts: HyperShiftScripts) -> Iterator[Client]:
    """A client that signs in as each identity of the scripts in turn, with the document of the moment in the vault."""
    named = yaml.safe_load(scripts.control_plane_file.read_text(encoding="utf-8"))
    secrets = itertools.cycle([named[row.field]["credentialsSecretName"] for row in SCRIPTED])

    def sign_in() -> str:
        document = decode(scripts.vault("GET", VAULT, f"/secrets/{next(secrets)}")["value"])
        assert _signs_in(stack, document.client_id, document.key_material.pem())
        return document.thumbprint

    with Client(sign_in) as client:
        yield client


def _signs_in(stack: LocalStack, client_id: str, pem: bytes) -> bool:
    local = stack.environment
    with CertificateCredential(
        local.tenant_id,
        client_id,
        certificate_data=pem,
        authority=local.authority_host,
        disable_instance_discovery=True,
        connection_verify=local.ca_file,
    ) as credential:
        return bool(credential.get_token(_ARM).token)


def _import_scripts(stack: LocalStack, scripts: HyperShiftScripts, import_file: Path) -> dict[str, Any]:
    files = ("--cp", str(scripts.control_plane_file), "--dp", str(scripts.data_plane_file))
    manifest = ("--hosted-cluster", str(import_file.with_name("hc1.yaml")))
    options = ("--cluster", "hc1", *files, *manifest, "--output", str(import_file), "--stack", stack.name, "--json")
    report: dict[str, Any] = json.loads(stack.idstack("import", "scripts", *options).stdout)
    return report


def _hosted_cluster(configured: Mapping[str, Any]) -> dict[str, Any]:
    """The HostedCluster of the scripts, as far as it says where it is."""
    names = ("resourceGroup", "vnetID", "subnetID", "securityGroupID")
    return {
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "HostedCluster",
        "metadata": {"name": configured["name"], "namespace": "clusters"},
        "spec": {
            "infraID": configured["infraID"],
            "issuerURL": configured["issuerURL"],
            "dns": configured["dns"],
            "platform": {"azure": {"location": "eastus", **{name: configured[name] for name in names}}},
        },
    }
