"""The derived seed: all that a stack looks up is in it, and nothing that the stack makes itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from components.preflight.azure_objects import optional_lookups, required_lookups
from identity.clouds import LOCAL_SUBSCRIPTION_ID
from identity.naming import vault_id
from localcloud.testing.running import Seed
from localcloud.testing.running import load_seed as load
from ops.rehearsal.world import seed_of
from tests.unit.ops.rehearsal.world import OWN, SUBSCRIPTION, cluster, copy_of, stack_file

_NETWORK = "providers/Microsoft.Network"
# The type of the document that answers each function, and how its last argument is found in it.
_TYPES = {
    "network:getVirtualNetwork": "Microsoft.Network/virtualNetworks",
    "network:getSubnet": "Microsoft.Network/virtualNetworks/subnets",
    "network:getNetworkSecurityGroup": "Microsoft.Network/networkSecurityGroups",
    "network:getLoadBalancer": "Microsoft.Network/loadBalancers",
    "dns:getZone": "Microsoft.Network/dnszones",
    "privatedns:getPrivateZone": "Microsoft.Network/privateDnsZones",
    "privatedns:getVirtualNetworkLink": "Microsoft.Network/privateDnsZones/virtualNetworkLinks",
    "storage:getStorageAccount": "Microsoft.Storage/storageAccounts",
    "containerregistry:getRegistry": "Microsoft.ContainerRegistry/registries",
}
# No subnet of the nodes is named beside it.
OPEN = {"name": "kv-own", "defaultAction": "Allow"}


def seed_for(*documents: dict[str, Any]) -> Seed:
    """The seed of these files, as the local cloud reads it."""
    return Seed.model_validate(seed_of([copy_of(document).settings for document in documents]))


def named(seed: Seed, function: str, arguments: dict[str, str]) -> bool:
    """Whether the seed has what a look-up asks for."""
    group = arguments.pop("resourceGroupName").lower()
    name = "/".join(arguments.values())
    known: dict[str, Any] = {
        "containerservice:getManagedCluster": seed.clusters,
        "keyvault:getVault": seed.vaults,
        "managedidentity:getUserAssignedIdentity": seed.managed_identities,
        **{
            lookup: [resource for resource in seed.resources if resource.type == kind]
            for lookup, kind in _TYPES.items()
        },
    }
    if function == "resources:getResourceGroup":
        return group in {resource_group.name.lower() for resource_group in seed.resource_groups}
    return any((resource.name, resource.resource_group.lower()) == (name, group) for resource in known[function])


def missing(document: dict[str, Any]) -> list[str]:
    """The look-ups of a stack that its own seed would not answer."""
    settings = copy_of(document).settings
    vault = vault_id(settings.subscription_id, settings.resource_group, "kv")
    asked = [*(lookup for _, lookup in required_lookups(settings, None, vault)), *optional_lookups(settings)]
    seed = seed_for(document)
    return [lookup.description for lookup in asked if not named(seed, lookup.function, dict(lookup.arguments))]


@pytest.mark.parametrize("stack", ["dev", "stage", "prod"])
def test_the_stacks_of_this_project_find_all_that_they_look_up(stack: str, tmp_path: Path) -> None:
    file = tmp_path / "seed.yaml"
    file.write_text(yaml.safe_dump(seed_of([copy_of(stack_file(stack)).settings])), encoding="utf-8")

    assert load(file).clusters[0].name == "example-aks"
    assert missing(stack_file(stack)) == []


def _id(group: str, kind: str, name: str) -> str:
    return f"{SUBSCRIPTION}/resourceGroups/{group}/providers/{kind}/{name}"


_GROUPS = st.sampled_from(["one", "two", "Two", "three"])


@st.composite
def _clusters(draw: st.DrawFn, name: str) -> dict[str, Any]:
    """A hosted cluster with everything, or little, that its configuration may name; groups are shared or not."""
    vnet = _id(draw(_GROUPS), "Microsoft.Network/virtualNetworks", draw(st.sampled_from(["net", f"{name}-net"])))
    found = cluster(
        name=name,
        infraID=name,
        issuerURL=f"https://issuer.example.com/{name}",
        resourceGroup=draw(_GROUPS),
        location=draw(st.sampled_from(["eastus", "westeurope"])),
        vnetID=vnet,
        subnetID=f"{vnet}/subnets/{name}",
        securityGroupID=_id(draw(_GROUPS), "Microsoft.Network/networkSecurityGroups", f"{name}-nsg"),
        dnsZoneResourceGroup=draw(_GROUPS),
    )
    zones = {
        "baseDomain": "example.com",
        "publicZoneID": _id(found["dnsZoneResourceGroup"], "Microsoft.Network/dnszones", "example.com"),
        "privateZoneID": _id(found["resourceGroup"], "Microsoft.Network/privateDnsZones", f"{name}.example.com"),
    }
    managed = _id(draw(_GROUPS), "Microsoft.ManagedIdentity/userAssignedIdentities", f"{name}-ingress")
    extra: dict[str, Any] = {
        "dns": zones,
        "identities": {
            "ingress": {"source": "managed-identity", "resourceId": managed, "credential": {"file": "x.json"}}
        },
        "kms": {
            "activeKey": {"keyVaultName": f"kv-{name}", "keyName": "etcd", "keyVersion": "1" * 32},
            "keyVaultResourceGroup": draw(_GROUPS),
        },
    }
    del found["kms"]
    chosen = draw(st.sets(st.sampled_from(sorted(extra))))
    return {**found, **{key: extra[key] for key in chosen}}


@given(st.tuples(_clusters("hc1"), _clusters("hc2")))
def test_whatever_a_configuration_names_is_seeded(clusters: tuple[dict[str, Any], ...]) -> None:
    assert missing(stack_file(hostedClusters=list(clusters))) == []


def test_the_subnet_refers_to_the_named_route_table_and_nat_gateway() -> None:
    attached = {
        "routeTableID": _id("hub", "Microsoft.Network/routeTables", "routes"),
        "natGatewayID": _id("hub", "Microsoft.Network/natGateways", "nat"),
    }
    plain, changed = (
        stack_file(hostedClusters=[hosted_cluster], vault=OPEN) for hosted_cluster in (cluster(), cluster(**attached))
    )
    seed = seed_for(plain, changed)

    [subnet] = [resource.properties for resource in seed.resources if resource.type.endswith("/subnets")]
    referred = {field: subnet[field]["id"].rpartition("/")[2] for field in ("routeTable", "natGateway")}
    assert referred == {"routeTable": "routes", "natGateway": "nat"}
    assert "networkSecurityGroup" in subnet
    assert {"routes", "nat"} <= {resource.name for resource in seed.resources}


@given(st.tuples(_clusters("hc1"), _clusters("hc2")))
def test_what_base_and_head_name_both_exists_once(clusters: tuple[dict[str, Any], ...]) -> None:
    base, head = (stack_file(hostedClusters=list(chosen)) for chosen in (clusters[:1], clusters))
    seed = seed_for(base, head)

    for part in (seed.resource_groups, seed.vaults, seed.managed_identities, seed.clusters, seed.resources):
        keys = [
            (getattr(one, "type", ""), getattr(one, "resource_group", "").lower(), one.name.lower()) for one in part
        ]
        assert len(keys) == len({tuple(map(str.lower, key)) for key in keys})


def test_what_only_optional_identities_use_is_seeded() -> None:
    registry = _id("images", "Microsoft.ContainerRegistry/registries", "images1")
    backups = _id("backups", "Microsoft.Storage/storageAccounts", "backups1")
    zone = _id("public", "Microsoft.Network/dnszones", "example.org")
    changed = cluster(
        managedIdentities=["acrPull", "externalDNS"], containerRegistryID=registry, externalDnsZoneID=zone
    )
    changed |= {"backupStorageAccountID": backups, "identities": {"etcdBackup": {"enabled": True}}}

    assert missing(stack_file(hostedClusters=[changed])) == []


def test_a_group_is_where_its_hosted_cluster_is() -> None:
    seed = seed_for(stack_file(hostedClusters=[cluster(location="westus3")]))

    assert {resource_group.name: resource_group.location for resource_group in seed.resource_groups}[
        "hc1-managed"
    ] == "westus3"
    assert seed.location == "westeurope"


def test_what_the_stack_makes_is_not_seeded() -> None:
    zone = _id("dns-dev", "Microsoft.Network/dnszones", "example.com")
    made = {"infrastructure": "create", "name": "hc1", "infraID": "hc1", "issuerURL": "https://i.example.com/hc1"}
    create = {"nodePool": {"vmSize": "Standard_D4s_v5"}, "adminGroupObjectIDs": [OWN]}
    creation = {"resourceGroup": "aks", "name": "aks", "create": create}
    dns = {"baseDomain": "example.com", "publicZoneID": zone}
    seed = seed_for(stack_file(hostedClusters=[made | {"dns": dns}], managementCluster=creation, vault=OPEN))

    assert [resource.type for resource in seed.resources] == ["Microsoft.Network/dnszones"]
    assert seed.clusters == ()
    assert OPEN["name"] not in {vault.name for vault in seed.vaults}
    assert [group.object_id for group in seed.groups] == [OWN]


def test_the_nodes_carry_a_key_vault_user_that_the_stack_makes() -> None:
    seed = seed_for(stack_file(keyVaultUser={"source": "created", "name": "reader"}))

    [nodes] = [resource for resource in seed.resources if resource.type == "Microsoft.Compute/virtualMachineScaleSets"]
    assert nodes.identity is not None
    [carried] = nodes.identity["userAssignedIdentities"]
    own = _id(nodes.resource_group, "Microsoft.ManagedIdentity/userAssignedIdentities", "reader")
    assert carried == own.replace(OWN, LOCAL_SUBSCRIPTION_ID)
    assert "reader" not in {managed_identity.name for managed_identity in seed.managed_identities}, "the stack makes it"


def test_an_existing_key_vault_user_has_its_own_ids_and_is_on_the_nodes() -> None:
    user = {"source": "existing", "clientId": OWN, "objectId": OWN.replace("5f0c", "6a1d")}
    [identity] = seed_for(stack_file(keyVaultUser=user)).managed_identities

    assert (identity.client_id, identity.object_id, identity.on_nodes) == (OWN, user["objectId"], True)


def test_a_metadata_block_finds_an_engine_on_the_throw_away_cluster() -> None:
    plain, blocking = stack_file(), stack_file(blockInstanceMetadata=True)

    assert {managed_cluster.network_policy for managed_cluster in seed_for(plain).clusters} == {"none"}
    assert {managed_cluster.network_policy for managed_cluster in seed_for(plain, blocking).clusters} == {"azure"}
