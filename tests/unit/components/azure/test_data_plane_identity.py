"""The guest cluster's managed identities: federated credentials one after another, one role each."""

from __future__ import annotations

import itertools

import pytest

from identity.catalogue import DATA_PLANE
from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.simulation import a_uuid
from tests.unit.components.world import GROUPS, grants, hosted_cluster

IDENTITY = "azure-native:managedidentity:UserAssignedIdentity"
FEDERATED = "azure-native:managedidentity:FederatedIdentityCredential"
ASSIGNMENT = "azure-native:authorization:RoleAssignment"

CSI = "system:serviceaccount:openshift-cluster-csi-drivers:azure"
REGISTRY = "system:serviceaccount:openshift-image-registry"

# In the order in which they are created: last part of the name, subject.
SUBJECTS = {
    "disk": [
        ("node", f"{CSI}-disk-csi-driver-node-sa"),
        ("operator", f"{CSI}-disk-csi-driver-operator"),
        ("controller", f"{CSI}-disk-csi-driver-controller-sa"),
    ],
    "file": [
        ("node", f"{CSI}-file-csi-driver-node-sa"),
        ("operator", f"{CSI}-file-csi-driver-operator"),
        ("controller", f"{CSI}-file-csi-driver-controller-sa"),
    ],
    "image-registry": [
        ("registry", f"{REGISTRY}:registry"),
        ("operator", f"{REGISTRY}:cluster-image-registry-operator"),
    ],
}

every_identity = pytest.mark.parametrize("name", SUBJECTS)


@every_identity
def test_an_identity_and_its_trusts_are_named_as_hypershifts_cli_names_them(stack: RecordingMonitor, name: str) -> None:
    assert stack.one(IDENTITY, f"hc1-data-plane-{name}-identity").inputs == {
        "resourceName": f"hc1-{name}-hc1-infra",
        "resourceGroupName": "identity-dev",
        "location": "eastus",
        "tags": {"team": "identity", "idstack-stack": "idstack:test", "idstack-owner": a_uuid("owner")},
    }
    for suffix, subject in SUBJECTS[name]:
        assert stack.one(FEDERATED, f"hc1-data-plane-{name}-federated-{suffix}").inputs == {
            "federatedIdentityCredentialResourceName": f"hc1-{name}-fed-id-{suffix}",
            "resourceName": f"hc1-{name}-hc1-infra",
            "resourceGroupName": "identity-dev",
            "issuer": "https://hc1oidc.blob.core.windows.net/hc1oidc",
            "subject": subject,
            "audiences": ["openshift"],
        }
    assert len(stack.all(FEDERATED)) == sum(map(len, SUBJECTS.values()))


def test_an_identity_that_existed_before_keeps_its_names_and_its_region(program: Program) -> None:
    field = next(row.field for row in DATA_PLANE if row.name == "disk")
    given = {
        "name": "azure-disk-MI-p",
        "location": "westeurope",
        "federatedCredentials": {"node": "azure-disk-MI-p-fed-id"},
    }
    cluster = hosted_cluster(dataPlaneIdentities={field: given})
    adopted = program(hostedClusters=[cluster], clusterSide="hypershift")

    identity = adopted.one(IDENTITY, "hc1-data-plane-disk-identity").inputs
    names = {
        suffix: adopted.one(FEDERATED, f"hc1-data-plane-disk-federated-{suffix}").inputs
        for suffix, _ in SUBJECTS["disk"]
    }
    assert (identity["resourceName"], identity["location"]) == ("azure-disk-MI-p", "westeurope")
    assert {name["resourceName"] for name in names.values()} == {"azure-disk-MI-p"}
    assert {suffix: name["federatedIdentityCredentialResourceName"] for suffix, name in names.items()} == {
        "node": "azure-disk-MI-p-fed-id",
        "operator": "hc1-disk-fed-id-operator",
        "controller": "hc1-disk-fed-id-controller",
    }
    assert adopted.one(IDENTITY, "hc1-data-plane-file-identity").inputs["resourceName"] == "hc1-file-hc1-infra"


@every_identity
def test_the_credentials_of_one_identity_are_written_one_after_another(stack: RecordingMonitor, name: str) -> None:
    chain = [
        stack.one(IDENTITY, f"hc1-data-plane-{name}-identity"),
        *(stack.one(FEDERATED, f"hc1-data-plane-{name}-federated-{suffix}") for suffix, _ in SUBJECTS[name]),
    ]

    for earlier, later in itertools.pairwise(chain):
        assert earlier.urn in later.request.dependencies
    others = [stack.one(FEDERATED, f"hc1-data-plane-{other}-federated-node") for other in {"disk", "file"} - {name}]
    assert not any(stack.waits_for(chain[1], other) for other in others), "identities do not wait for each other"


@pytest.mark.parametrize(
    ("name", "assignment", "role"),
    [
        ("image-registry", "7ebc54d0-910e-576c-8bd7-4cfd77c3801f", "8b32b316-c2f5-4ddf-b05b-83dacd2d08b5"),
        ("disk", "60557fe6-8a72-5705-a5b9-fa4b4eb5ea22", "5b7237c5-45e1-49d6-bc18-a1f62f400748"),
        ("file", "fa87a507-38f9-558f-a0b5-8a4011624f70", "0d7aedc0-15fd-4a67-a412-efad370c947e"),
    ],
)
def test_its_role_covers_the_managed_resource_group_only(
    stack: RecordingMonitor, name: str, assignment: str, role: str
) -> None:
    """The names are HyperShift's formula with the components ciroWI, azure-diskWI and azure-fileWI."""
    assert grants(stack, f"hc1-data-plane-{name}") == {(role, f"{GROUPS}/hc1-managed")}
    inputs = stack.one(ASSIGNMENT, f"hc1-data-plane-{name}-roles-managed").inputs
    assert inputs["roleAssignmentName"] == assignment
    assert inputs["principalId"] == a_uuid(f"hc1-data-plane-{name}-identity", "principal")
