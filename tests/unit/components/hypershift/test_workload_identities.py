"""A hosted cluster that signs in by workload identities: what the program registers for it."""

from __future__ import annotations

from typing import Any

import pytest

from identity.catalogue import CONTROL_PLANE
from identity.naming import role_assignment_name
from tests.unit.components import world
from tests.unit.components.configurations import CONFIGURATIONS, SELF_MANAGED, WITHOUT_VAULT
from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.world import hosted_cluster

IDENTITY = "azure-native:managedidentity:UserAssignedIdentity"
CREDENTIAL = "azure-native:managedidentity:FederatedIdentityCredential"
ASSIGNMENT = "azure-native:authorization:RoleAssignment"
ISSUER = "https://hc1oidc.blob.core.windows.net/hc1oidc"
PUBLIC = [row for row in CONTROL_PLANE if row.workload is not None and not row.workload.private]


@pytest.fixture(scope="module")
def recorder(program: Program) -> RecordingMonitor:
    return program(**CONFIGURATIONS["workload identities"], invokes=world.lookups())


def test_each_row_has_a_managed_identity_as_create_iam_names_it(recorder: RecordingMonitor) -> None:
    names = {resource.inputs["resourceName"] for resource in recorder.all(IDENTITY)}

    assert names == {f"hc1-{row.workload.name}-hc1-infra" for row in PUBLIC if row.workload is not None}


def test_every_subject_is_trusted_with_the_audience_of_hypershift(recorder: RecordingMonitor) -> None:
    credentials = recorder.all(CREDENTIAL)

    assert {credential.inputs["subject"] for credential in credentials} == {
        subject.subject for row in PUBLIC if row.workload is not None for subject in row.workload.subjects
    }
    assert {(credential.inputs["issuer"], *credential.inputs["audiences"]) for credential in credentials} == {
        (ISSUER, "openshift")
    }


def test_roles_are_named_as_hypershifts_cli_names_them(recorder: RecordingMonitor) -> None:
    names = {(resource.inputs["scope"], resource.inputs["roleAssignmentName"]) for resource in recorder.all(ASSIGNMENT)}
    group = f"{world.GROUPS}/hc1-managed"

    of_group = {name for scope, name in names if scope == group}
    assert of_group == {
        role_assignment_name("hc1-infra", row.component, group) for row in PUBLIC if row.setting is None
    }


def test_nothing_has_a_certificate_or_a_vault(recorder: RecordingMonitor) -> None:
    kinds = {resource.type for resource in recorder.registered if not resource.is_component}

    assert not [kind for kind in kinds if kind.startswith(("azuread:", "idstack:", "azure-native:keyvault:"))] or (
        {kind for kind in kinds if kind.startswith("idstack:")} == {"idstack:index:StackOwner"}
    )
    assert not {"keyVaultId", "keyVaultName", "keyVaultUri", "keyVaultUserClientId"} & {*recorder.stack_outputs.values}


def test_the_hosted_cluster_names_them_in_the_second_way(recorder: RecordingMonitor) -> None:
    spec = recorder.stack_outputs.values["hostedClusters"]["hc1"]["hostedClusterSpec"]
    azure = spec["platform"]["azure"]["azureAuthenticationConfig"]

    assert azure["azureAuthenticationConfigType"] == "WorkloadIdentities"
    assert set(azure["workloadIdentities"]) == {row.field for row in PUBLIC if row.setting is None}
    assert "managedIdentities" not in azure
    assert set(spec["secretEncryption"]["kms"]["azure"]) == {"activeKey", "workloadIdentity"}
    assert spec["platform"]["azure"]["topology"] == "Public"


def test_the_issuer_is_there_before_it_is_trusted(program: Program) -> None:
    recorder = program(**CONFIGURATIONS["workload identities and an issuer"], invokes=world.lookups())
    (documents,) = recorder.all("idstack:index:IssuerDocuments")
    firsts = [
        resource for resource in recorder.all(CREDENTIAL) if resource.name.endswith(("-account", "-node", "-registry"))
    ]

    assert firsts
    assert all(documents.urn in first.request.dependencies for first in firsts)
    assert recorder.stack_outputs.values["keyVaultName"] == "kv-idstack-dev", "it has the key that signs"
    assert "keyVaultUserClientId" not in recorder.stack_outputs.values


def test_another_way_is_refused_before_anything_is_registered(program: Program) -> None:
    azure: Any = {"azureAuthenticationConfig": {"managedIdentities": {}}}
    described = {"hostedClusterSpec": {"platform": {"azure": azure}}, "credentialsInUse": {}}
    answer = {"outputs": {"hostedClusters": {"hc1": described}}, "secretOutputNames": []}

    recorder = program(
        **CONFIGURATIONS["workload identities"],
        invokes=world.lookups(readStackOutputs=answer),
        options={"refused": True},
    )

    assert recorder.problems == [("hostedClusters[0].authentication", "authentication-changed")]
    assert recorder.names() == []


def test_the_identity_that_attaches_others_to_nodes_is_the_federated_one(program: Program) -> None:
    registry = f"{world.GROUPS}/images-dev/providers/Microsoft.ContainerRegistry/registries/imagesdev"
    cluster = hosted_cluster(**SELF_MANAGED, managedIdentities=["acrPull"], containerRegistryID=registry)

    recorder = program(hostedClusters=[cluster], **WITHOUT_VAULT, invokes=world.lookups())

    assert [resource for resource in recorder.all(ASSIGNMENT) if "attacher" in resource.name]
