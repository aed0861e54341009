"""The objects in Azure that the stack needs but does not create, and what of a hosted cluster's infrastructure differs.

A look-up has the provider function that reads the object. Compared are locations, the subnet's security group and
attachments, the way out of the network, and the private zone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from components.azure.context import CredentialStore
from identity.naming import parse_arm_id, secret_id
from identity.settings import (
    HostedClusterSettings,
    IdentitySettings,
    ManagementClusterSettings,
    Problem,
    Settings,
    VaultSettings,
)
from identity.settings.rules.infrastructure import apart_from, default_networks_in
from identity.settings.schema.problems import Place, path_of, to_remove, to_set


@dataclass(frozen=True)
class AzureLookup:
    """One look-up in Azure: the function, its arguments, and the object's kind and name for the report."""

    function: str
    arguments: tuple[tuple[str, str], ...]
    description: str


# Azure's answers; an object that does not exist has no entry.
Answers: TypeAlias = Mapping[AzureLookup, Mapping[str, Any]]


def required_lookups(
    settings: Settings, shared: CredentialStore | None, vault: str
) -> Iterator[tuple[Place, AzureLookup]]:
    """Everything that must exist, with the place in the configuration that names it.

    If the stack makes the management cluster, its resource group must exist.
    """
    yield ("resourceGroup",), resource_group(settings.resource_group)
    if shared is not None:
        yield ("sharedStack",), _of_id(vault, "keyvault:getVault", "key vault", "vaultName")
    if settings.management_cluster is not None:
        cluster = settings.management_cluster
        if cluster.create is not None:
            yield ("managementCluster", "resourceGroup"), resource_group(cluster.resource_group)
        else:
            yield ("managementCluster", "name"), management_cluster(cluster)
    for index, hosted in enumerate(settings.hosted_clusters):
        place: Place = ("hostedClusters", index)
        yield from _infrastructure(hosted, place)
        yield from _key_vaults(hosted, (*place, "kms"))
        if hosted.backup_storage_account_id is not None:
            yield (*place, "backupStorageAccountID"), storage_account(hosted.backup_storage_account_id)
        if hosted.container_registry_id is not None:
            registry = _of_id(
                hosted.container_registry_id, "containerregistry:getRegistry", "container registry", "registryName"
            )
            yield (*place, "containerRegistryID"), registry
        if hosted.external_dns_zone_id is not None:
            yield (*place, "externalDnsZoneID"), _public_zone(hosted.external_dns_zone_id)
        for name, identity in imported_identities(hosted):
            at = (*place, "identities", name)
            yield (*at, "resourceId"), managed_identity(identity.resource_id or "")
            if identity.credential is not None and identity.credential.secret_name is not None:
                yield (*at, "credential", "secretName"), stored_secret(vault, identity)


def _infrastructure(hosted: HostedClusterSettings, place: Place) -> Iterator[tuple[Place, AzureLookup]]:
    """What must exist of a hosted cluster's infrastructure.

    HyperShift's CLI makes the egress load balancer with the HostedCluster (cmd/infra/azure/create.go:295-321). The
    stack does not.
    """
    exists = hosted.infrastructure == "existing"
    if exists:
        yield (*place, "resourceGroup"), resource_group(hosted.resource_group)
    yield (*place, "dnsZoneResourceGroup"), resource_group(hosted.dns_zone_resource_group)
    if exists:
        yield (*place, "vnetID"), virtual_network(hosted.vnet_id)
        yield (*place, "subnetID"), subnet(hosted.subnet_id)
        yield (*place, "securityGroupID"), security_group(hosted.security_group_id)
    if exists and hosted.hosted_cluster is not None:
        yield (*place, "infraID"), egress(hosted)
    if hosted.dns is not None and hosted.dns.public_zone_id is not None:
        yield (*place, "dns", "publicZoneID"), _public_zone(hosted.dns.public_zone_id)
    if exists and hosted.dns is not None and hosted.dns.private_zone_id is not None:
        yield (*place, "dns", "privateZoneID"), private_zone(hosted.dns.private_zone_id)


def optional_lookups(settings: Settings) -> Iterator[AzureLookup]:
    """What may exist under this name or another: the private zones' links to the networks."""
    for hosted in settings.hosted_clusters:
        if hosted.infrastructure == "existing" and hosted.dns is not None and hosted.dns.private_zone_id is not None:
            yield private_zone_link(hosted, hosted.dns.private_zone_id, settings.subscription_id)


def earlier_documents(settings: Settings, vault: str) -> Iterator[AzureLookup]:
    """The secrets that documents from files are written to, which the vault may have already."""
    for hosted in settings.hosted_clusters:
        for _, identity in imported_identities(hosted):
            yield stored_secret(vault, identity)


def resource_group(name: str) -> AzureLookup:
    """A resource group."""
    return AzureLookup("resources:getResourceGroup", (("resourceGroupName", name),), f'the resource group "{name}"')


def management_cluster(cluster: ManagementClusterSettings) -> AzureLookup:
    """The AKS cluster of the hosted control planes."""
    return _in_group(
        "containerservice:getManagedCluster", cluster.resource_group, "AKS cluster", resourceName=cluster.name
    )


def own_vault(settings: Settings, vault: VaultSettings) -> AzureLookup:
    """The vault that the stack makes."""
    return _in_group("keyvault:getVault", settings.resource_group, "key vault", vaultName=vault.name)


def virtual_network(arm_id: str) -> AzureLookup:
    """The virtual network of this id."""
    return _of_id(arm_id, "network:getVirtualNetwork", "virtual network", "virtualNetworkName")


def subnet(arm_id: str) -> AzureLookup:
    """The subnet of this id."""
    return _of_id(arm_id, "network:getSubnet", "subnet", "virtualNetworkName", "subnetName")


def security_group(arm_id: str) -> AzureLookup:
    """The network security group of this id."""
    return _of_id(arm_id, "network:getNetworkSecurityGroup", "network security group", "networkSecurityGroupName")


def egress(cluster: HostedClusterSettings) -> AzureLookup:
    """The load balancer by which the nodes reach the internet; it has the name of the infrastructure id."""
    return _in_group(
        "network:getLoadBalancer", cluster.resource_group, "load balancer", loadBalancerName=cluster.infra_id
    )


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


def _key_vaults(cluster: HostedClusterSettings, place: Place) -> Iterator[tuple[Place, AzureLookup]]:
    """The vault, or managed HSM, of each key that encrypts etcd."""
    kms = cluster.kms
    if kms is None:
        return
    for key, kms_key in (("activeKey", kms.active_key), ("backupKey", kms.backup_key)):
        if kms_key is None:
            continue
        name = kms_key.key_vault_name
        group = kms.vaults[name]
        yield (
            (*place, key, "keyVaultName"),
            _in_group("keyvault:getManagedHsm", group, "managed HSM", name=name)
            if kms.is_managed_hsm
            else _in_group("keyvault:getVault", group, "key vault", vaultName=name),
        )


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


def imported_identities(cluster: HostedClusterSettings) -> Iterator[tuple[str, IdentitySettings]]:
    """The identities with credentials from elsewhere, by catalogue field."""
    for row in cluster.enabled_rows:
        if (identity := cluster.identity(row)).source == "managed-identity":
            yield row.field, identity


def compare_infrastructure(
    cluster: HostedClusterSettings, place: Place, answers: Answers, settings: Settings
) -> Iterator[Problem]:
    """What differs from the configuration of the cluster at `place`; objects without an answer are skipped.

    The control-plane operator stops unless network, security group and managed resource group have one location
    (openshift/hypershift control-plane-operator/controllers/hostedcontrolplane/hostedcontrolplane_controller.go:
    3285-3345), and nodes can only be where their network is.
    """
    for key, lookup in (
        ("resourceGroup", resource_group(cluster.resource_group)),
        ("vnetID", virtual_network(cluster.vnet_id)),
        ("securityGroupID", security_group(cluster.security_group_id)),
        ("infraID", egress(cluster)),
    ):
        answer = answers.get(lookup)
        if answer is not None and not is_same_location(cluster.location, answer.get("location")):
            yield different_location((*place, key), lookup, answer, cluster, (*place, "location"))
    yield from _security_group_of_the_subnet(cluster, place, answers)
    yield from _attached_to_the_subnet(cluster, place, answers, settings.roles)
    yield from _subnet_apart_from_pods_and_services(cluster, place, answers)
    yield from _outbound_rule(cluster, place, answers)
    yield from _linked_zone(cluster, place, answers, settings.subscription_id)


def different_location(
    place: Place, lookup: AzureLookup, answer: Mapping[str, Any], cluster: HostedClusterSettings, location: Place
) -> Problem:
    """An object in another location than the hosted cluster."""
    return Problem(
        place=place,
        rule="location-differs",
        found=f'{lookup.description}, which is in "{answer.get("location")}"',
        accepted=f'one in "{cluster.location}": the hosted cluster, its network, its security group and its managed '
        "resource group have one location",
        fix=f"name an existing one, or correct {path_of(location)}",
    )


def is_same_location(configured: str, present: object) -> bool:
    """Whether ARM's name is the configured one: `East US` is `eastus`."""
    return configured.replace(" ", "").lower() == str(present).replace(" ", "").lower()


def _security_group_of_the_subnet(cluster: HostedClusterSettings, place: Place, answers: Answers) -> Iterator[Problem]:
    """`securityGroupID` is "an existing security group on the SubnetID" (api/hypershift/v1beta1/azure.go:450).

    A standard load balancer lets nothing in to a subnet without one.
    """
    lookup = subnet(cluster.subnet_id)
    answer = answers.get(lookup)
    if answer is None or security_group(cluster.security_group_id) not in answers:
        return
    group = (answer.get("networkSecurityGroup") or {}).get("id")
    if str(group).lower() != cluster.security_group_id.lower():
        has = f'whose network security group is "{group}"' if group else "which has no network security group"
        yield Problem(
            place=(*place, "subnetID"),
            rule="security-group-of-other-subnet",
            found=f"{lookup.description}, {has}",
            accepted=f"a subnet with the network security group of {path_of((*place, 'securityGroupID'))}",
            fix=f"`az network vnet subnet update --ids {cluster.subnet_id} --network-security-group "
            f"{cluster.security_group_id}`, or correct one of the two",
        )


def _attached_to_the_subnet(
    cluster: HostedClusterSettings, place: Place, answers: Answers, roles: str
) -> Iterator[Problem]:
    """Route table and NAT gateway of the subnet: with `roles: builtin` a role is assigned at both.

    Without it every write of the subnet is refused, as the writer may not join what the subnet refers to.
    """
    lookup = subnet(cluster.subnet_id)
    answer = answers.get(lookup)
    if answer is None:
        return
    for key, property_, what, configured in (
        ("routeTableID", "routeTable", "route table", cluster.route_table_id),
        ("natGatewayID", "natGateway", "NAT gateway", cluster.nat_gateway_id),
    ):
        attached = (answer.get(property_) or {}).get("id")
        if (configured or "").lower() == (attached or "").lower() or (configured is None and roles != "builtin"):
            continue
        at = (*place, key)
        yield Problem(
            place=at,
            rule="subnet-attachment-differs",
            found=f'"{configured}"' if configured is not None else "nothing",
            accepted=f'"{attached}", which is the {what} of {lookup.description}'
            if attached
            else f"nothing: {lookup.description} has no {what}",
            fix=to_set(at, attached) if attached else to_remove(at),
        )


def _subnet_apart_from_pods_and_services(
    cluster: HostedClusterSettings, place: Place, answers: Answers
) -> Iterator[Problem]:
    lookup = subnet(cluster.subnet_id)
    answer = answers.get(lookup) or {}
    for nodes in answer.get("addressPrefixes") or filter(None, [answer.get("addressPrefix")]):
        for key, taken in default_networks_in(nodes, cluster):
            yield Problem(
                place=(*place, "subnetID"),
                rule="network-of-pods-or-services",
                found=f"{lookup.description}, which is {nodes}",
                accepted=apart_from(key, taken),
                fix=f"name another subnet, or set spec.networking.{key} in the HostedCluster",
            )


def _outbound_rule(cluster: HostedClusterSettings, place: Place, answers: Answers) -> Iterator[Problem]:
    """The nodes join the backend pool with the name of the infrastructure id, whose outbound rule lets them out.

    Source: hypershift-operator/controllers/hostedcluster/internal/platform/azure/azure.go:450-452 and
    cmd/infra/azure/networking.go:432-451.
    """
    lookup = egress(cluster)
    answer = answers.get(lookup)
    if answer is None:
        return
    frontends = {_id(frontend) for frontend in _list(answer, "frontendIPConfigurations") if _is_public(frontend)}
    rules = [
        rule
        for rule in _list(answer, "outboundRules")
        if _id(rule.get("backendAddressPool")).endswith(f"/backendaddresspools/{cluster.infra_id}")
        and not frontends.isdisjoint(_id(frontend) for frontend in _list(rule, "frontendIPConfigurations"))
    ]
    if not rules:
        yield Problem(
            place=(*place, "infraID"),
            rule="egress-without-outbound-rule",
            found=f"{lookup.description}, which has no outbound rule from the backend pool "
            f'"{cluster.infra_id}" to a public address',
            accepted=f'a load balancer with a backend pool "{cluster.infra_id}" and an outbound rule: the nodes join '
            "that pool, and reach the internet by that rule",
            fix=f"`az network lb address-pool create --resource-group {cluster.resource_group} --lb-name "
            f"{cluster.infra_id} --name {cluster.infra_id}` and `az network lb outbound-rule create --resource-group "
            f"{cluster.resource_group} --lb-name {cluster.infra_id} --name {cluster.infra_id} --address-pool "
            f"{cluster.infra_id} --frontend-ip-configs <frontend> --protocol All`",
        )


def _linked_zone(
    cluster: HostedClusterSettings, place: Place, answers: Answers, subscription: str
) -> Iterator[Problem]:
    """The nodes resolve the names of the private zone only if a link of any name leads to their network."""
    if cluster.dns is None or cluster.dns.private_zone_id is None:
        return
    lookup = private_zone(cluster.dns.private_zone_id)
    zone = answers.get(lookup)
    if zone is None:
        return
    link = answers.get(private_zone_link(cluster, cluster.dns.private_zone_id, subscription))
    linked = _id(link.get("virtualNetwork")) if link is not None else None
    if linked == cluster.vnet_id.lower() or (linked is None and zone.get("numberOfVirtualNetworkLinks")):
        return
    name = cluster.names(subscription).stem
    yield Problem(
        place=(*place, "dns", "privateZoneID"),
        rule="private-zone-not-linked",
        found=f"{lookup.description}, "
        + (f'whose link "{name}" is to "{linked}"' if linked else "which is linked to no network"),
        accepted=f"a zone with a link to the network of {path_of((*place, 'vnetID'))}",
        fix=f"`az network private-dns link vnet create --resource-group "
        f"{parse_arm_id(cluster.dns.private_zone_id).resource_group} "
        f"--zone-name {lookup.arguments[-1][1]} --name {name} --virtual-network {cluster.vnet_id} "
        "--registration-enabled false`",
    )


def _is_public(frontend: Mapping[str, Any]) -> bool:
    return bool(frontend.get("publicIPAddress") or frontend.get("publicIPPrefix"))


def _list(holder: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    return list(holder.get(key) or ())


def _id(reference: object) -> str:
    """The id in a reference, in lower case."""
    return str(reference.get("id")).lower() if isinstance(reference, Mapping) else ""
