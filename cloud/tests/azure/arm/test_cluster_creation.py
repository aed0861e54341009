"""A managed cluster made, changed and deleted through ARM, and what AKS makes beside it."""

from __future__ import annotations

from typing import Any

import pytest

from localcloud.azure.tenant.objects import ServicePrincipal
from localcloud.testing.arm import CLUSTER, GROUP, SUBSCRIPTION, ArmWorld, cluster_body, error

NODES = f"{SUBSCRIPTION}/resourceGroups/MC_identity-local_mgmt_eastus"
ADD_ON = "azureKeyvaultSecretsProvider"
POOL = {"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5", "count": 3}


def put(world: ArmWorld, **properties: Any) -> dict[str, Any]:
    answer = world.call("PUT", CLUSTER, cluster_body(**properties))
    assert answer.status_code in {200, 201}, answer.text
    return dict(answer.json())


def add_on(cluster: dict[str, Any]) -> dict[str, str]:
    return dict(cluster["properties"]["addonProfiles"][ADD_ON]["identity"])


def principal(world: ArmWorld, object_id: str) -> ServicePrincipal | None:
    return world.cloud.directory.service_principal(object_id)


def carried(world: ArmWorld) -> set[str]:
    """Names of the identities that the nodes carry."""
    [nodes] = world.resources.below(NODES, "Microsoft.Compute/virtualMachineScaleSets")
    return {identity.rpartition("/")[2] for identity in nodes["identity"]["userAssignedIdentities"]}


def test_a_new_cluster_has_what_the_service_fills_in(world: ArmWorld) -> None:
    cluster = put(world, oidcIssuerProfile={"enabled": True})

    properties = cluster["properties"]
    assert properties["provisioningState"] == "Succeeded"
    assert properties["nodeResourceGroup"] == "MC_identity-local_mgmt_eastus"
    assert properties["fqdn"].startswith("mgmt-")
    assert properties["fqdn"].endswith(".hcp.eastus.azmk8s.io")
    assert properties["oidcIssuerProfile"]["issuerURL"].startswith("https://eastus.oic.prod-aks.azure.com/")
    assert properties["aadProfile"]["tenantID"] == world.cloud.tenant_id
    assert properties["agentPoolProfiles"][0]["provisioningState"] == "Succeeded"
    assert world.call("GET", CLUSTER).json() == cluster
    own = principal(world, cluster["identity"]["principalId"])
    assert own is not None
    assert own.display_name == "mgmt"


@pytest.mark.parametrize(
    ("network", "pods"),
    [
        ({}, "10.244.0.0/16"),
        ({"networkPlugin": "kubenet", "podCidr": "10.9.0.0/16"}, "10.9.0.0/16"),
        ({"networkPlugin": "azure", "podCidr": "10.9.0.0/16"}, None),
        ({"networkPlugin": "azure", "networkPluginMode": "overlay"}, "10.244.0.0/16"),
    ],
    ids=["nothing said", "kubenet", "azure", "azure in overlay"],
)
def test_pods_have_a_range_of_their_own_unless_they_are_in_the_subnet(
    world: ArmWorld, network: dict[str, str], pods: str | None
) -> None:
    assert put(world, networkProfile=network)["properties"]["networkProfile"].get("podCidr") == pods


def test_a_private_cluster_has_a_private_and_by_default_a_public_name(world: ArmWorld) -> None:
    private = {"enablePrivateCluster": True}
    names = put(world, apiServerAccessProfile=private)["properties"]
    assert names["privateFQDN"].endswith(".privatelink.eastus.azmk8s.io")
    assert names["fqdn"].endswith(".hcp.eastus.azmk8s.io")

    hidden = put(world, apiServerAccessProfile={**private, "enablePrivateClusterPublicFQDN": False})["properties"]
    assert hidden["privateFQDN"] == names["privateFQDN"]
    assert "fqdn" not in hidden


def test_the_add_ons_identity_is_a_managed_identity_that_the_nodes_carry(world: ArmWorld) -> None:
    identity = add_on(put(world))

    assert carried(world) == {"azurekeyvaultsecretsprovider-mgmt", "mgmt-agentpool"}
    answer = world.call("GET", identity["resourceId"]).json()["properties"]
    assert (answer["clientId"], answer["principalId"]) == (identity["clientId"], identity["objectId"])
    assert principal(world, identity["objectId"]) is not None


def test_the_add_on_rotates_no_secrets_unless_somebody_asks_for_it(world: ArmWorld) -> None:
    def config(**profile: Any) -> Any:
        profiles = put(world, addonProfiles={ADD_ON: {"enabled": True, **profile}})["properties"]["addonProfiles"]
        return profiles[ADD_ON].get("config")

    asked = {"enableSecretRotation": "true", "rotationPollInterval": "2m"}
    assert config() is None
    assert config(config=asked) == asked


def test_a_second_put_changes_what_it_names_and_keeps_every_identity(world: ArmWorld) -> None:
    before = put(world, oidcIssuerProfile={"enabled": True})

    after = put(world, addonProfiles={ADD_ON: {"enabled": True, "config": {"rotationPollInterval": "5m"}}})

    profile = after["properties"]["addonProfiles"][ADD_ON]
    assert profile["config"]["rotationPollInterval"] == "5m"
    assert add_on(after) == add_on(before)
    assert after["identity"] == before["identity"]
    for kept in ("fqdn", "oidcIssuerProfile", "identityProfile", "nodeResourceGroup", "resourceUID"):
        assert after["properties"][kept] == before["properties"][kept]


def test_the_number_of_machines_can_change(world: ArmWorld) -> None:
    put(world)
    after = put(world, agentPoolProfiles=[{**POOL, "count": 5}])
    assert after["properties"]["agentPoolProfiles"][0]["count"] == 5


def test_switching_an_add_on_off_deletes_its_identity(world: ArmWorld) -> None:
    identity = add_on(put(world))

    after = put(world, addonProfiles={ADD_ON: {"enabled": False}})

    assert after["properties"]["addonProfiles"][ADD_ON] == {"enabled": False}
    assert carried(world) == {"mgmt-agentpool"}
    assert principal(world, identity["objectId"]) is None


def test_an_update_without_an_entra_id_profile_leaves_it_on(world: ArmWorld) -> None:
    before = put(world)
    assert put(world, aadProfile=None)["properties"]["aadProfile"] == before["properties"]["aadProfile"]


@pytest.mark.parametrize("version", ["1.34", "1.34.2"])
def test_a_version_may_leave_the_patch_to_the_service(world: ArmWorld, version: str) -> None:
    properties = put(world, kubernetesVersion=version)["properties"]
    assert properties["kubernetesVersion"] == version
    assert properties["currentKubernetesVersion"] == {"1.34": "1.34.4", "1.34.2": "1.34.2"}[version]


@pytest.mark.parametrize("prefix", ["a" * 55, "-mgmt", "mgmt-", "mg_mt", "mg.mt"])
def test_an_invalid_dns_prefix_is_refused(world: ArmWorld, prefix: str) -> None:
    answer = world.call("PUT", CLUSTER, cluster_body(dnsPrefix=prefix))
    assert error(answer)[:2] == (400, "InvalidParameter")
    assert prefix in error(answer)[2]


def test_a_refused_cluster_leaves_nothing_behind(world: ArmWorld) -> None:
    before = {key for key, _ in world.store.items("arm")}
    assert world.call("PUT", CLUSTER, cluster_body(agentPoolProfiles=None)).status_code == 400
    assert {key for key, _ in world.store.items("arm")} == before


def test_deleting_a_cluster_deletes_its_nodes_and_principals(world: ArmWorld) -> None:
    cluster = put(world)
    principals = [add_on(cluster)["objectId"], cluster["identity"]["principalId"]]
    granted = world.grant(principal(world, principals[0]) or pytest.fail("no principal"), "Reader", GROUP)

    assert world.call("DELETE", CLUSTER).status_code == 200

    assert world.call("GET", CLUSTER).status_code == 404
    assert world.call("GET", NODES).status_code == 404
    assert [principal(world, object_id) for object_id in principals] == [None, None]
    assert world.resources.get(granted) is not None, "a role assignment outlives its principal"
    assert world.call("DELETE", CLUSTER).status_code == 204


def test_a_recreated_cluster_has_new_principals(world: ArmWorld) -> None:
    first = put(world)
    world.call("DELETE", CLUSTER)
    second = put(world)
    assert add_on(second)["objectId"] != add_on(first)["objectId"]
    assert second["properties"]["resourceUID"] != first["properties"]["resourceUID"]


def test_the_name_of_the_node_group_is_cut_at_80_characters(world: ArmWorld) -> None:
    name = "a" * 63
    world.call("PUT", CLUSTER.replace("mgmt", name), cluster_body())
    answer = world.call("GET", CLUSTER.replace("mgmt", name)).json()
    assert answer["properties"]["nodeResourceGroup"] == f"MC_identity-local_{name}_eastus"[:80]


def test_a_reader_creates_no_cluster(world: ArmWorld) -> None:
    reader = world.principal(("Reader", GROUP))
    assert error(world.call("PUT", CLUSTER, cluster_body(), caller=reader))[:2] == (403, "AuthorizationFailed")
