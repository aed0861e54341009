"""Where a role assignment reaches, and from when on."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from localcloud.azure.authorization import RoleDefinition, built_in_roles
from localcloud.azure.shared.faults import NO_DELAYS
from localcloud.core import clock
from localcloud.testing.arm import GROUP, SUBSCRIPTION, VAULT, ArmWorld

# The role table is Azure's, and it is evaluated as Azure evaluates it.


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


READ_GROUP = "Microsoft.Resources/subscriptions/resourceGroups/read"
GET_SECRET = "Microsoft.KeyVault/vaults/secrets/getSecret/action"


def test_an_assignment_applies_at_and_below_its_scope_only(world: ArmWorld) -> None:
    reader = world.principal(("Reader", GROUP))
    scopes = [GROUP, VAULT, GROUP.upper(), SUBSCRIPTION, f"{GROUP}-2", f"{SUBSCRIPTION}/resourceGroups/other"]
    got = [world.cloud.authorization.allowed(reader.object_id, READ_GROUP, scope) for scope in scopes]
    assert got == [True, True, True, False, False, False]


def test_an_assignment_at_the_root_applies_to_the_subscription(world: ArmWorld) -> None:
    reader = world.principal(("Reader", ""))
    assert world.cloud.authorization.allowed(reader.object_id, READ_GROUP, SUBSCRIPTION)


def test_an_assignment_on_one_secret_applies_to_that_secret_alone(world: ArmWorld) -> None:
    user = world.principal(("Key Vault Secrets User", f"{VAULT}/secrets/one"))
    allowed = world.cloud.authorization.allowed
    got = [allowed(user.object_id, GET_SECRET, f"{VAULT}/secrets/{name}", data=True) for name in ("one", "two")]
    assert got == [True, False]


def test_a_role_that_grants_wins_over_another_roles_not_actions(world: ArmWorld) -> None:
    action = "Microsoft.Authorization/roleAssignments/write"
    contributor = world.principal(("Contributor", GROUP))
    before = world.cloud.authorization.allowed(contributor.object_id, action, GROUP)
    world.grant(contributor, "User Access Administrator", GROUP)
    after = world.cloud.authorization.allowed(contributor.object_id, action, GROUP)
    assert (before, after) == (False, True)


def test_another_principals_assignment_grants_nothing(world: ArmWorld) -> None:
    world.principal(("Contributor", GROUP))
    assert not world.cloud.authorization.allowed(world.principal().object_id, READ_GROUP, GROUP)


def test_a_new_assignment_takes_effect_after_the_configured_delay(tmp_path: Path) -> None:
    world = ArmWorld(tmp_path, replace(NO_DELAYS, role_delay=60))
    reader = world.principal()
    world.grant(reader, "Reader", GROUP, since=clock.now().isoformat())
    before = world.cloud.authorization.allowed(reader.object_id, READ_GROUP, GROUP)
    with clock.moved_ahead(timedelta(seconds=61)):
        after = world.cloud.authorization.allowed(reader.object_id, READ_GROUP, GROUP)
    assert (before, after) == (False, True)
