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
from identity.naming import managed_identity_id, parse_arm_id, resource_id
from identity.settings import HostedClusterSettings, Settings

# The roles of a pipeline (docs/guides/first-stack.md).
_DEPLOYER_ROLES: Final = ("Contributor", "User Access Administrator", "Key Vault Secrets Officer")
_SCALE_SETS: Final = "Microsoft.Compute/virtualMachineScaleSets"
_NETWORKS: Final = "Microsoft.Network"
_READY: Final = {"provisioningState": "Succeeded"}
_PUBLIC: Final = {"zoneType": "Public"}
_STANDARD: Final = {"name": "Standard", "tier": "Regional"}
# An address for documentation (RFC 5737).
_PUBLIC_ADDRESS: Final = "203.0.113.1"
_SUBNET_LENGTH: Final = 24
_KEY_VAULT_USER: Final = "key-vault-user"
# The location of DNS zones.
_GLOBAL: Final = "global"

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
        for vnet_id, subnets in self._subnets.items():
            ranges: Iterator[IPv4Network] = IPv4Network(ADDRESS_PREFIX).subnets(new_prefix=_SUBNET_LENGTH)
            self._resources[vnet_id]["properties"]["addressSpace"] = {"addressPrefixes": [ADDRESS_PREFIX]}
            for subnet_id, attached in subnets.items():
                self._resource(subnet_id, {"addressPrefix": str(next(ranges)), **attached, **_READY})
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
        self._group(settings.resource_group, settings.location)
        for subnet in settings.vault.allowed_subnet_ids if settings.vault else ():
            self._subnet(subnet, settings.location)
        self._management_cluster(settings)
        user = settings.key_vault_user
        if user.source == "existing" and user.client_id and user.object_id:
            ids = {"clientId": user.client_id.lower(), "objectId": user.object_id.lower(), "onNodes": True}
            self._identity(settings.resource_group, f"{_KEY_VAULT_USER}-{user.client_id[:8]}", ids)
            if not self._clusters:
                self._clusters[""] = {"name": "nodes", "resourceGroup": settings.resource_group}
        if user.name is not None:
            # Nodes with an identity that the stack will create: IMDS looks for it at each request.
            group = settings.resource_group
            identity = managed_identity_id(settings.subscription_id, group, user.name)
            nodes = resource_id(LOCAL_SUBSCRIPTION_ID, group, _SCALE_SETS, f"nodes-{user.name}")
            assigned = {"type": "UserAssigned", "userAssignedIdentities": {identity: {}}}
            self._resource(nodes, _READY, location=self._location, identity=assigned)
        for cluster in settings.hosted_clusters:
            self._hosted_cluster(settings, cluster)

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
            administrators = {"displayName": f"administrators-{group[:8]}", "objectId": group.lower()}
            self._admins.setdefault(group.lower(), {**administrators, "members": ["deployer"]})

    def _hosted_cluster(self, settings: Settings, cluster: HostedClusterSettings) -> None:
        exists, dns, location = cluster.infrastructure == "existing", cluster.dns, cluster.location
        self._group(cluster.dns_zone_resource_group, settings.location)
        if exists:
            self._infrastructure(cluster)
        if exists and dns is not None and dns.private_zone_id is not None:
            self._resource(dns.private_zone_id, _READY, location=_GLOBAL)
            link = f"{dns.private_zone_id}/virtualNetworkLinks/{cluster.names(settings.subscription_id).stem}"
            linked = {"virtualNetwork": {"id": cluster.vnet_id}, "registrationEnabled": False}
            self._resource(link, {**linked, "virtualNetworkLinkState": "Completed", **_READY}, location=_GLOBAL)
        for zone in (dns.public_zone_id if dns is not None else None, cluster.external_dns_zone_id):
            if zone is not None:
                self._resource(zone, _PUBLIC, location=_GLOBAL)
        for resource, sku in (
            (cluster.backup_storage_account_id, "Standard_LRS"),
            (cluster.container_registry_id, "Premium"),
        ):
            if resource is not None:
                self._resource(resource, _READY, location=location, sku={"name": sku})
        if (kms := cluster.kms) is not None:
            for vault, group in kms.vaults.items():
                self._group(group, settings.location)
                self._vaults.setdefault(vault.lower(), {"name": vault, "resourceGroup": group})
            for key in filter(None, (kms.active_key, kms.backup_key)):
                self._keys.setdefault(key.key_vault_name.lower(), set()).add((key.key_name, key.key_version))
        link_service = cluster.private.private_link if cluster.private is not None else None
        if link_service is not None and link_service.nat_subnet_id is not None:
            self._subnet(link_service.nat_subnet_id, location)
        for identity in cluster.identities.values():
            if identity.enabled and identity.resource_id is not None:
                ids = {"clientId": identity.client_id.lower()} if identity.client_id else {}
                managed = parse_arm_id(identity.resource_id)
                self._identity(managed.resource_group, managed.name, ids)

    def _infrastructure(self, cluster: HostedClusterSettings) -> None:
        """Add group, network and egress as HyperShift's CLI creates them (`cmd/infra/azure/networking.go`)."""
        location, group, name = cluster.location, cluster.resource_group, cluster.infra_id
        self._group(group, location)
        self._resource(cluster.security_group_id, {"securityRules": [], **_READY}, location=location)
        attached = {"networkSecurityGroup": cluster.security_group_id}
        for key, resource in (("routeTable", cluster.route_table_id), ("natGateway", cluster.nat_gateway_id)):
            if resource is not None:
                self._resource(resource, _READY, location=location)
                attached[key] = resource
        self._subnet(cluster.subnet_id, location, **attached)
        address = resource_id(LOCAL_SUBSCRIPTION_ID, group, f"{_NETWORKS}/publicIPAddresses", name)
        balancer = resource_id(LOCAL_SUBSCRIPTION_ID, group, f"{_NETWORKS}/loadBalancers", name)
        fixed = {"publicIPAddressVersion": "IPv4", "publicIPAllocationMethod": "Static", "ipAddress": _PUBLIC_ADDRESS}
        self._resource(address, {**fixed, **_READY}, location=location, sku=_STANDARD)
        self._resource(balancer, _egress(balancer, address, name), location=location, sku=_STANDARD)

    def _group(self, name: str, location: str) -> None:
        self._groups.setdefault(name.lower(), {"name": name, "location": location})

    def _identity(self, group: str, name: str, ids: Mapping[str, Any]) -> None:
        self._group(group, self._location)
        identity = self._identities.setdefault(f"{group}/{name}".lower(), {"name": name, "resourceGroup": group})
        identity.update(ids)

    def _subnet(self, subnet_id: str, location: str, **attached: str) -> None:
        """Add a subnet and its network; `attached` has the ids of the resources that the subnet refers to."""
        vnet_id, _, _ = subnet_id.rpartition("/subnets/")
        self._resource(vnet_id, {"virtualNetworkPeerings": [], **_READY}, location=location)
        subnet = self._subnets.setdefault(vnet_id.lower(), {}).setdefault(subnet_id, {})
        subnet.update({key: {"id": arm_id} for key, arm_id in attached.items()})

    def _resource(self, full_id: str, properties: Mapping[str, Any], **others: Any) -> None:
        """Add a resource; `others` are further members of its document."""
        parsed, location = parse_arm_id(full_id), others.get("location", _GLOBAL)
        self._group(parsed.resource_group, self._location if location == _GLOBAL else location)
        document: Document = {
            "type": parsed.type,
            "name": "/".join(parsed.names),
            "resourceGroup": parsed.resource_group,
            "properties": dict(properties),
        }
        self._resources.setdefault(full_id.lower(), {**document, **others})


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
