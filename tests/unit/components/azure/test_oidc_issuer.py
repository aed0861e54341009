"""An issuer that the stack makes: a public container without account keys, a key for each number, and their order."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.simulation import a_uuid
from tests.unit.components.world import GROUPS, MANAGEMENT_CLUSTER, ROLES, TENANT, VAULT, hosted_cluster

ISSUER = "https://hc1created.blob.core.windows.net/hc1created"
GIVEN = {"manifest": {"spec": {"release": {"image": "registry.example.com/release:1"}}}}
KEY = "idstack:index:SigningKey"
DOCUMENTS = "idstack:index:IssuerDocuments"
SECRET = "idstack:index:SigningKeySecret"
FEDERATED = "azure-native:managedidentity:FederatedIdentityCredential"


def cluster(**changes: Any) -> dict[str, Any]:
    given = hosted_cluster(issuer="create", issuerName="hc1created", hostedCluster=GIVEN, **changes)
    del given["issuerURL"]
    return given


def issuer(program: Program, key: dict[str, Any] | None = None, **changes: Any) -> RecordingMonitor:
    own = {} if key is None else {"serviceAccountSigningKey": key}
    return program(clusterSide="hypershift", hostedClusters=[cluster(**own)], **changes)


@pytest.fixture(scope="module")
def made(program: Program) -> RecordingMonitor:
    return issuer(program)


@pytest.fixture(scope="module")
def rotating(program: Program) -> RecordingMonitor:
    return issuer(program, {"published": [1, 2], "signing": 2})


def test_an_account_without_keys_holds_a_public_container(made: RecordingMonitor) -> None:
    place = {"accountName": "hc1created", "resourceGroupName": "identity-dev"}
    account = made.one("azure-native:storage:StorageAccount", "hc1-issuer-account")

    assert account.inputs == {
        **place,
        "location": "eastus",
        "tags": {"team": "identity"},
        "kind": "StorageV2",
        "sku": {"name": "Standard_LRS"},
        "allowBlobPublicAccess": True,
        "allowSharedKeyAccess": False,
        "minimumTlsVersion": "TLS1_2",
    }
    assert account.request.protect
    assert made.one("azure-native:storage:BlobContainer", "hc1-issuer-container").inputs == {
        **place,
        "containerName": "hc1created",
        "publicAccess": "Container",
    }


def test_the_deployer_writes_its_blobs_and_the_identities_trust_it(made: RecordingMonitor) -> None:
    role = made.one("azure-native:authorization:RoleAssignment", "hc1-issuer-deployer-account").inputs

    assert role["roleDefinitionId"] == f"{ROLES}/ba92f5b4-2d11-453d-a403-e96b0029c9fe"
    assert role["scope"] == f"{GROUPS}/identity-dev/providers/Microsoft.Storage/storageAccounts/hc1created"
    assert role["principalType"] == "ServicePrincipal"
    assert {resource.inputs["issuer"] for resource in made.all(FEDERATED)} == {ISSUER}


def test_each_number_is_a_key_of_its_own_in_the_vault(rotating: RecordingMonitor) -> None:
    wanted = {"cloud": "AzurePublicCloud", "tenantId": TENANT, "vaultId": VAULT, "source": "made"}

    assert {resource.name: resource.inputs for resource in rotating.all(KEY)} == {
        f"hc1-issuer-key-{number}": {
            **wanted,
            "secretName": f"hc1-sa-signing-key-{number}",
            "tags": {"team": "identity"},
            "ownerId": a_uuid("owner"),
        }
        for number in (1, 2)
    }


def test_the_documents_name_every_published_key_and_the_one_that_signs(rotating: RecordingMonitor) -> None:
    assert rotating.one(DOCUMENTS, "hc1-issuer-documents").inputs == {
        "cloud": "AzurePublicCloud",
        "tenantId": TENANT,
        "issuer": ISSUER,
        "keys": [{"generation": number, "jwk": {"kid": a_uuid(f"hc1-issuer-key-{number}")}} for number in (1, 2)],
        "signing": 2,
        "leaked": [],
    }


def test_a_leaked_key_goes_at_once_and_a_permitted_loss_hastens_nothing(program: Program) -> None:
    leaked = issuer(program, {"published": [2], "signing": 2, "leaked": [1]})
    permitted = issuer(program, allowCredentialLoss=["hc1"])

    found = [stack.one(DOCUMENTS, "hc1-issuer-documents").inputs["leaked"] for stack in (leaked, permitted)]
    assert found == [[1], []]


def test_the_secret_has_the_key_that_signs_and_the_public_halves_of_the_others(rotating: RecordingMonitor) -> None:
    secret = rotating.one(SECRET, "hc1-signing-key-secret")

    assert {name: value for name, value in secret.inputs.items() if name != "kubeconfig"} == {
        "clusterId": MANAGEMENT_CLUSTER,
        "namespace": "clusters",
        "name": "hc1-sa-signing-key",
        "cloud": "AzurePublicCloud",
        "tenantId": TENANT,
        "vaultId": VAULT,
        "secretName": "hc1-sa-signing-key-2",
        "keyId": a_uuid("hc1-issuer-key-2"),
        "oldPublicKeys": ["PUBLIC KEY of hc1-issuer-key-1"],
    }
    assert secret.properties.secrets == {"kubeconfig"}


def test_a_key_is_published_before_the_secret_and_the_hosted_cluster(made: RecordingMonitor) -> None:
    """And published by the deployer with its role, into the container."""
    secret = made.one(SECRET, "hc1-signing-key-secret")
    applied = made.one("kubernetes:hypershift.openshift.io/v1beta1:HostedCluster", "hc1-hosted-cluster-object")

    documents = made.one(DOCUMENTS, "hc1-issuer-documents")
    assert made.waits_for(
        documents, made.one("azure-native:authorization:RoleAssignment", "hc1-issuer-deployer-account")
    )
    assert made.waits_for(documents, made.one("azure-native:storage:BlobContainer"))
    assert made.waits_for(secret, documents)
    assert made.waits_for(applied, secret)


def test_without_an_applied_hosted_cluster_there_is_no_secret(program: Program, stack: RecordingMonitor) -> None:
    given = cluster()
    del given["hostedCluster"]
    found = program(clusterSide="hypershift", hostedClusters=[given])

    assert found.all(SECRET) == []
    assert len(found.all(KEY)) == 1
    assert [resource for kind in (KEY, DOCUMENTS, SECRET) for resource in stack.all(kind)] == [], "it has an issuer"


def test_a_namespace_with_a_control_plane_keeps_the_issuer(program: Program) -> None:
    given = {name: value for name, value in cluster().items() if name != "hostedCluster"}
    stack = program(hostedClusters=[given])
    guard = stack.one("idstack:index:NamespaceGuard", "hc1-namespace-guard")
    for token in (KEY, DOCUMENTS):
        for resource in stack.all(token):
            assert stack.waits_for(guard, resource), "a bare destroy would delete it before the guard refuses"
