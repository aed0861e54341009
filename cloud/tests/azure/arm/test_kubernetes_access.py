"""AKS's authorization webhook: which role assignment allows which request to Kubernetes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from localcloud.azure.aks_webhooks.api import AccessReviews
from localcloud.azure.tenant.objects import ServicePrincipal
from localcloud.testing.arm import CLUSTER, ArmWorld

READER = "Azure Kubernetes Service RBAC Reader"
WRITER = "Azure Kubernetes Service RBAC Writer"
ADMIN = "Azure Kubernetes Service RBAC Admin"
CLUSTER_ADMIN = "Azure Kubernetes Service RBAC Cluster Admin"
NO_OPINION = {"allowed": False, "reason": "Azure does not have opinion for this user."}
DENIED = {
    "allowed": False,
    "denied": True,
    "reason": "User does not have access to the resource in Azure. Update role assignment to allow access.",
}

Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def ask(world: ArmWorld) -> Ask:
    """The webhook's answer to a request for a resource, on a cluster with Azure RBAC."""
    cluster(world, enableAzureRBAC=True)
    reviews = AccessReviews(world.cloud)

    def asked(who: ServicePrincipal | str, verb: str, resource: str, **attributes: str) -> dict[str, Any]:
        name = who if isinstance(who, str) else who.object_id
        resource_attributes = {"verb": verb, "resource": resource, **attributes}
        return dict(reviews.status({"user": name, "resourceAttributes": resource_attributes}))

    return asked


def cluster(world: ArmWorld, **entra: Any) -> None:
    world.put(CLUSTER, "Microsoft.ContainerService/managedClusters", {"aadProfile": {"managed": True, **entra}})


def classes(ask: Ask, who: ServicePrincipal, verb: str, namespace: str) -> bool:
    group = "secrets-store.csi.x-k8s.io"
    return bool(ask(who, verb, "secretproviderclasses", group=group, namespace=namespace)["allowed"])


def test_cluster_admin_may_do_everything_and_no_role_nothing(world: ArmWorld, ask: Ask) -> None:
    admin = world.principal((CLUSTER_ADMIN, CLUSTER))
    assert ask(admin, "create", "namespaces") == {"allowed": True, "reason": "Access allowed by Azure RBAC"}
    assert classes(ask, admin, "patch", "clusters-hc1")
    assert ask(world.principal(), "get", "namespaces") == DENIED


def test_admin_may_not_write_namespaces(world: ArmWorld, ask: Ask) -> None:
    admin = world.principal((ADMIN, CLUSTER))
    assert ask(admin, "list", "namespaces")["allowed"]
    for verb in ("create", "patch", "update", "delete"):
        assert ask(admin, verb, "namespaces") == DENIED
    assert classes(ask, admin, "create", "clusters-hc1")


def test_reader_and_writer_have_no_custom_resources(world: ArmWorld, ask: Ask) -> None:
    for role, verb, may in ((READER, "watch", True), (READER, "create", False), (WRITER, "create", True)):
        who = world.principal((role, CLUSTER))
        assert ask(who, verb, "deployments", group="apps", namespace="clusters-hc1")["allowed"] is may
        assert not classes(ask, who, verb, "clusters-hc1")
    assert not ask(world.principal((READER, CLUSTER)), "get", "secrets", namespace="clusters-hc1")["allowed"]


def test_a_role_on_a_namespace_holds_in_that_one(world: ArmWorld, ask: Ask) -> None:
    who = world.principal((ADMIN, f"{CLUSTER}/namespaces/clusters-hc1"))
    assert classes(ask, who, "delete", "clusters-hc1")
    assert not classes(ask, who, "delete", "clusters-hc2")
    assert not ask(who, "list", "pods")["allowed"]


def test_a_groups_role_applies_to_its_members(world: ArmWorld, ask: Ask) -> None:
    team = world.principal((CLUSTER_ADMIN, CLUSTER)).object_id
    attributes = {"verb": "create", "resource": "namespaces"}
    member = {"user": world.principal().object_id, "groups": ["system:authenticated", team]}
    assert AccessReviews(world.cloud).status({**member, "resourceAttributes": attributes})["allowed"]


def test_users_are_found_by_name_and_others_are_left_to_kubernetes(world: ArmWorld, ask: Ask) -> None:
    person = world.cloud.people.create_user("ada@idstack.local", "Ada")
    assert ask(person.user_principal_name, "get", "pods") == DENIED
    assert ask("kubelet", "get", "pods") == NO_OPINION
    assert ask("system:kube-controller-manager", "get", "pods") == NO_OPINION


def test_without_azure_rbac_there_is_no_opinion(world: ArmWorld, ask: Ask) -> None:
    cluster(world, enableAzureRBAC=False)
    assert ask(world.principal((CLUSTER_ADMIN, CLUSTER)), "get", "pods") == {"allowed": False}


@pytest.mark.parametrize(
    ("spec", "may"),
    [
        ({"resourceAttributes": {"verb": "create", "resource": "pods", "subresource": "exec"}}, True),
        ({"nonResourceAttributes": {"verb": "get", "path": "/metrics"}}, True),
        ({"resourceAttributes": {"verb": "impersonate", "resource": "users"}}, True),
        ({"resourceAttributes": {"verb": "*", "resource": "pods"}}, False),
        ({"resourceAttributes": {"verb": "get", "resource": "*", "group": "*"}}, False),
    ],
)
def test_special_requests_of_a_cluster_admin(world: ArmWorld, ask: Ask, spec: dict[str, Any], may: bool) -> None:
    who = world.principal((CLUSTER_ADMIN, CLUSTER)).object_id
    assert AccessReviews(world.cloud).status({"user": who, **spec})["allowed"] is may
