"""The objects in Azure that the stack needs but does not create, each with the provider function that reads it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from components.azure.credential_store import CredentialStore
from identity.catalogue import CONTROL_PLANE
from identity.naming import parse_arm_id
from identity.settings import HostedClusterSettings, IdentitySettings, ManagementClusterSettings, Settings
from identity.settings.problems import Place


@dataclass(frozen=True)
class AzureLookup:
    """One look-up in Azure: the function, its arguments, and the object's kind and name for the report."""

    function: str
    arguments: tuple[tuple[str, str], ...]
    description: str


def required_lookups(
    settings: Settings, shared: CredentialStore | None, vault: str
) -> Iterator[tuple[Place, AzureLookup]]:
    """Everything that must exist, each with the place in the configuration that names it.

    If the stack makes the management cluster, its resource group must exist. The cluster itself may be missing.
    """
    yield ("resourceGroup",), _resource_group(settings.resource_group)
    if shared is not None:
        yield ("sharedStack",), _vault(vault)
    if settings.management_cluster is not None:
        cluster = settings.management_cluster
        if cluster.create is not None:
            yield ("managementCluster", "resourceGroup"), _resource_group(cluster.resource_group)
        yield ("managementCluster", "name"), management_cluster(cluster)
    for index, hosted in enumerate(settings.hosted_clusters):
        place: Place = ("hostedClusters", index)
        yield (*place, "resourceGroup"), _resource_group(hosted.resource_group)
        yield (*place, "dnsZoneResourceGroup"), _resource_group(hosted.dns_zone_resource_group)
        yield (*place, "vnetID"), _virtual_network(hosted.vnet_id)
        yield (*place, "subnetID"), _subnet(hosted.subnet_id)
        yield (*place, "securityGroupID"), _security_group(hosted.security_group_id)
        yield (*place, "kms", "activeKey", "keyVaultName"), _key_vault(hosted)
        for name, identity in imported_identities(hosted):
            at = (*place, "identities", name)
            yield (*at, "resourceId"), managed_identity(identity)
            if is_stored(identity):
                yield (*at, "credential", "secretName"), stored_secret(vault, identity)


def created_cluster(settings: Settings) -> AzureLookup | None:
    """The look-up of the management cluster, if the stack makes it."""
    cluster = settings.management_cluster
    return None if cluster is None or cluster.create is None else management_cluster(cluster)


def _resource_group(name: str) -> AzureLookup:
    return AzureLookup("resources:getResourceGroup", (("resourceGroupName", name),), f'the resource group "{name}"')


def management_cluster(cluster: ManagementClusterSettings) -> AzureLookup:
    """The AKS cluster of the hosted control planes."""
    return _in_group(
        "containerservice:getManagedCluster", cluster.resource_group, "AKS cluster", resourceName=cluster.name
    )


def _virtual_network(arm_id: str) -> AzureLookup:
    vnet = parse_arm_id(arm_id)
    return _in_group("network:getVirtualNetwork", vnet.resource_group, "virtual network", virtualNetworkName=vnet.name)


def _subnet(arm_id: str) -> AzureLookup:
    subnet = parse_arm_id(arm_id)
    vnet, name = subnet.names
    return _in_group("network:getSubnet", subnet.resource_group, "subnet", virtualNetworkName=vnet, subnetName=name)


def _security_group(arm_id: str) -> AzureLookup:
    group = parse_arm_id(arm_id)
    return _in_group(
        "network:getNetworkSecurityGroup",
        group.resource_group,
        "network security group",
        networkSecurityGroupName=group.name,
    )


def _key_vault(cluster: HostedClusterSettings) -> AzureLookup:
    kms = cluster.kms
    return _in_group(
        "keyvault:getVault", kms.key_vault_resource_group, "key vault", vaultName=kms.active_key.key_vault_name
    )


def managed_identity(identity: IdentitySettings) -> AzureLookup:
    """The managed identity that `resourceId` names."""
    found = parse_arm_id(identity.resource_id or "")
    return _in_group(
        "managedidentity:getUserAssignedIdentity", found.resource_group, "managed identity", resourceName=found.name
    )


def _vault(arm_id: str) -> AzureLookup:
    vault = parse_arm_id(arm_id)
    return _in_group("keyvault:getVault", vault.resource_group, "key vault", vaultName=vault.name)


def stored_secret(vault_arm_id: str, identity: IdentitySettings) -> AzureLookup:
    """The secret that holds the identity's credential already."""
    vault = parse_arm_id(vault_arm_id)
    return _in_group(
        "keyvault:getSecret",
        vault.resource_group,
        "secret",
        vaultName=vault.name,
        secretName=identity.secret_name,
    )


def _in_group(function: str, resource_group: str, kind: str, **names: str) -> AzureLookup:
    path = "/".join(names.values())
    arguments = (("resourceGroupName", resource_group), *names.items())
    return AzureLookup(function, arguments, f'the {kind} "{path}" in the resource group "{resource_group}"')


def imported_identities(cluster: HostedClusterSettings) -> Iterator[tuple[str, IdentitySettings]]:
    """The identities with credentials from elsewhere, by catalogue field."""
    for row in CONTROL_PLANE:
        identity = cluster.identity(row)
        if identity.enabled and identity.source == "managed-identity":
            yield row.field, identity


def is_stored(identity: IdentitySettings) -> bool:
    """Whether the credential is in the vault already."""
    return identity.credential is not None and identity.credential.secret_name is not None
