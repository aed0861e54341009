"""Which of AKS's Azure roles helps, by the roles' own data actions."""

from __future__ import annotations

import pytest

from identity.aks.azure_rbac import AksCluster, explained, role_for
from identity.aks.permissions import Permission, permissions
from identity.azure.errors import AccessError
from identity.roles import AKS_RBAC_ADMIN_ROLE, AKS_RBAC_CLUSTER_ADMIN_ROLE, Role
from localcloud.testing.azure import built_in_roles

CLUSTER = "/subscriptions/s/resourceGroups/aks-dev/providers/Microsoft.ContainerService/managedClusters/aks-1"
_ACTIONS = {
    "get": "read",
    "list": "read",
    "watch": "read",
    "create": "write",
    "patch": "write",
    "delete": "delete",
}
_KUBERNETES_OWN = {"", "apps", "policy", "apiextensions.k8s.io"}


def data_action(permission: Permission) -> str:
    """A permission as AKS asks Azure for it: everything that is not Kubernetes' own is a custom resource."""
    group = f"{permission.group}/" if permission.group else ""
    resource = f"{group}{permission.resource}" if permission.group in _KUBERNETES_OWN else "customresources"
    return f"Microsoft.ContainerService/managedClusters/{resource}/{_ACTIONS[permission.verb]}"


def grants(role: Role, permission: Permission) -> bool:
    return built_in_roles()[role.guid].grants(data_action(permission), data=True)


@pytest.mark.parametrize("role", [AKS_RBAC_ADMIN_ROLE, AKS_RBAC_CLUSTER_ADMIN_ROLE])
def test_names_and_ids_are_azures(role: Role) -> None:
    assert built_in_roles()[role.guid].role_name == role.name


@pytest.mark.parametrize("permission", permissions(), ids=str)
def test_the_narrowest_role_that_grants_what_is_missing_is_chosen(
    permission: Permission,
) -> None:
    chosen = role_for([permission])
    assert grants(chosen, permission)
    assert (chosen is AKS_RBAC_CLUSTER_ADMIN_ROLE) == (not grants(AKS_RBAC_ADMIN_ROLE, permission))


def test_the_stack_as_a_whole_needs_the_wider_one() -> None:
    assert role_for(permissions()) is AKS_RBAC_CLUSTER_ADMIN_ROLE


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"aadProfile": {"managed": True, "enableAzureRBAC": True}}, True),
        ({"aadProfile": {"managed": True, "enableAzureRBAC": False}}, False),
        ({"aadProfile": {"managed": True}}, False),
        ({"aadProfile": None}, False),
        ({}, False),
    ],
)
def test_arm_reports_whether_azure_rbac_decides(properties: dict[str, object], expected: bool) -> None:
    assert AksCluster.of("/id", properties) == AksCluster("/id", expected)


@pytest.mark.parametrize(
    ("properties", "state", "is_off", "helps"),
    [
        ({"provisioningState": "Succeeded", "powerState": {"code": "Running"}}, "Succeeded", False, ""),
        ({"provisioningState": "Updating"}, "Updating", False, "--updated"),
        ({"provisioningState": "Creating"}, "Creating", False, "--created"),
        ({"provisioningState": "Deleting"}, "Deleting", True, "--deleted"),
        ({"provisioningState": "Failed"}, "Failed", False, "az aks update"),
        ({"provisioningState": "Succeeded", "powerState": {"code": "Stopped"}}, "Stopped", True, "az aks start"),
    ],
)
def test_a_state_of_the_cluster_explains_a_refusal(
    properties: dict[str, object], state: str, is_off: bool, helps: str
) -> None:
    cluster = AksCluster.of(CLUSTER, properties)

    assert (cluster.state, cluster.is_off) == (state, is_off)
    assert helps in cluster.explanation
    assert explained(AccessError("no answer"), cluster).startswith("no answer; " if helps else "no answer")
    assert explained(AccessError("no answer"), None) == "no answer"
