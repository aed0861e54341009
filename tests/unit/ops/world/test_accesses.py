"""Where an identity needs the actions of its role, out of its role assignments."""

from __future__ import annotations

from ops.world.expected import ExpectedRole
from ops.world.state import accesses

GROUPS = "/subscriptions/s/resourceGroups"
NETWORK = f"{GROUPS}/net/providers/Microsoft.Network"
VNET = f"{NETWORK}/virtualNetworks/vnet"
SUBNET = f"{VNET}/subnets/default"
NSG = f"{GROUPS}/nsg/providers/Microsoft.Network/networkSecurityGroups/nsg"
ROUTES = f"{NETWORK}/routeTables/routes"
VAULT = f"{GROUPS}/etcd/providers/Microsoft.KeyVault/vaults/kv"
SPEC = {
    "platform": {
        "azure": {
            "subscriptionID": "s",
            "resourceGroup": "managed",
            "vnetID": VNET,
            "subnetID": SUBNET,
            "securityGroupID": NSG,
        }
    }
}
TYPES = {
    VNET: "Microsoft.Network/virtualNetworks",
    SUBNET: "Microsoft.Network/virtualNetworks/subnets",
    NSG: "Microsoft.Network/networkSecurityGroups",
}


def places(**scopes: str) -> dict[str, str]:
    """The resource type by scope, for roles at these scopes by the last word of their names."""
    roles = [
        ExpectedRole(resource=f"hc1-x-roles-{word}", id=word, principal_id="p", role_definition_id="r", scope=scope)
        for word, scope in scopes.items()
    ]
    return {access.scope: access.type for access in accesses(roles, SPEC)}


def test_at_resource_groups_the_places_are_the_clusters_resources_in_them() -> None:
    found = places(managed=f"{GROUPS}/managed", nsg=f"{GROUPS}/nsg", vnet=f"{GROUPS}/net", dns=f"{GROUPS}/dns")

    zones = {f"{GROUPS}/dns": "Microsoft.Network/dnsZones"}
    assert found == {f"{GROUPS}/managed": "", **TYPES, **zones}


def test_at_resources_the_places_are_the_resources() -> None:
    found = places(managed=f"{GROUPS}/managed", subnet=SUBNET, routes=ROUTES)

    assert found == {f"{GROUPS}/managed": "", SUBNET: TYPES[SUBNET], ROUTES: "Microsoft.Network/routeTables"}


def test_a_role_at_the_network_is_needed_at_its_subnet_too() -> None:
    assert places(network=VNET) == {VNET: TYPES[VNET], SUBNET: TYPES[SUBNET]}


def test_a_role_at_a_vault_is_needed_there_and_nowhere_else() -> None:
    assert places(vault=VAULT) == {VAULT: "Microsoft.KeyVault/vaults"}


def test_one_group_for_everything_is_the_managed_one_with_its_resources() -> None:
    inside = {"platform": {"azure": {**SPEC["platform"]["azure"], "resourceGroup": "net"}}}
    role = ExpectedRole(
        resource="hc1-x-roles-managed", id="m", principal_id="p", role_definition_id="r", scope=f"{GROUPS}/NET"
    )

    assert {access.scope: access.type for access in accesses([role], inside)} == {
        f"{GROUPS}/NET": "",
        VNET: TYPES[VNET],
        SUBNET: TYPES[SUBNET],
    }


def test_without_roles_nothing_is_needed() -> None:
    assert accesses([], SPEC) == ()
