"""A hosted cluster that HyperShift's scripts made is adopted: nothing is deleted or replaced, no sign-in fails."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from azure.identity import CertificateCredential

from identity.catalogue import CONTROL_PLANE
from identity.credentials.document import decode
from tests.engine.hypershift_scripts import VAULT, HyperShiftScripts
from tests.harness import LocalStack, running_stack

ARM = "https://management.core.windows.net//.default"
AKS = "resourceGroups/aks-local/providers/Microsoft.ContainerService/managedClusters/aks-mgmt-local"
KEPT = (
    *("cloud", "tenantId", "subscriptionId", "location", "resourceGroup", "tags", "protect", "managementCluster"),
    "probe",
)
SCRIPTED = [row for row in CONTROL_PLANE if row.setting is None and row.enabled_by_default]


@dataclass(frozen=True)
class Adoption:
    """The stack after the adoption, what the commands printed, and what there was before."""

    stack: LocalStack
    scripts: HyperShiftScripts
    report: Mapping[str, Any]
    steps: Mapping[str, str]
    before: set[tuple[str, str]]
    import_file: Path

    def run_again(self) -> dict[str, Any]:
        """`idstack import scripts` once more."""
        return _import_scripts(self.stack, self.scripts, self.import_file)

    def signs_in(self, client_id: str, pem: bytes) -> bool:
        """Whether a certificate with its key signs the identity in."""
        local = self.stack.environment
        credential = CertificateCredential(
            local.tenant_id,
            client_id,
            certificate_data=pem,
            authority=local.authority_host,
            disable_instance_discovery=True,
            connection_verify=local.ca_file,
        )
        return bool(credential.get_token(ARM).token)


@pytest.fixture(scope="module")
def adopted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adoption]:
    """The scripts' objects, the stack beside, and the three commands of `docs/migration.md`."""
    directory = tmp_path_factory.mktemp("scripts")
    with running_stack(tmp_path_factory.mktemp("stack")) as first:
        scripts = HyperShiftScripts(first, directory)
        cluster = scripts.arm("GET", f"/subscriptions/{first.environment.subscription_id}/{AKS}", "2025-09-01")
        add_on = cluster["properties"]["addonProfiles"]["azureKeyvaultSecretsProvider"]["identity"]
        [configured] = first.configuration("hostedClusters")
        del configured["identities"]
        scripts.run(configured["infraID"], configured["issuerURL"], add_on["objectId"])
        stack = first.beside(
            "local-adopted",
            **{key: first.configuration(key) for key in KEPT},
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
        yield Adoption(stack, scripts, report, stack.up_with_steps(), before, import_file)


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


def test_the_next_up_deletes_and_replaces_nothing(adopted: Adoption) -> None:
    assert set(adopted.steps.values()) == {"create", "update"}
    assert adopted.before <= adopted.stack.inventory()


def test_the_next_up_creates_no_application_and_no_identity_again(adopted: Adoption) -> None:
    created = {name for name, operation in adopted.steps.items() if operation == "create"}
    kinds = ("-entra-application", "-entra-principal", "-identity", "-vault")

    # The key-vault-user's role is on the vault itself, the scripts' is on its resource group.
    assert {name for name in created if name.endswith(kinds)} - {"key-vault-user-roles-vault"} == {
        "hc1-kms-entra-application",
        "hc1-kms-entra-principal",
    }


def test_the_hosted_cluster_goes_on_with_its_client_ids_and_secrets(adopted: Adoption) -> None:
    named = json.loads(adopted.scripts.control_plane_file.read_text(encoding="utf-8"))
    found = adopted.stack.control_plane
    data_plane = adopted.stack.outputs["hostedClusters"]["hc1"]["dataPlane"]

    for row in SCRIPTED:
        for key in ("clientID", "credentialsSecretName", "objectEncoding"):
            assert found[row.field][key] == named[row.field][key]
    lines = adopted.scripts.data_plane_file.read_text(encoding="utf-8")
    assert all(f'"{field}": {client_id}' in lines for field, client_id in data_plane.items())


@pytest.mark.parametrize("row", SCRIPTED, ids=lambda row: row.field)
def test_the_earlier_and_the_new_credential_both_sign_in(adopted: Adoption, row: Any) -> None:
    client_id = adopted.stack.control_plane[row.field]["clientID"]
    secret = adopted.stack.control_plane[row.field]["credentialsSecretName"]
    new = decode(adopted.scripts.vault("GET", VAULT, f"/secrets/{secret}")["value"])
    earlier = adopted.scripts.credential_pem(row.secret_stem)

    assert new.thumbprint == adopted.stack.control_plane[row.field]["thumbprint"]
    assert new.key_material.pem() != earlier
    assert adopted.signs_in(client_id, earlier)
    assert adopted.signs_in(client_id, new.key_material.pem())


def test_the_scripts_document_stays_readable_as_the_version_before(adopted: Adoption) -> None:
    secret = adopted.stack.control_plane[SCRIPTED[0].field]["credentialsSecretName"]
    versions = adopted.scripts.vault("GET", VAULT, f"/secrets/{secret}/versions")["value"]

    assert [each["attributes"]["enabled"] for each in versions] == [True, True]


def test_a_preview_afterwards_shows_nothing(adopted: Adoption) -> None:
    assert adopted.stack.preview() == {}


def test_the_report_says_what_the_scripts_do_not_make(adopted: Adoption) -> None:
    lines = {each["identity"]: each for each in adopted.report["findings"]}

    assert lines["kms"]["differs"] == "the scripts make none"
    assert lines["velero"]["next_up"] == "leaves it alone"
    for row in SCRIPTED:
        assert "PKCS#12; document without renew_after, cannot_renew_after" in lines[row.field]["differs"]
        assert "another" not in lines[row.field]["differs"], "every role is the stack's already"


def test_a_second_run_finds_everything_in_the_state(adopted: Adoption) -> None:
    again = adopted.run_again()

    assert again["configured"] == {}
    assert json.loads(adopted.import_file.read_text(encoding="utf-8"))["resources"] == []
    assert lines_of(again) == {"nothing: the state has it"}


def lines_of(report: Mapping[str, Any]) -> set[str]:
    """What the next `up` does with each identity of the files."""
    fields = {row.field for row in SCRIPTED}
    return {each["next_up"] for each in report["findings"] if each["identity"] in fields}
