"""The prerequisites of a stack's first run: the seed of a local cloud, derived from the typed settings.

They are the resources that the configuration names and the stack does not create, as `components/preflight` demands
them. The documents are those of `cloud/README.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Network
from typing import Any, Final

from identity.clouds import LOCAL_SUBSCRIPTION_ID, LOCAL_TENANT_ID
from identity.infrastructure import ADDRESS_PREFIX
from identity.naming import ArmId, managed_identity_id, parse_arm_id, resource_id
from identity.settings import HostedClusterSettings, KmsSettings, Settings
from identity.settings.schema.endpoints import PrivateSettings

# The roles of a pipeline (docs/guides/first-stack.md).
_DEPLOYER_ROLES: Final = ("Contributor", "User Access Administrator", "Key Vault Secrets Officer")
_SCALE_SETS: Final = "Microsoft.Compute/virtualMachineScaleSets"
_NETWORKS: Final = "Microsoft.Network"
_READY: Final = {"provisioningState": "Succeeded"}
_STANDARD: Final = {"name": "Standard", "tier": "Regional"}
# An address for documentation (RFC 5737).
_PUBLIC_ADDRESS: Final = "203.0.113.1"
_SUBNET_LENGTH: Final = 24
_KEY_VAULT_USER: Final = "key-vault-user"

Document = dict[str, Any]


def seed_of(stacks: Iterable[Settings]) -> Document:
    """The seed for all these configurations together, of base and head; its keys are those of a seed file."""
    all_settings = list(stacks)
    surroundings = _Surroundings(all_settings[0].location)
    for settings in all_settings:
        surroundings.add(settings)
    return surroundings.seed()


class _Surroundings:
    """Collects resources by names in lower case, as Azure compares them: what base and head both name exists once."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._groups: dict[str, Document] = {}
        self._clusters: dict[str, Document] = {}
        self._vaults: dict[str, Document] = {}
        self._keys: dict[str, set[tuple[str, str]]] = {}
        self._identities: dict[str, Document] = {}
        self._resources: dict[str, Document] = {}
        self._subnets: dict[str, dict[str, Document]] = {}
        self._admins: dict[str, Document] = {}

    def seed(self) -> Document:
        """The whole seed."""
        self._complete_networks()
        vaults = [
            {**vault, "keys": [{"name": key, "version": version} for key, version in sorted(self._keys[name])]}
            for name, vault in self._vaults.items()
        ]
        return {
            "tenantId": LOCAL_TENANT_ID,
            "subscriptionId": LOCAL_SUBSCRIPTION_ID,
            "location": self._location,
            "resourceGroups": list(self._groups.values()),
            "deployerRoles": list(_DEPLOYER_ROLES),
            "managedIdentities": list(self._identities.values()),
            "clusters": list(self._clusters.values()),
            "vaults": vaults,
            "resources": list(self._resources.values()),
            "groups": list(self._admins.values()),
        }

    def add(self, settings: Settings) -> None:
        """Add the resources that one stack's configuration names."""
        self._group(settings.resource_group, settings.location)
        for subnet in settings.vault.allowed_subnet_ids if settings.vault else ():
            self._subnet(subnet, settings.location, {})
        self._management_cluster(settings)
        user = settings.key_vault_user
        if user.source == "existing" and user.client_id and user.object_id:
            ids = {"clientId": user.client_id.lower(), "objectId": user.object_id.lower(), "onNodes": True}
            self._identity(settings.resource_group, f"{_KEY_VAULT_USER}-{user.client_id[:8]}", ids)
            if not self._clusters:
                self._clusters[""] = {"name": "nodes", "resourceGroup": settings.resource_group}
        if user.name is not None:
            self._nodes_of(managed_identity_id(settings.subscription_id, settings.resource_group, user.name))
        for cluster in settings.hosted_clusters:
            self._hosted_cluster(settings, cluster)

    def _nodes_of(self, identity_id: str) -> None:
        """Add nodes with an identity that the stack will create: IMDS looks for it at each request."""
        identity = parse_arm_id(identity_id)
        nodes = resource_id(LOCAL_SUBSCRIPTION_ID, identity.resource_group, _SCALE_SETS, f"nodes-{identity.name}")
        assigned = {"type": "UserAssigned", "userAssignedIdentities": {identity_id: {}}}
        self._resource(nodes, _READY, location=self._location, identity=assigned)

    def _management_cluster(self, settings: Settings) -> None:
        cluster = settings.management_cluster
        if cluster is None:
            return
        self._group(cluster.resource_group, settings.location)
        if cluster.create is None:
            seeded_cluster = {"name": cluster.name, "resourceGroup": cluster.resource_group}
            seeded = self._clusters.setdefault(f"{cluster.resource_group}/{cluster.name}".lower(), seeded_cluster)
            if settings.block_instance_metadata:
                seeded["networkPolicy"] = "azure"
            return
        for group in cluster.create.admin_group_object_ids:
            administrators = {
                "displayName": f"administrators-{group[:8]}",
                "objectId": group.lower(),
                "members": ["deployer"],
            }
            self._admins.setdefault(group.lower(), administrators)

    def _hosted_cluster(self, settings: Settings, cluster: HostedClusterSettings) -> None:
        exists = cluster.infrastructure == "existing"
        self._group(cluster.dns_zone_resource_group, settings.location)
        if exists:
            self._infrastructure(cluster)
        if cluster.dns is not None and cluster.dns.public_zone_id is not None:
            self._resource(cluster.dns.public_zone_id, {"zoneType": "Public"}, location="global")
        if exists and cluster.dns is not None and cluster.dns.private_zone_id is not None:
            self._private_zone(settings, cluster, cluster.dns.private_zone_id)
        if cluster.kms is not None:
            self._encryption_keys(cluster.kms, settings.location)
        if cluster.private is not None:
            self._private_link(cluster.private, cluster.location)
        if cluster.backup_storage_account_id is not None:
            self._resource(
                cluster.backup_storage_account_id, _READY, location=cluster.location, sku=_of("Standard_LRS")
            )
        if cluster.external_dns_zone_id is not None:
            self._resource(cluster.external_dns_zone_id, {"zoneType": "Public"}, location="global")
        if cluster.container_registry_id is not None:
            self._resource(cluster.container_registry_id, _READY, location=cluster.location, sku=_of("Premium"))
        for identity in cluster.identities.values():
            if identity.enabled and identity.resource_id is not None:
                ids = {"clientId": identity.client_id.lower()} if identity.client_id else {}
                managed = parse_arm_id(identity.resource_id)
                self._identity(managed.resource_group, managed.name, ids)

    def _infrastructure(self, cluster: HostedClusterSettings) -> None:
        """Add group, network and egress as HyperShift's CLI creates them (`cmd/infra/azure/networking.go`)."""
        self._group(cluster.resource_group, cluster.location)
        self._resource(cluster.security_group_id, {"securityRules": [], **_READY}, location=cluster.location)
        self._network(cluster.vnet_id, cluster.location)
        attached = {"networkSecurityGroup": cluster.security_group_id}
        for key, resource in (("routeTable", cluster.route_table_id), ("natGateway", cluster.nat_gateway_id)):
            if resource is not None:
                self._resource(resource, _READY, location=cluster.location)
                attached[key] = resource
        self._subnet(cluster.subnet_id, cluster.location, attached)
        group, name = cluster.resource_group, cluster.infra_id
        address = resource_id(LOCAL_SUBSCRIPTION_ID, group, f"{_NETWORKS}/publicIPAddresses", name)
        balancer = resource_id(LOCAL_SUBSCRIPTION_ID, group, f"{_NETWORKS}/loadBalancers", name)
        fixed = {"publicIPAddressVersion": "IPv4", "publicIPAllocationMethod": "Static", "ipAddress": _PUBLIC_ADDRESS}
        self._resource(address, {**fixed, **_READY}, location=cluster.location, sku=_STANDARD)
        self._resource(balancer, _egress(balancer, address, name), location=cluster.location, sku=_STANDARD)

    def _private_zone(self, settings: Settings, cluster: HostedClusterSettings, zone_id: str) -> None:
        zone, link = parse_arm_id(zone_id), cluster.names(settings.subscription_id).stem
        self._resource(zone_id, _READY, location="global")
        linked = {"virtualNetwork": {"id": cluster.vnet_id}, "registrationEnabled": False}
        self._resource(
            f"{zone_id}/virtualNetworkLinks/{link}",
            {**linked, "virtualNetworkLinkState": "Completed", **_READY},
            location="global",
        )
        self._group(zone.resource_group, settings.location)

    def _encryption_keys(self, kms: KmsSettings, location: str) -> None:
        for vault, group in kms.vaults.items():
            self._group(group, location)
            self._vaults.setdefault(vault.lower(), {"name": vault, "resourceGroup": group})
        for key in filter(None, (kms.active_key, kms.backup_key)):
            self._keys.setdefault(key.key_vault_name.lower(), set()).add((key.key_name, key.key_version))

    def _private_link(self, private: PrivateSettings, location: str) -> None:
        if private.private_link is not None and private.private_link.nat_subnet_id is not None:
            self._subnet(private.private_link.nat_subnet_id, location, {})

    def _group(self, name: str, location: str) -> None:
        self._groups.setdefault(name.lower(), {"name": name, "location": location})

    def _identity(self, group: str, name: str, ids: Mapping[str, Any]) -> None:
        self._group(group, self._location)
        identity = self._identities.setdefault(f"{group}/{name}".lower(), {"name": name, "resourceGroup": group})
        identity.update(ids)

    def _network(self, vnet_id: str, location: str) -> None:
        self._subnets.setdefault(vnet_id.lower(), {})
        self._resource(vnet_id, {"virtualNetworkPeerings": [], **_READY}, location=location)

    def _subnet(self, subnet_id: str, location: str, attached: Mapping[str, str]) -> None:
        """Add a subnet; `attached` has the ids of the resources that it refers to."""
        vnet_id, _, _ = subnet_id.rpartition("/subnets/")
        self._network(vnet_id, location)
        subnet = self._subnets[vnet_id.lower()].setdefault(subnet_id, {})
        subnet.update({key: {"id": arm_id} for key, arm_id in attached.items()})

    def _complete_networks(self) -> None:
        """Set the address range of each network and of its subnets."""
        for vnet_id, subnets in self._subnets.items():
            ranges: Iterator[IPv4Network] = IPv4Network(ADDRESS_PREFIX).subnets(new_prefix=_SUBNET_LENGTH)
            self._resources[vnet_id]["properties"]["addressSpace"] = {"addressPrefixes": [ADDRESS_PREFIX]}
            for subnet_id, attached in subnets.items():
                self._resource(subnet_id, {"addressPrefix": str(next(ranges)), **attached, **_READY})

    def _resource(
        self,
        full_id: str,
        properties: Mapping[str, Any],
        *,
        location: str | None = None,
        sku: Document | None = None,
        identity: Document | None = None,
    ) -> None:
        parsed: ArmId = parse_arm_id(full_id)
        self._group(parsed.resource_group, location if location not in (None, "global") else self._location)
        document: Document = {
            "type": parsed.type,
            "name": "/".join(parsed.names),
            "resourceGroup": parsed.resource_group,
            "properties": dict(properties),
        }
        document |= {"location": location} if location is not None else {}
        document |= {"sku": sku} if sku is not None else {}
        document |= {"identity": identity} if identity is not None else {}
        self._resources.setdefault(full_id.lower(), document)


def _of(sku: str) -> Document:
    return {"name": sku}


def _egress(balancer: str, address: str, name: str) -> Document:
    """A load balancer with outbound access for its backend pool, which has the infrastructure id as its name."""
    frontend = f"{balancer}/frontendIPConfigurations/{name}"
    pool = f"{balancer}/backendAddressPools/{name}"
    return {
        "frontendIPConfigurations": [
            {"name": name, "id": frontend, "properties": {"publicIPAddress": {"id": address}}}
        ],
        "backendAddressPools": [{"name": name, "id": pool, "properties": dict(_READY)}],
        "outboundRules": [
            {
                "name": name,
                "id": f"{balancer}/outboundRules/{name}",
                "properties": {"backendAddressPool": {"id": pool}, "frontendIPConfigurations": [{"id": frontend}]},
            }
        ],
        **_READY,
    }
