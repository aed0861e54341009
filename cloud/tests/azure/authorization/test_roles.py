"""The role table is Azure's, and it is evaluated as Azure evaluates it."""

from __future__ import annotations

import pytest

from localcloud.azure.authorization import RoleDefinition, built_in_roles

# Counts of actions and data actions as a second public source shows them (AzAdvertizer, azure-rbac-catalog.org).
COUNTS = {
    "Azure Red Hat OpenShift Cloud Controller Manager": (30, 0),
    "Azure Red Hat OpenShift Cluster Ingress Operator": (6, 0),
    "Azure Red Hat OpenShift File Storage Operator": (30, 0),
    "Azure Red Hat OpenShift Disk Storage Operator": (16, 0),
    "Azure Red Hat OpenShift Network Operator": (7, 0),
    "Azure Red Hat OpenShift Image Registry Operator": (25, 5),
    "Azure Red Hat OpenShift Hosted Control Planes Control Plane Operator": (3, 0),
    "Azure Red Hat OpenShift Hosted Control Planes Cluster API Provider": (16, 0),
    "Azure Red Hat OpenShift Federated Credential": (4, 0),
    "Storage Blob Data Contributor": (4, 5),
    "Storage Blob Data Reader": (2, 1),
    "AcrPull": (1, 0),
    "DNS Zone Contributor": (7, 0),
    "Managed Identity Operator": (7, 0),
    "Key Vault Crypto User": (0, 9),
    "Key Vault Crypto Officer": (10, 2),
    "Key Vault Secrets User": (0, 2),
    "Key Vault Reader": (10, 2),
    "Role Based Access Control Administrator": (4, 0),
    "Network Contributor": (7, 0),
    "Monitoring Contributor": (46, 0),
    "Storage Account Key Operator Service Role": (2, 0),
}


def role(name: str) -> RoleDefinition:
    return next(built_in_role for built_in_role in built_in_roles().values() if built_in_role.role_name == name)


@pytest.mark.parametrize(("name", "counts"), COUNTS.items())
def test_a_role_has_as_many_actions_as_azure_lists(name: str, counts: tuple[int, int]) -> None:
    assert (len(role(name).actions), len(role(name).data_actions)) == counts


@pytest.mark.parametrize(
    ("name", "guid"),
    [
        ("Contributor", "b24988ac-6180-42a0-ab88-20f7382dd24c"),
        ("User Access Administrator", "18d7d88d-d35e-4fb5-a5c3-7773c20a72d9"),
        ("Reader", "acdd72a7-3385-48ef-bd42-f606fba81ae7"),
        ("Key Vault Reader", "21090545-7ca7-4776-b22c-e363652d74d2"),
        ("Owner", "8e3af657-a8ff-443c-a75c-2fe8c4bcb635"),
        ("Key Vault Secrets Officer", "b86a8fe4-44ce-4948-aee5-eccb2c155cd7"),
        ("Azure Kubernetes Service RBAC Cluster Admin", "b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b"),
    ],
)
def test_a_role_has_azures_guid(name: str, guid: str) -> None:
    assert role(name).guid == guid


def test_every_role_grants_something() -> None:
    empty = [
        built_in_role.role_name
        for built_in_role in built_in_roles().values()
        if not built_in_role.actions + built_in_role.data_actions
    ]
    assert (len(built_in_roles()), empty) == (37, [])


@pytest.mark.parametrize(
    ("name", "action", "data", "granted"),
    [
        ("Contributor", "Microsoft.KeyVault/vaults/write", False, True),
        ("Contributor", "Microsoft.Authorization/roleAssignments/write", False, False),
        ("Contributor", "Microsoft.Authorization/roleAssignments/read", False, True),
        ("Contributor", "Microsoft.KeyVault/vaults/secrets/getSecret/action", True, False),
        ("User Access Administrator", "Microsoft.Authorization/roleAssignments/write", False, True),
        ("User Access Administrator", "Microsoft.KeyVault/vaults/write", False, False),
        ("Reader", "Microsoft.Network/virtualNetworks/subnets/read", False, True),
        ("AcrPull", "Microsoft.ContainerRegistry/registries/pull/read", False, True),
        ("AcrPull", "Microsoft.ContainerRegistry/registries/push/write", False, False),
        ("DNS Zone Contributor", "Microsoft.Network/dnsZones/TXT/write", False, True),
        ("DNS Zone Contributor", "Microsoft.Network/privateDnsZones/A/write", False, False),
        (
            "Managed Identity Operator",
            "Microsoft.ManagedIdentity/userAssignedIdentities/acr/assign/action",
            False,
            True,
        ),
        ("Managed Identity Operator", "Microsoft.ManagedIdentity/userAssignedIdentities/write", False, False),
        ("Key Vault Secrets User", "Microsoft.KeyVault/vaults/read", False, False),
        ("Key Vault Secrets Officer", "Microsoft.KeyVault/vaults/secrets/delete", True, True),
        ("Key Vault Secrets Officer", "Microsoft.KeyVault/vaults/keys/read", True, False),
        ("Azure Red Hat OpenShift Cloud Controller Manager", "Microsoft.Network/privateLinkServices/READ", False, True),
        ("Azure Kubernetes Service RBAC Admin", "Microsoft.ContainerService/managedClusters/pods/write", True, True),
        (
            "Azure Kubernetes Service RBAC Admin",
            "Microsoft.ContainerService/managedClusters/namespaces/write",
            True,
            False,
        ),
    ],
)
def test_an_action_is_granted_or_not(name: str, action: str, data: bool, granted: bool) -> None:
    assert role(name).grants(action, data=data) is granted
