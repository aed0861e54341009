"""What a configuration needs on the management cluster, and which roles grant it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity.aks.azure_rbac import AksCluster, explained, role_for
from identity.aks.kinds import required_kinds
from identity.aks.permissions import Permission, cluster_wide_manifests, manifests, needed, permissions, rights_of
from identity.azure.errors import AccessError
from identity.roles import AKS_RBAC_ADMIN_ROLE, AKS_RBAC_CLUSTER_ADMIN_ROLE, Role
from localcloud.testing.azure import built_in_roles
from tests.unit.access_world import granted_by
from tests.unit.identity.settings.world import configuration, hosted_cluster, load

CONFIGURATIONS = (
    *("azure-cloud-config", "cloud-network-config-controller-creds", "azure-disk-csi-config"),
    *("azure-file-csi-config", "azure-kms-config"),
)
GROUP = "11111111-0000-4000-8000-000000000001"
HOSTED = {"file": "hc1.yaml"}


def rights(**changes: Any) -> set[Permission]:
    return set(needed(rights_of(load(configuration(**changes)))))


def secrets(found: set[Permission]) -> dict[str, set[str]]:
    """Names of the Secrets that may be used in a namespace; an empty name is every Secret."""
    places = {permission.namespace for permission in found if permission.resource == "secrets"}
    verbs = [permission for permission in found if permission.resource == "secrets" and permission.verb != "create"]
    return {place: {verb.name for verb in verbs if verb.namespace == place} for place in places}


def test_secrets_are_those_that_the_stack_writes_by_their_names() -> None:
    assert secrets(rights()) == {"clusters-hc1": set(CONFIGURATIONS)}
    assert {right.verb for right in rights() if right.resource == "secrets"} == {
        "create",
        "get",
        "watch",
        "patch",
        "delete",
    }


@pytest.mark.parametrize(
    ("key", "named"),
    [(None, {}), ({"vaultSecretName": "key"}, {"clusters": {"hc1-sa-signing-key"}})],
    ids=["without", "with"],
)
def test_a_signing_keys_secret_is_the_only_one_beside_the_hosted_clusters(
    key: dict[str, str] | None, named: dict[str, set[str]]
) -> None:
    cluster = {**hosted_cluster(hostedCluster=HOSTED), **({} if key is None else {"serviceAccountSigningKey": key})}
    found = rights(clusterSide="hypershift", hostedClusters=[cluster])

    assert secrets(found) == named
    assert {permission.namespace for permission in found} == {"", "clusters"}
    assert {permission.resource for permission in found if permission.verb == "create"} == {
        "hostedclusters",
        *(["secrets"] if named else []),
    }


def test_a_stack_that_makes_nothing_there_needs_nothing() -> None:
    assert rights_of(load(configuration(clusterSide="hypershift"))) == ()


@pytest.mark.parametrize(
    ("clusters", "kinds"),
    [
        ({"clusterSide": "stack"}, {"secretproviderclasses", "azureclusteridentities"}),
        ({"clusterSide": "hypershift"}, set()),
        ({"clusterSide": "hypershift", "hostedClusters": [hosted_cluster(hostedCluster=HOSTED)]}, {"hostedclusters"}),
    ],
)
def test_kinds_are_those_of_what_the_stack_makes(clusters: dict[str, Any], kinds: set[str]) -> None:
    assert {kind.plural for kind in required_kinds(load(configuration(**clusters)))} == kinds


def test_network_policies_are_for_stacks_that_block_the_metadata() -> None:
    found = [{right.resource for right in rights(blockInstanceMetadata=blocks)} for blocks in (True, False)]

    assert ["networkpolicies" in resources for resources in found] == [True, False]


_NAMES = st.lists(st.sampled_from(["hc1", "hc2", "a.b"]), unique=True, min_size=1)


@given(_NAMES, st.booleans(), st.booleans(), st.booleans())
def test_the_roles_grant_what_is_needed_and_nothing_else(names: list[str], stack: bool, block: bool, key: bool) -> None:
    changes: dict[str, Any] = {} if stack else {"hostedCluster": HOSTED}
    if key:
        changes["serviceAccountSigningKey"] = {"vaultSecretName": "key"}
    found = rights_of(
        load(
            configuration(
                clusterSide="stack" if stack else "hypershift",
                hostedClusters=[hosted_cluster(name, **changes) for name in names],
                blockInstanceMetadata=block and stack,
            )
        )
    )

    wanted = set(needed(found))
    assert set(granted_by(manifests(found, "dev", group=GROUP))) == wanted
    wide = set(granted_by(cluster_wide_manifests(found, "dev", group=GROUP)))
    assert {permission.everywhere for permission in wide} == {permission.everywhere for permission in wanted}
    for permission in wanted | wide:
        assert permission.resource != "secrets" or permission.verb == "create" or permission.name, permission
        assert permission.everywhere in permissions()


def test_stacks_that_share_a_namespace_keep_their_roles_apart() -> None:
    names = []
    for name in ("one", "two"):
        clusters = [hosted_cluster(f"hc-{name}", hostedCluster=HOSTED)]
        made = rights_of(load(configuration(clusterSide="hypershift", hostedClusters=clusters)))
        names.append(
            {
                (manifest["kind"], manifest["metadata"]["name"])
                for manifest in manifests(made, name)
                if "rules" in manifest
            }
        )

    assert names[0].isdisjoint(names[1])


CLUSTER = "/subscriptions/s/resourceGroups/aks-dev/providers/Microsoft.ContainerService/managedClusters/aks-1"
_ACTIONS = {**dict.fromkeys(("get", "list", "watch"), "read"), **dict.fromkeys(("create", "patch"), "write")}
_KUBERNETES_OWN = {"", "apps", "policy", "apiextensions.k8s.io"}


def data_action(permission: Permission) -> str:
    """A permission as AKS asks Azure for it: everything that is not Kubernetes' own is a custom resource."""
    group = f"{permission.group}/" if permission.group else ""
    resource = f"{group}{permission.resource}" if permission.group in _KUBERNETES_OWN else "customresources"
    return f"Microsoft.ContainerService/managedClusters/{resource}/{_ACTIONS.get(permission.verb, permission.verb)}"


def grants(role: Role, permission: Permission) -> bool:
    return built_in_roles()[role.guid].grants(data_action(permission), data=True)


@pytest.mark.parametrize("role", [AKS_RBAC_ADMIN_ROLE, AKS_RBAC_CLUSTER_ADMIN_ROLE])
def test_names_and_ids_are_azures(role: Role) -> None:
    assert built_in_roles()[role.guid].role_name == role.name


def test_the_narrowest_role_that_grants_what_is_missing_is_chosen() -> None:
    for permission in permissions():
        chosen = role_for([permission])
        assert grants(chosen, permission)
        assert (chosen is AKS_RBAC_CLUSTER_ADMIN_ROLE) == (not grants(AKS_RBAC_ADMIN_ROLE, permission)), permission
    assert role_for(permissions()) is AKS_RBAC_CLUSTER_ADMIN_ROLE, "the stack as a whole needs the wider one"


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
