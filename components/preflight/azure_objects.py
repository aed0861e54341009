"""The objects in Azure that the stack needs but does not create, each with the provider function that reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from components.azure.credential_secret import CredentialStore
from identity.naming import parse_arm_id, secret_id
from identity.settings import (
    HostedClusterSettings,
    IdentitySettings,
    ManagementClusterSettings,
    Settings,
    VaultSettings,
)
from identity.settings.schema.problems import Place


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
