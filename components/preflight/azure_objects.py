"""The objects in Azure that a run looks up, each with its look-up and what it is refused for.

Of what the stack needs but does not create, compared are locations, the subnet's security group and attachments, the
way out of the network, and the private zone. Of what it has made, refused is what nobody can change: azure-native plans
such a change as an update, or as the replacement of a cluster with all that runs in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, TypeAlias

from components.azure.context import CredentialStore
from components.azure.management_cluster import NODE_POOL
from components.preflight.problems import problem
from identity.naming import parse_arm_id, secret_id
from identity.settings import (
    HostedClusterSettings,
    IdentitySettings,
    ManagementClusterSettings,
    Problem,
    Settings,
    VaultSettings,
)
from identity.settings.rules.infrastructure import default_networks_in
from identity.settings.schema.access import CreationSettings
from identity.settings.schema.problems import Place, path_of, show, to_remove, to_set
from identity.settings.schema.schema_node import accepted_by


@dataclass(frozen=True)
class AzureLookup:
    """One look-up in Azure: the function, its arguments, and the object's kind and name for the report."""

    function: str
    arguments: tuple[tuple[str, str], ...]
    description: str


# Azure's answers; an object that does not exist has no entry.
Answers: TypeAlias = Mapping[AzureLookup, Mapping[str, Any]]


class Existence(Enum):
    """Whether an object must exist: the value is what is accepted instead of one that cannot be read."""

    REQUIRED = "one that exists: the stack does not create it"
    MADE_HERE = "one that can be read, or does not exist yet"
    OPTIONAL = "any"


@dataclass(frozen=True)
class NamedObject:
    """An object that the configuration names at `place`.

    Each of the `checks` refuses something of it: it gets the object, ARM's answer, and the answers of all.
    """

    place: Place
    lookup: AzureLookup
    checks: Sequence[Callable[[NamedObject, Mapping[str, Any], Answers], Iterator[Problem]]] = ()
    existence: Existence = Existence.REQUIRED

    def refusals(self, answers: Answers) -> Iterator[Problem]:
        """What is wrong with the object; nothing without an answer, which is reported elsewhere."""
        if (answer := answers.get(self.lookup)) is not None:
            for check in self.checks:
                yield from check(self, answer, answers)


def required_objects(settings: Settings, shared: CredentialStore | None, vault: str) -> Iterator[NamedObject]:
    """Everything that must exist, but for what is imported (`imported_documents.py`).

    If the stack makes the management cluster, its resource group must exist.
    """
    yield NamedObject(("resourceGroup",), resource_group(settings.resource_group))
    if shared is not None:
        yield NamedObject(("sharedStack",), _of_id(vault, "keyvault:getVault", "key vault", "vaultName"))
    if (cluster := settings.management_cluster) is not None:
        if cluster.create is not None:
            yield NamedObject(("managementCluster", "resourceGroup"), resource_group(cluster.resource_group))
        else:
            yield NamedObject(("managementCluster", "name"), management_cluster(cluster))
    for index, hosted in enumerate(settings.hosted_clusters):
        place: Place = ("hostedClusters", index)
        yield from _Infrastructure(settings, hosted, place).objects()
        yield from _key_vaults(hosted, (*place, "kms"))
        if hosted.backup_storage_account_id is not None:
            yield NamedObject((*place, "backupStorageAccountID"), storage_account(hosted.backup_storage_account_id))
        if (registry := hosted.container_registry_id) is not None:
            kind = ("containerregistry:getRegistry", "container registry", "registryName")
            yield NamedObject((*place, "containerRegistryID"), _of_id(registry, *kind))
        if hosted.external_dns_zone_id is not None:
            yield NamedObject((*place, "externalDnsZoneID"), _public_zone(hosted.external_dns_zone_id))


class _Infrastructure:
    """What must exist of the infrastructure of the hosted cluster at `place`, and what is refused of it."""

    def __init__(self, settings: Settings, cluster: HostedClusterSettings, place: Place) -> None:
        self._settings = settings
        self._cluster = cluster
        self._place = place
        self._stem = cluster.names(settings.subscription_id).stem
        self._security_group = security_group(cluster.security_group_id)
        zone = cluster.dns.private_zone_id if cluster.dns is not None else None
        self._link = None if zone is None else private_zone_link(cluster, zone, settings.subscription_id)

    def objects(self) -> Iterator[NamedObject]:
        """Those with the cluster's infrastructure, if the stack does not make it, and the public zone.

        HyperShift's CLI makes the egress load balancer with the HostedCluster (cmd/infra/azure/create.go:295-321). The
        stack does not.
        """
        cluster, place, dns = self._cluster, self._place, self._cluster.dns
        exists, here = cluster.infrastructure == "existing", [self._same_location]
        if exists:
            yield NamedObject((*place, "resourceGroup"), resource_group(cluster.resource_group), here)
        yield NamedObject((*place, "dnsZoneResourceGroup"), resource_group(cluster.dns_zone_resource_group))
        if exists:
            of_subnet = [self._has_the_security_group, self._has_these_attached, self._is_apart_from_pods_and_services]
            yield NamedObject((*place, "vnetID"), virtual_network(cluster.vnet_id), here)
            kind = ("network:getSubnet", "subnet", "virtualNetworkName", "subnetName")
            yield NamedObject((*place, "subnetID"), _of_id(cluster.subnet_id, *kind), of_subnet)
            yield NamedObject((*place, "securityGroupID"), self._security_group, here)
        if exists and cluster.hosted_cluster is not None:
            group, name = cluster.resource_group, cluster.infra_id
            egress = _in_group("network:getLoadBalancer", group, "load balancer", loadBalancerName=name)
            yield NamedObject((*place, "infraID"), egress, [*here, self._has_an_outbound_rule])
        if dns is not None and dns.public_zone_id is not None:
            yield NamedObject((*place, "dns", "publicZoneID"), _public_zone(dns.public_zone_id))
        if exists and dns is not None and dns.private_zone_id is not None and self._link is not None:
            at = (*place, "dns", "privateZoneID")
            yield NamedObject(at, private_zone(dns.private_zone_id), [self._is_linked])
            yield NamedObject(at, self._link, existence=Existence.OPTIONAL)

    def _same_location(self, what: NamedObject, answer: Mapping[str, Any], _: Answers) -> Iterator[Problem]:
        """Network, security group and managed resource group have one location.

        Otherwise the control-plane operator stops (openshift/hypershift control-plane-operator/controllers/
        hostedcontrolplane/hostedcontrolplane_controller.go:3285-3345). Nodes can only be where their network is.
        """
        location = self._cluster.location
        if not is_same_location(location, answer.get("location")):
            yield Problem(
                place=what.place,
                rule="location-differs",
                found=f'{what.lookup.description}, which is in "{answer.get("location")}"',
                accepted=f'one in "{location}": the hosted cluster, its network, its security group and its managed '
                "resource group have one location",
                fix=f"name an existing one, or correct {path_of((*self._place, 'location'))}",
            )

    def _has_the_security_group(
        self, what: NamedObject, answer: Mapping[str, Any], answers: Answers
    ) -> Iterator[Problem]:
        """`securityGroupID` is "an existing security group on the SubnetID" (api/hypershift/v1beta1/azure.go:450).

        A standard load balancer lets nothing in to a subnet without one.
        """
        wanted = self._cluster.security_group_id
        group = (answer.get("networkSecurityGroup") or {}).get("id")
        if self._security_group in answers and str(group).lower() != wanted.lower():
            has = f'whose network security group is "{group}"' if group else "which has no network security group"
            yield Problem(
                place=what.place,
                rule="security-group-of-other-subnet",
                found=f"{what.lookup.description}, {has}",
                accepted=f"a subnet with the network security group of {path_of((*self._place, 'securityGroupID'))}",
                fix=f"`az network vnet subnet update --ids {self._cluster.subnet_id} --network-security-group "
                f"{wanted}`, or correct one of the two",
            )

    def _has_these_attached(self, what: NamedObject, answer: Mapping[str, Any], _: Answers) -> Iterator[Problem]:
        """Route table and NAT gateway of the subnet: with `roles: builtin` a role is assigned at both.

        Without it every write of the subnet is refused, as the writer may not join what the subnet refers to.
        """
        for key, property_, kind, configured in (
            ("routeTableID", "routeTable", "route table", self._cluster.route_table_id),
            ("natGatewayID", "natGateway", "NAT gateway", self._cluster.nat_gateway_id),
        ):
            attached = (answer.get(property_) or {}).get("id")
            is_read = configured is not None or self._settings.roles == "builtin"
            if (configured or "").lower() == (attached or "").lower() or not is_read:
                continue
            at = (*self._place, key)
            yield Problem(
                place=at,
                rule="subnet-attachment-differs",
                found=f'"{configured}"' if configured is not None else "nothing",
                accepted=f'"{attached}", which is the {kind} of {what.lookup.description}'
                if attached
                else f"nothing: {what.lookup.description} has no {kind}",
                fix=to_set(at, attached) if attached else to_remove(at),
            )

    def _is_apart_from_pods_and_services(
        self, what: NamedObject, answer: Mapping[str, Any], _: Answers
    ) -> Iterator[Problem]:
        for nodes in answer.get("addressPrefixes") or filter(None, [answer.get("addressPrefix")]):
            for key, taken in default_networks_in(nodes, self._cluster):
                yield Problem(
                    place=what.place,
                    rule="network-of-pods-or-services",
                    found=f"{what.lookup.description}, which is {nodes}",
                    accepted=accepted_by("network-of-pods-or-services", what.place, key=key, taken=taken),
                    fix=f"name another subnet, or set spec.networking.{key} in the HostedCluster",
                )

    def _has_an_outbound_rule(self, what: NamedObject, answer: Mapping[str, Any], _: Answers) -> Iterator[Problem]:
        """The nodes join the backend pool with the name of the infrastructure id, whose outbound rule lets them out.

        Source: hypershift-operator/controllers/hostedcluster/internal/platform/azure/azure.go:450-452 and
        cmd/infra/azure/networking.go:432-451.
        """
        name, group = self._cluster.infra_id, self._cluster.resource_group
        public = {
            _id(frontend)
            for frontend in _list(answer, "frontendIPConfigurations")
            if frontend.get("publicIPAddress") or frontend.get("publicIPPrefix")
        }
        rules = [
            rule
            for rule in _list(answer, "outboundRules")
            if _id(rule.get("backendAddressPool")).endswith(f"/backendaddresspools/{name}")
            and not public.isdisjoint(_id(frontend) for frontend in _list(rule, "frontendIPConfigurations"))
        ]
        if not rules:
            yield problem(
                "egress-without-outbound-rule", what.place, object=what.lookup.description, name=name, group=group
            )

    def _is_linked(self, what: NamedObject, answer: Mapping[str, Any], answers: Answers) -> Iterator[Problem]:
        """The nodes resolve the names of the private zone only if a link of any name leads to their network."""
        vnet, names = self._cluster.vnet_id, dict(what.lookup.arguments)
        link = None if self._link is None else answers.get(self._link)
        linked = None if link is None else _id(link.get("virtualNetwork"))
        if linked == vnet.lower() or (linked is None and answer.get("numberOfVirtualNetworkLinks")):
            return
        yield Problem(
            place=what.place,
            rule="private-zone-not-linked",
            found=f"{what.lookup.description}, "
            + (f'whose link "{self._stem}" is to "{linked}"' if linked else "which is linked to no network"),
            accepted=f"a zone with a link to the network of {path_of((*self._place, 'vnetID'))}",
            fix=f"`az network private-dns link vnet create --resource-group {names['resourceGroupName']} "
            f"--zone-name {names['privateZoneName']} --name {self._stem} --virtual-network {vnet} "
            "--registration-enabled false`",
        )


def _key_vaults(cluster: HostedClusterSettings, place: Place) -> Iterator[NamedObject]:
    """The vault, or managed HSM, of each key that encrypts etcd."""
    kms = cluster.kms
    if kms is None:
        return
    for key, kms_key in (("activeKey", kms.active_key), ("backupKey", kms.backup_key)):
        if kms_key is None:
            continue
        name = kms_key.key_vault_name
        group = kms.vaults[name]
        lookup = (
            _in_group("keyvault:getManagedHsm", group, "managed HSM", name=name)
            if kms.is_managed_hsm
            else _in_group("keyvault:getVault", group, "key vault", vaultName=name)
        )
        yield NamedObject((*place, key, "keyVaultName"), lookup)


# Key, configured value, and the present one: None where the answer has none.
_Values: TypeAlias = tuple[Place, object, object]
# Nobody can change the values that it finds in an answer.
_Unchangeable: TypeAlias = Callable[[Mapping[str, Any]], Iterable[_Values]]


def made_objects(settings: Settings, *, renews_only: bool) -> list[NamedObject]:
    """What the stack makes with tags, or cannot change everything of; none of it needs to exist.

    A renewal changes nothing of it, and its identity may read the cluster alone.
    """
    cluster = settings.management_cluster
    made: list[tuple[Place, AzureLookup, _Unchangeable]] = []
    if cluster is not None and cluster.create is not None:
        values = _nothing if renews_only else partial(_of_cluster, settings, cluster.create)
        made.append((("managementCluster", "name"), management_cluster(cluster), values))
    if not renews_only:
        made += _made(settings)
    return [NamedObject(at, lookup, [partial(_is_kept, values)], Existence.MADE_HERE) for at, lookup, values in made]


def _made(settings: Settings) -> Iterator[tuple[Place, AzureLookup, _Unchangeable]]:
    if settings.vault is not None:
        vault = _in_group("keyvault:getVault", settings.resource_group, "key vault", vaultName=settings.vault.name)
        yield ("vault", "name"), vault, partial(_of_vault, settings, settings.vault)
    if (reader := settings.key_vault_user.name) is not None and settings.has_key_vault_user:
        yield ("keyVaultUser", "name"), managed_identity(settings.identity_id(reader)), _nothing
    for index, hosted in enumerate(settings.hosted_clusters):
        place: Place = ("hostedClusters", index)
        for name in hosted.identity_names.values():
            yield place, managed_identity(settings.identity_id(name)), _nothing
        if hosted.issuer == "create" and hosted.issuer_name is not None:
            yield place, storage_account(settings.issuer_account_id(hosted.issuer_name)), _nothing
        if hosted.infrastructure == "create":
            names = hosted.names(settings.subscription_id)
            at: Place = (*place, "location")
            yield at, resource_group(names.managed_group), partial(_of_infrastructure, at, hosted)
            for group in names.groups:
                yield place, resource_group(group), _nothing
            yield place, virtual_network(names.network_id), _nothing
            yield place, security_group(names.security_group_id), _nothing
            if hosted.dns is not None:
                zone = names.private_zone_id(hosted.dns.base_domain)
                yield place, private_zone(zone), _nothing
                yield place, private_zone_link(hosted, zone, settings.subscription_id), _nothing


def _is_kept(values: _Unchangeable, what: NamedObject, answer: Mapping[str, Any], _: Answers) -> Iterator[Problem]:
    for key, configured, present in values(answer):
        if present is None or _is_same(configured, present):
            continue
        yield Problem(
            place=key,
            rule="unchangeable",
            found=show(configured) if not isinstance(configured, list) else str(configured),
            accepted=f"{_text(present)}, as {what.lookup.description} has it: Azure lets nobody change that",
            fix=f"put {_text(present)} back" if isinstance(present, list) else to_set(key, _bare(present)),
        )


def _nothing(answer: Mapping[str, Any]) -> Iterable[_Values]:
    return ()


def _of_infrastructure(at: Place, hosted: HostedClusterSettings, answer: Mapping[str, Any]) -> Iterator[_Values]:
    yield at, hosted.location, answer.get("location")


def _of_vault(settings: Settings, vault: VaultSettings, answer: Mapping[str, Any]) -> Iterator[_Values]:
    properties = answer.get("properties") or {}
    days = properties.get("softDeleteRetentionInDays")
    yield ("location",), settings.location, answer.get("location")
    yield ("vault", "softDeleteRetentionDays"), vault.soft_delete_retention_days, days
    # It can be switched on.
    yield ("vault", "purgeProtection"), vault.purge_protection, properties.get("enablePurgeProtection") or None


def _of_cluster(settings: Settings, creation: CreationSettings, answer: Mapping[str, Any]) -> Iterator[_Values]:
    yield ("location",), settings.location, answer.get("location")
    at: Place = ("managementCluster", "create")
    for pool in answer.get("agentPoolProfiles") or ():
        if pool.get("name") == NODE_POOL:
            yield (*at, "nodePool", "vmSize"), creation.node_pool.vm_size, pool.get("vmSize")
            yield (*at, "nodePool", "maxPods"), creation.node_pool.max_pods, pool.get("maxPods")
            zones = sorted(map(int, pool.get("availabilityZones") or ()))
            yield (*at, "nodePool", "zones"), list(creation.node_pool.zones), zones
    network = answer.get("networkProfile") or {}
    yield (*at, "network", "plugin"), creation.network.plugin, network.get("networkPlugin")
    yield (*at, "network", "policy"), creation.network.policy, network.get("networkPolicy")


def _is_same(configured: object, present: object) -> bool:
    if isinstance(configured, str):
        return is_same_location(configured, present)
    return configured == present


def _bare(value: object) -> str:
    # The engine passes every number on as a float.
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if value is True else str(value)


def _text(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else _bare(value)


def resource_group(name: str) -> AzureLookup:
    """A resource group."""
    return AzureLookup("resources:getResourceGroup", (("resourceGroupName", name),), f'the resource group "{name}"')


def management_cluster(cluster: ManagementClusterSettings) -> AzureLookup:
    """The AKS cluster of the hosted control planes."""
    return _in_group(
        "containerservice:getManagedCluster", cluster.resource_group, "AKS cluster", resourceName=cluster.name
    )


def virtual_network(arm_id: str) -> AzureLookup:
    """The virtual network of this id."""
    return _of_id(arm_id, "network:getVirtualNetwork", "virtual network", "virtualNetworkName")


def security_group(arm_id: str) -> AzureLookup:
    """The network security group of this id."""
    return _of_id(arm_id, "network:getNetworkSecurityGroup", "network security group", "networkSecurityGroupName")


def _public_zone(arm_id: str) -> AzureLookup:
    return _of_id(arm_id, "dns:getZone", "DNS zone", "zoneName")


def private_zone(arm_id: str) -> AzureLookup:
    """The private DNS zone of this id."""
    return _of_id(arm_id, "privatedns:getPrivateZone", "private DNS zone", "privateZoneName")


def private_zone_link(cluster: HostedClusterSettings, zone_id: str, subscription: str) -> AzureLookup:
    """The zone's link to the cluster's network, under HyperShift's name."""
    link = f"{zone_id}/virtualNetworkLinks/{cluster.names(subscription).stem}"
    names = ("privateZoneName", "virtualNetworkLinkName")
    return _of_id(link, "privatedns:getVirtualNetworkLink", "virtual network link", *names)


def managed_identity(arm_id: str) -> AzureLookup:
    """The managed identity of this id."""
    return _of_id(arm_id, "managedidentity:getUserAssignedIdentity", "managed identity", "resourceName")


def storage_account(arm_id: str) -> AzureLookup:
    """The storage account of this id."""
    return _of_id(arm_id, "storage:getStorageAccount", "storage account", "accountName")


def stored_secret(vault_arm_id: str, identity: IdentitySettings) -> AzureLookup:
    """The secret that holds the identity's credential already."""
    secret = secret_id(vault_arm_id, identity.secret_name)
    return _of_id(secret, "keyvault:getSecret", "secret", "vaultName", "secretName")


def _of_id(arm_id: str, function: str, kind: str, *arguments: str) -> AzureLookup:
    """The look-up of a resource, whose names in its id are these arguments."""
    resource = parse_arm_id(arm_id)
    return _in_group(function, resource.resource_group, kind, **dict(zip(arguments, resource.names, strict=True)))


def _in_group(function: str, resource_group: str, kind: str, **names: str) -> AzureLookup:
    path = "/".join(names.values())
    arguments = (("resourceGroupName", resource_group), *names.items())
    return AzureLookup(function, arguments, f'the {kind} "{path}" in the resource group "{resource_group}"')


def is_same_location(configured: str, present: object) -> bool:
    """Whether ARM's name is the configured one: `East US` is `eastus`."""
    return configured.replace(" ", "").lower() == str(present).replace(" ", "").lower()


def _list(holder: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    return list(holder.get(key) or ())


def _id(reference: object) -> str:
    """The id in a reference, in lower case."""
    return str(reference.get("id")).lower() if isinstance(reference, Mapping) else ""
