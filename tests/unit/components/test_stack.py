"""The whole stack: its outputs, its shape, what is secret in it, and its preview."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest

from tests.unit.components.program import Program
from tests.unit.components.recorder import Properties, RecordingMonitor
from tests.unit.components.simulation import UNKNOWN
from tests.unit.components.world import (
    ADD_ON,
    GROUPS,
    MANAGEMENT_CLUSTER,
    TENANT,
    VAULT,
    with_managed_identity,
)

# Package of a resource's type: the explicit provider that must manage it.
PROVIDERS = {"azure-native": "azure", "azuread": "entra", "kubernetes": "kubernetes"}


IN_USE = {
    **{
        field: {"secret": f"{VAULT}/secrets/{secret}-hc1-json", "principal": "entra-application"}
        for field, secret in {
            "cloudProvider": "cloud-provider",
            "nodePoolManagement": "nodepool-mgmt",
            "controlPlaneOperator": "cpo",
            "imageRegistry": "ciro",
            "ingress": "ingress",
            "network": "cncc",
            "disk": "azure-disk",
            "file": "azure-file",
            "kms": "kms",
        }.items()
    },
    **{
        f"{field}MSIClientID": {
            "principal": f"{GROUPS}/identity-dev/providers/Microsoft.ManagedIdentity/userAssignedIdentities/"
            f"hc1-{name}-hc1-infra"
        }
        for field, name in {"imageRegistry": "image-registry", "disk": "disk", "file": "file"}.items()
    },
}


def test_it_exports_vault_key_vault_user_and_hosted_clusters(stack: RecordingMonitor) -> None:
    outputs = dict(stack.stack_outputs.values)
    hosted_clusters = outputs.pop("hostedClusters")

    assert outputs == {
        "keyVaultId": VAULT,
        "keyVaultName": "kv-idstack-dev",
        "keyVaultUri": "https://kv-idstack-dev.vault.azure.net/",
        "keyVaultUserClientId": ADD_ON["clientId"],
        "clusterSide": "stack",
        "managementClusterId": MANAGEMENT_CLUSTER,
        "tenantId": TENANT,
    }
    registered = stack.outputs_of("hc1")
    assert hosted_clusters == {
        "hc1": {
            "namespace": "clusters",
            "controlPlane": registered["control_plane"],
            "dataPlane": registered["data_plane"],
            "hostedClusterSpec": registered["spec"],
            "credentialsInUse": IN_USE,
        }
    }


def test_nothing_that_it_or_a_component_exports_is_secret(stack: RecordingMonitor) -> None:
    assert {urn: outputs.secrets for urn, outputs in stack.outputs.items() if outputs.secrets} == {}


def test_every_component_registers_its_outputs(stack: RecordingMonitor) -> None:
    components = {each.urn for each in stack.registered if each.is_component}

    assert len(components) > 50
    assert components - stack.outputs.keys() == set()


def test_every_resource_belongs_to_a_component_and_is_named_after_it(stack: RecordingMonitor) -> None:
    top = {each.name for each in stack.registered if each.parent == "idstack-test"}
    misnamed = [
        each.name for each in stack.registered if each.name not in top and not each.name.startswith(f"{each.parent}-")
    ]

    assert top == {"azure", "entra", "kubernetes", "vault", "key-vault-user", "hc1"}
    assert misnamed == []


def test_every_type_of_component_is_the_projects_own(stack: RecordingMonitor) -> None:
    assert {each.type.partition(":")[0] for each in stack.registered if each.is_component} == {"idstack"}


def test_every_resource_has_the_explicit_provider_of_its_plugin(stack: RecordingMonitor) -> None:
    """The project's own plugin has nothing to configure, so its default provider can reach nothing."""
    managed = [
        each for each in stack.registered if not each.is_component and not each.type.startswith("pulumi:providers:")
    ]
    wrong = [each.urn for each in managed if each.provider != PROVIDERS.get(each.type.partition(":")[0], "")]

    assert {each.type.partition(":")[0] for each in managed} == {*PROVIDERS, "idstack"}
    assert wrong == []


def test_only_the_vault_and_the_applications_are_protected(stack: RecordingMonitor) -> None:
    protected = {each.type for each in stack.registered if each.request.protect}

    assert protected == {"azure-native:keyvault:Vault", "azuread:index/application:Application"}


def test_the_deployer_owns_the_applications(stack: RecordingMonitor) -> None:
    owners = [each.inputs["owners"] for each in stack.all("azuread:index/application:Application")]

    assert owners == [["dddddddd-0000-4000-8000-000000000001"]] * 9


def _in_clear(recorder: RecordingMonitor) -> Iterator[str]:
    for each in recorder.registered:
        yield from each.properties.unmarked_strings()
    for outputs in recorder.outputs.values():
        yield from outputs.unmarked_strings()


def _shows_a_key(text: str) -> bool:
    """Whether a private key is in it, as PEM or in base64 as `client_secret` begins."""
    return "PRIVATE KEY" in text or base64.b64encode(b"-----BEGIN PRIVATE KEY--").decode() in text


def test_no_private_key_is_anywhere_but_behind_a_secret_mark(stack: RecordingMonitor) -> None:
    unmarked = [text for each in stack.registered for text in Properties(each.inputs, frozenset()).unmarked_strings()]

    assert sum(map(_shows_a_key, unmarked)) == 2 * 9 + 9, "two gates and one secret for each of nine identities"
    assert [text for text in _in_clear(stack) if _shows_a_key(text)] == []


def test_an_imported_document_is_nowhere_but_behind_a_secret_mark(program: Program, msi_document: str) -> None:
    recorder = program(
        hostedClusters=with_managed_identity({"value": msi_document}),
        secret_keys=("hostedClusters",),
        clusterSide="hypershift",
    )

    stored = recorder.one("azure-native:keyvault:Secret", "hc1-image-registry-credential-secret")
    assert stored.inputs["properties"]["value"] == msi_document
    assert [text for text in _in_clear(recorder) if _shows_a_key(text)] == []


def test_several_hosted_clusters_fit_into_one_stack(two_clusters: RecordingMonitor, stack: RecordingMonitor) -> None:
    urns = [each.urn for each in two_clusters.registered]
    assignments = two_clusters.all("azure-native:authorization:RoleAssignment")
    names = [each.inputs["roleAssignmentName"] for each in assignments]
    assert len(set(urns)) == len(urns)
    assert len(set(names)) == len(names) == 2 * 22 + 1
    exported = two_clusters.stack_outputs.values["hostedClusters"]
    assert set(exported) == {"hc1", "hc2"}
    assert exported["hc1"] == stack.stack_outputs.values["hostedClusters"]["hc1"]


@pytest.fixture(scope="module")
def preview(program: Program) -> RecordingMonitor:
    """A preview of the first `up`, when nothing exists."""
    return program(options={"preview": True})


def test_a_preview_shows_every_resource_that_up_makes(preview: RecordingMonitor, stack: RecordingMonitor) -> None:
    assert preview.names() == stack.names()


def test_a_preview_shows_all_of_a_secret_but_its_value(preview: RecordingMonitor) -> None:
    secret = preview.one("azure-native:keyvault:Secret", "hc1-kms-credential-secret")

    assert secret.inputs == {
        "secretName": "kms-hc1-json",
        "resourceGroupName": "identity-dev",
        "vaultName": "kv-idstack-dev",
        "properties": {
            "value": UNKNOWN,
            "contentType": "application/json",
            "attributes": {"enabled": True, "notBefore": 1795251300, "expires": 1803027300},
        },
        "tags": {
            "team": "identity",
            "renew_after": "2027-01-05T08:55:00Z",
            "cannot_renew_after": "2027-02-19T08:55:00Z",
        },
    }
    assert secret.secrets == {"properties.value"}


def test_a_preview_exports_names_and_leaves_open_what_azure_decides(preview: RecordingMonitor) -> None:
    outputs = preview.stack_outputs.values
    kms = outputs["hostedClusters"]["hc1"]["hostedClusterSpec"]["secretEncryption"]["kms"]["azure"]["kms"]

    assert outputs["keyVaultUri"] == UNKNOWN
    assert kms == {"clientID": UNKNOWN, "credentialsSecretName": "kms-hc1-json", "objectEncoding": "utf-8"}


def test_a_preview_keeps_the_order_of_up(preview: RecordingMonitor) -> None:
    secret = preview.one("azure-native:keyvault:Secret", "hc1-kms-credential-secret")
    probe = preview.one("kubernetes:apps/v1:Deployment", "hc1-cluster-side-probe-kms-deployment")

    assert preview.waits_for(secret, preview.one("idstack:index:SignInGate", "hc1-kms-entra-gate-a"))
    assert preview.waits_for(probe, secret)
