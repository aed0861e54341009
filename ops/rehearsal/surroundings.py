"""What must exist before a stack's first run: the seed of a local cloud, derived from the typed settings.

Everything that the configuration names and the stack does not make itself, as `components/preflight` demands it. The
documents are those of `localcloud/README.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Network
from typing import Any, Final

from identity.clouds import LOCAL_SUBSCRIPTION_ID, LOCAL_TENANT_ID
from identity.infrastructure import ADDRESS_PREFIX
from identity.naming import ArmId, managed_identity_id, parse_arm_id, resource_id
from identity.settings import HostedClusterSettings, KmsSettings, MonitoringSettings, Settings
from identity.settings.schema.endpoint_access import PrivateSettings

# With which a pipeline deploys stacks (docs/guides/first-stack.md).
_DEPLOYER_ROLES: Final = ("Contributor", "User Access Administrator", "Key Vault Secrets Officer")
_SCALE_SETS: Final = "Microsoft.Compute/virtualMachineScaleSets"
_NETWORKS: Final = "Microsoft.Network"
_READY: Final = {"provisioningState": "Succeeded"}
_STANDARD: Final = {"name": "Standard", "tier": "Regional"}
# RFC 5737: nobody's.
_PUBLIC_ADDRESS: Final = "203.0.113.1"
_SUBNET_LENGTH: Final = 24
_KEY_VAULT_USER: Final = "key-vault-user"

Document = dict[str, Any]


def seed_of(stacks: Iterable[Settings]) -> Document:
    """The seed for all these configurations together, of base and head; its keys are those of a seed file."""
    known = list(stacks)
    found = _Surroundings(known[0].location)
    for settings in known:
        found.add(settings)
    return found.seed()


class _Surroundings:
    """Collects by names in lower case, as Azure compares them: what base and head both name exists once."""

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
        """What one stack's configuration names."""
        self._group(settings.resource_group, settings.location)
        for subnet in settings.vault.allowed_subnet_ids if settings.vault else ():
            self._subnet(subnet, settings.location, {})
        if settings.monitoring is not None:
            self._monitoring(settings.monitoring, settings.location)
        self._management_cluster(settings)
        user = settings.key_vault_user
        if user.source == "existing" and user.client_id and user.object_id:
            ids = {"clientId": user.client_id.lower(), "objectId": user.object_id.lower(), "onNodes": True}
            self._identity(settings.resource_group, f"{_KEY_VAULT_USER}-{user.client_id[:8]}", ids)
            if not self._clusters:
                self._clusters[""] = {"name": "nodes", "resourceGroup": settings.resource_group}
        if user.name is not None:
            self._nodes_of(managed_identity_id(settings.subscription_id, settings.resource_group, user.name))
        for hosted in settings.hosted_clusters:
            self._hosted_cluster(settings, hosted)

    def _nodes_of(self, identity_id: str) -> None:
        """Nodes that carry an identity which the stack will make: IMDS looks for it when it is asked."""
        found = parse_arm_id(identity_id)
        nodes = resource_id(LOCAL_SUBSCRIPTION_ID, found.resource_group, _SCALE_SETS, f"nodes-{found.name}")
        carried = {"type": "UserAssigned", "userAssignedIdentities": {identity_id: {}}}
        self._resource(nodes, _READY, location=self._location, identity=carried)

    def _monitoring(self, monitoring: MonitoringSettings, location: str) -> None:
        log, alerts = monitoring.audit_log, monitoring.expiry_alerts
        if log is not None and log.workspace_id is not None:
            self._resource(log.workspace_id, _READY, location=location)
        if log is not None and log.storage_account_id is not None:
            self._resource(log.storage_account_id, _READY, location=location, sku=_of("Standard_LRS"))
        for group in () if alerts is None else alerts.action_group_ids:
            self._resource(group, {"groupShortName": "rehearsal", "enabled": True}, location="global")

    def _management_cluster(self, settings: Settings) -> None:
        cluster = settings.management_cluster
        if cluster is None:
            return
        self._group(cluster.resource_group, settings.location)
        if cluster.create is None:
            named = {"name": cluster.name, "resourceGroup": cluster.resource_group}
            seeded = self._clusters.setdefault(f"{cluster.resource_group}/{cluster.name}".lower(), named)
            if settings.block_instance_metadata:
                seeded["networkPolicy"] = "azure"
            return
        for group in cluster.create.admin_group_object_ids:
            made = {"displayName": f"administrators-{group[:8]}", "objectId": group.lower(), "members": ["deployer"]}
            self._admins.setdefault(group.lower(), made)

    def _hosted_cluster(self, settings: Settings, hosted: HostedClusterSettings) -> None:
        exists = hosted.infrastructure == "existing"
        self._group(hosted.dns_zone_resource_group, settings.location)
        if exists:
            self._infrastructure(hosted)
        if hosted.dns is not None and hosted.dns.public_zone_id is not None:
            self._resource(hosted.dns.public_zone_id, {"zoneType": "Public"}, location="global")
        if exists and hosted.dns is not None and hosted.dns.private_zone_id is not None:
            self._private_zone(settings, hosted, hosted.dns.private_zone_id)
        if hosted.kms is not None:
            self._encryption_keys(hosted.kms, settings.location)
        if hosted.private is not None:
            self._private_link(hosted.private, hosted.location)
        if hosted.backup_storage_account_id is not None:
            self._resource(hosted.backup_storage_account_id, _READY, location=hosted.location, sku=_of("Standard_LRS"))
        if hosted.external_dns_zone_id is not None:
            self._resource(hosted.external_dns_zone_id, {"zoneType": "Public"}, location="global")
        if hosted.container_registry_id is not None:
            self._resource(hosted.container_registry_id, _READY, location=hosted.location, sku=_of("Premium"))
        for identity in hosted.identities.values():
            if identity.enabled and identity.resource_id is not None:
                given = {"clientId": identity.client_id.lower()} if identity.client_id else {}
                managed = parse_arm_id(identity.resource_id)
                self._identity(managed.resource_group, managed.name, given)

    def _infrastructure(self, hosted: HostedClusterSettings) -> None:
        """Group, network and way out as HyperShift's CLI makes them (`cmd/infra/azure/networking.go`)."""
        self._group(hosted.resource_group, hosted.location)
        self._resource(hosted.security_group_id, {"securityRules": [], **_READY}, location=hosted.location)
        self._network(hosted.vnet_id, hosted.location)
        attached = {"networkSecurityGroup": hosted.security_group_id}
        for key, given in (("routeTable", hosted.route_table_id), ("natGateway", hosted.nat_gateway_id)):
            if given is not None:
                self._resource(given, _READY, location=hosted.location)
                attached[key] = given
        self._subnet(hosted.subnet_id, hosted.location, attached)
        group, name = hosted.resource_group, hosted.infra_id
        address = resource_id(LOCAL_SUBSCRIPTION_ID, group, f"{_NETWORKS}/publicIPAddresses", name)
        balancer = resource_id(LOCAL_SUBSCRIPTION_ID, group, f"{_NETWORKS}/loadBalancers", name)
        fixed = {"publicIPAddressVersion": "IPv4", "publicIPAllocationMethod": "Static", "ipAddress": _PUBLIC_ADDRESS}
        self._resource(address, {**fixed, **_READY}, location=hosted.location, sku=_STANDARD)
        self._resource(balancer, _egress(balancer, address, name), location=hosted.location, sku=_STANDARD)

    def _private_zone(self, settings: Settings, hosted: HostedClusterSettings, zone_id: str) -> None:
        zone, link = parse_arm_id(zone_id), hosted.names(settings.subscription_id).stem
        self._resource(zone_id, _READY, location="global")
        linked = {"virtualNetwork": {"id": hosted.vnet_id}, "registrationEnabled": False}
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

    def _identity(self, group: str, name: str, given: Mapping[str, Any]) -> None:
        self._group(group, self._location)
        made = self._identities.setdefault(f"{group}/{name}".lower(), {"name": name, "resourceGroup": group})
        made.update(given)

    def _network(self, vnet_id: str, location: str) -> None:
        self._subnets.setdefault(vnet_id.lower(), {})
        self._resource(vnet_id, {"virtualNetworkPeerings": [], **_READY}, location=location)

    def _subnet(self, subnet_id: str, location: str, attached: Mapping[str, str]) -> None:
        """`attached` has the ids of what the subnet refers to."""
        vnet_id, _, _ = subnet_id.rpartition("/subnets/")
        self._network(vnet_id, location)
        known = self._subnets[vnet_id.lower()].setdefault(subnet_id, {})
        known.update({key: {"id": arm_id} for key, arm_id in attached.items()})

    def _complete_networks(self) -> None:
        """Give each network a range, and each of its subnets a part of it."""
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
        found: ArmId = parse_arm_id(full_id)
        self._group(found.resource_group, location if location not in (None, "global") else self._location)
        document: Document = {
            "type": found.type,
            "name": "/".join(found.names),
            "resourceGroup": found.resource_group,
            "properties": dict(properties),
        }
        document |= {"location": location} if location is not None else {}
        document |= {"sku": sku} if sku is not None else {}
        document |= {"identity": identity} if identity is not None else {}
        self._resources.setdefault(full_id.lower(), document)


def _of(sku: str) -> Document:
    return {"name": sku}


def _egress(balancer: str, address: str, name: str) -> Document:
    """A load balancer whose backend pool, named as the infrastructure id, reaches the internet."""
    frontend = f"{balancer}/frontendIPConfigurations/{name}"
    pool = f"{balancer}/backendAddressPools/{name}"
    return {
        "frontendIPConfigurations": [
            {"name": name, "id": frontend, "properties": {"publicIPAddress": {"id": address}}},
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
