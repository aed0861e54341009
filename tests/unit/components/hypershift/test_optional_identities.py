"""The identities that somebody has to switch on: with them a hosted cluster has what their rows say, and no more."""

from __future__ import annotations

import json
from typing import Any

import pytest

from identity.catalogue import CONTROL_PLANE
from identity.catalogue import OPTIONAL as MANAGED
from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.simulation import a_uuid
from tests.unit.components.world import GROUPS, grants, hosted_cluster, lookups

ACCOUNT = f"{GROUPS}/backup-dev/providers/Microsoft.Storage/storageAccounts/backupsdev"
ASSIGNMENT = "azure-native:authorization:RoleAssignment"
IDENTITY = "azure-native:managedidentity:UserAssignedIdentity"
OPTIONAL = [row.field for row in CONTROL_PLANE if not row.enabled_by_default]
ZONE = f"{GROUPS}/public-dev/providers/Microsoft.Network/dnszones/example.com"


def switched_on(*fields: str) -> dict[str, Any]:
    """`hc1` with these identities."""
    return hosted_cluster(identities={field: {"enabled": True} for field in fields}, backupStorageAccountID=ACCOUNT)


@pytest.fixture(scope="module")
def backup(program: Program) -> RecordingMonitor:
    return program(hostedClusters=[switched_on("etcdBackup")])


def test_everything_that_was_there_is_the_same(stack: RecordingMonitor, backup: RecordingMonitor) -> None:
    others = {resource.urn: resource.inputs for resource in backup.registered if "etcd-backup" not in resource.name}

    assert others == {resource.urn: resource.inputs for resource in stack.registered}
    assert backup.outputs_of("hc1")["spec"] == stack.outputs_of("hc1")["spec"], "the API has no field for it"
    assert set(OPTIONAL).isdisjoint(stack.outputs_of("hc1")["control_plane"])
    assert grants(backup, "hc1-etcd-backup") == {("ba92f5b4-2d11-453d-a403-e96b0029c9fe", ACCOUNT)}
    row = backup.outputs_of("hc1")["control_plane"]["etcdBackup"]
    names = (row["credentialsSecretName"], row["secretProviderClass"])
    assert names == ("etcd-backup-hc1-json", "managed-azure-etcd-backup")


@pytest.mark.parametrize(
    ("cluster", "function", "key"),
    [
        (switched_on("etcdBackup"), "getStorageAccount", "backupStorageAccountID"),
        (hosted_cluster(managedIdentities=["externalDNS"], externalDnsZoneID=ZONE), "getZone", "externalDnsZoneID"),
    ],
    ids=["storage account", "zone"],
)
def test_what_a_role_is_for_must_exist(program: Program, cluster: dict[str, Any], function: str, key: str) -> None:
    gone = Exception('Status=404 Code="ResourceNotFound"')
    recorder = program(hostedClusters=[cluster], invokes=lookups(**{function: gone}), options={"refused": True})

    assert recorder.problems == [(f"hostedClusters[0].{key}", "resource-missing")]


def test_the_upload_finds_its_document_where_hypershift_mounts_it(backup: RecordingMonitor) -> None:
    pod = backup.one("kubernetes:apps/v1:Deployment", "hc1-cluster-side-probe-etcd-backup-deployment").inputs["spec"][
        "template"
    ]["spec"]
    words = pod["containers"][0]["args"]
    proof = json.loads(words[words.index("--proof") + 1])

    assert pod["volumes"][0]["csi"]["volumeAttributes"] == {"secretProviderClass": "managed-azure-etcd-backup"}
    # hypershift-operator/controllers/etcdbackup/reconciler.go:1045.
    assert words[:2] == ["--credential", "file:/etc/etcd-backup-creds/credentials"]
    [spec] = [
        resource.inputs["spec"]
        for resource in backup.all("kubernetes:secrets-store.csi.x-k8s.io/v1:SecretProviderClass")
        if resource.inputs["metadata"]["name"] == "managed-azure-etcd-backup"
    ]
    assert spec["parameters"]["objects"] == (
        "\narray:\n  - |\n    objectName: etcd-backup-hc1-json\n    objectAlias: credentials\n"
        "    objectEncoding: utf-8\n    objectType: secret\n"
    )
    assert proof["url"].endswith(f"{ACCOUNT}/blobServices/default/containers?api-version=2023-05-01")
    assert proof["action"] == "Microsoft.Storage/storageAccounts/blobServices/containers/read"


REGISTRY = f"{GROUPS}/images-dev/providers/Microsoft.ContainerRegistry/registries/imagesdev"
ISSUER = "https://oidc.example.com/mgmt/"
IDENTITIES = f"{GROUPS}/identity-dev/providers/Microsoft.ManagedIdentity/userAssignedIdentities"
PULL = f"{IDENTITIES}/hc1-acr-pull-hc1-infra"


@pytest.fixture(scope="module")
def managed(program: Program) -> RecordingMonitor:
    cluster = hosted_cluster(
        managedIdentities=[row.field for row in MANAGED],
        backupStorageAccountID=ACCOUNT,
        containerRegistryID=REGISTRY,
        externalDnsZoneID=ZONE,
        managementIssuerURL=ISSUER,
    )
    return program(hostedClusters=[cluster])


@pytest.mark.parametrize(
    ("name", "role", "scope"),
    [
        ("acr-pull", "7f951dda-4ed3-4680-a7ca-43fe172d538d", REGISTRY),
        ("external-dns", "befefa01-2a29-4197-83a8-272ff33ce314", ZONE),
        ("velero", "ba92f5b4-2d11-453d-a403-e96b0029c9fe", ACCOUNT),
    ],
)
def test_a_managed_identity_has_its_role_at_its_resource(
    managed: RecordingMonitor, name: str, role: str, scope: str
) -> None:
    assert grants(managed, f"hc1-{name}") == {(role, scope)}
    # External DNS lists the zones of the group, too.
    right = managed.one(ASSIGNMENT, "hc1-external-dns-roles-2-external-zone-group").inputs
    reader = right["roleDefinitionId"].rpartition("/")[2]
    assert (reader, right["scope"]) == ("acdd72a7-3385-48ef-bd42-f606fba81ae7", f"{GROUPS}/public-dev")
    assert right["principalId"] == managed.one(ASSIGNMENT, "hc1-external-dns-roles-external-zone").inputs["principalId"]


def test_the_cluster_api_provider_may_attach_the_identity_of_pulls(managed: RecordingMonitor) -> None:
    assert grants(managed, "hc1-acr-pull-attacher") == {("f1a07417-d97a-45cb-824c-7a7467783830", PULL)}
    right = managed.one(ASSIGNMENT, "hc1-acr-pull-attacher-roles-identity")
    own = managed.one(ASSIGNMENT, "hc1-node-pool-management-roles-managed")
    assert right.inputs["principalId"] == own.inputs["principalId"]
    assert managed.waits_for(right, managed.one(IDENTITY, "hc1-acr-pull-identity"))
    assert [resource.name for resource in managed.all(ASSIGNMENT) if "attacher" in resource.name] == [right.name]


def test_the_nodes_pull_images_as_the_identity_that_the_hosted_cluster_names(managed: RecordingMonitor) -> None:
    azure = managed.outputs_of("hc1")["spec"]["platform"]["azure"]
    config_map = managed.one("kubernetes:core/v1:ConfigMap", "hc1-cluster-side-nodes-config-map")
    nodes = config_map.inputs["data"]["cloud.conf"]

    assert azure["containerRegistry"] == {
        "credentials": {"type": "ManagedIdentity", "managedIdentity": {"resourceID": PULL}}
    }
    assert list(json.loads(nodes).items())[-1] == ("userAssignedIdentityID", PULL)
    secrets = [json.dumps(resource.inputs) for resource in managed.all("kubernetes:core/v1:Secret")]
    assert not [secret for secret in secrets if "userAssignedIdentityID" in secret], "the control plane has its own"


def test_service_accounts_of_the_management_cluster_use_the_identity_of_backups(managed: RecordingMonitor) -> None:
    found = [
        resource.inputs
        for resource in managed.all("azure-native:managedidentity:FederatedIdentityCredential")
        if "velero" in resource.name
    ]

    assert {credential["subject"] for credential in found} == {
        "system:serviceaccount:openshift-adp:velero",
        "system:serviceaccount:hypershift:etcd-backup-job",
    }
    assert {(credential["issuer"], *credential["audiences"]) for credential in found} == {
        (ISSUER, "api://AzureADTokenExchange")
    }


def test_the_outputs_name_the_managed_identities(stack: RecordingMonitor, managed: RecordingMonitor) -> None:
    described = managed.stack_outputs.values["hostedClusters"]["hc1"]

    assert described["managedIdentities"]["acrPull"] == {
        "clientID": a_uuid("hc1-acr-pull-identity", "client"),
        "resourceID": PULL,
    }
    assert described["credentialsInUse"]["acrPull"] == {"principal": PULL, "location": "eastus"}
    assert described["externalDnsZone"] == ZONE.rpartition("/")[2]
    assert "managedIdentities" not in stack.stack_outputs.values["hostedClusters"]["hc1"]


def test_their_resources_are_looked_up_in_their_groups(managed: RecordingMonitor) -> None:
    invoked = {call.function: call.arguments for call in managed.invoked}

    account = {"resourceGroupName": "backup-dev", "accountName": "backupsdev"}
    registry = {"resourceGroupName": "images-dev", "registryName": "imagesdev"}
    assert invoked["azure-native:storage:getStorageAccount"] == account
    assert invoked["azure-native:containerregistry:getRegistry"] == registry
