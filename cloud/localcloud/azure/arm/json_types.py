"""The JSON types of members of ARM's bodies: a member has one type wherever it is, but for those in TXT records.

Azure's own parsers take some numbers and booleans as text as well; here none is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from localcloud.azure.arm import errors

_WORDS: Final = {str: "a string", bool: "true or false", int: "an integer", list: "a JSON array", dict: "a JSON object"}
# Members by their type, with blanks between; lists, and objects with members of any name, by what is in them.
_TEXT: Final = (
    "id name type etag location kind tier family managedBy value state fqdn provisioningState resourceGuid tenantId "
    "principalId clientId principalType roleDefinitionId scope description condition conditionVersion roleName issuer "
    "subject internalId addressPrefix privateEndpointNetworkPolicies privateLinkServiceNetworkPolicies ipAddress "
    "protocol sourcePortRange destinationPortRange sourceAddressPrefix destinationAddressPrefix access direction "
    "publicIPAddressVersion publicIPAllocationMethod privateIPAllocationMethod requestPath privateIPAddress "
    "privateIPAddressVersion loadDistribution virtualNetworkLinkState ipv4Address accessTier bypass defaultAction "
    "publicNetworkAccess publicAccess minimumTlsVersion enabledProtocols rootSquash contentType vaultUri createMode "
    "createOption sourceResourceId networkAccessPolicy azurePortalFQDN currentKubernetesVersion diskEncryptionSetID "
    "dnsPrefix fqdnSubdomain kubernetesVersion nodeResourceGroup privateFQDN resourceUID supportPlan mode vmSize "
    "osType osSKU osDiskType vnetSubnetID orchestratorVersion networkPlugin tenantID networkPluginMode networkPolicy "
    "networkDataplane podCidr serviceCidr dnsServiceIP objectId outboundType loadBalancerSku issuerURL resourceId "
    "adminUsername adminPassword secret computerName customData caching storageAccountType"
)
_NUMBERS: Final = (
    "idleTimeoutInMinutes priority frontendPort backendPort port intervalInSeconds TTL ttl numberOfProbes "
    "probeThreshold allocatedOutboundPorts frontendPortRangeStart frontendPortRangeEnd maxNumberOfRecordSets "
    "maxNumberOfVirtualNetworkLinks maxNumberOfVirtualNetworkLinksWithRegistration numberOfRecordSets "
    "numberOfVirtualNetworkLinks numberOfVirtualNetworkLinksWithRegistration exp nbf softDeleteRetentionInDays "
    "shareQuota diskSizeGB diskIOPSReadWrite diskMBpsReadWrite count maxPods maxAgentPools minCount maxCount "
    "osDiskSizeGB lun"
)
_FLAGS: Final = (
    "enabled enableDdosProtection enableVmProtection flushConnection registrationEnabled isAutoRegistered "
    "ignoreMissingVnetServiceEndpoint enableFloatingIP enableTcpReset managed disableOutboundSnat "
    "enableRbacAuthorization enabledForDeployment enabledForDiskEncryption enabledForTemplateDeployment "
    "enableSoftDelete enablePurgeProtection allowBlobPublicAccess allowCrossTenantReplication allowSharedKeyAccess "
    "defaultToOAuthAuthentication isHnsEnabled supportsHttpsTrafficOnly burstingEnabled disableLocalAccounts "
    "enablePodSecurityPolicy enableRBAC enableAzureRBAC enableFIPS enableAutoScaling enablePrivateCluster "
    "enablePrivateClusterPublicFQDN primary toBeDetached writeAcceleratorEnabled"
)
_OBJECTS: Final = (
    "properties systemData identity sku addressSpace networkSecurityGroup routeTable natGateway subnet "
    "publicIPAddress ipConfiguration ddosSettings frontendIPConfiguration backendAddressPool probe virtualNetwork "
    "targetResource networkAcls attributes creationData aadProfile aiToolchainOperatorProfile apiServerAccessProfile "
    "autoScalerProfile autoUpgradeProfile azureMonitorProfile bootstrapProfile httpProxyConfig ingressProfile "
    "linuxProfile status metricsProfile networkProfile nodeProvisioningProfile nodeResourceGroupProfile "
    "oidcIssuerProfile podIdentityProfile powerState securityProfile serviceMeshProfile servicePrincipalProfile "
    "storageProfile upgradeSettings windowsProfile workloadAutoScalerProfile workloadIdentity "
    "hardwareProfile osProfile osDisk managedDisk diskEncryptionSet"
)
_OF_TEXT: Final = "tags metadata config imageReference"
_OF_OBJECTS: Final = "addonProfiles identityProfile userAssignedIdentities"
_LISTS_OF_TEXT: Final = (
    "zones addressPrefixes availabilityZones audiences assignableScopes actions notActions dataActions notDataActions "
    "adminGroupObjectIDs sourceAddressPrefixes destinationAddressPrefixes sourcePortRanges destinationPortRanges "
    "serviceCidrs podCidrs"
)
_LISTS_OF_OBJECTS: Final = (
    "subnets securityRules defaultSecurityRules virtualNetworkPeerings ipTags frontendIPConfigurations "
    "backendAddressPools probes loadBalancingRules outboundRules inboundNatRules inboundNatPools aRecords ARecords "
    "TXTRecords ipRules virtualNetworkRules accessPolicies agentPoolProfiles privateLinkResources ipConfigurations "
    "networkInterfaces dataDisks loadBalancerBackendAddressPools"
)
KNOWN: Final[Mapping[str, tuple[type, type | None]]] = {
    **dict.fromkeys(_TEXT.split(), (str, None)),
    **dict.fromkeys(_NUMBERS.split(), (int, None)),
    **dict.fromkeys(_FLAGS.split(), (bool, None)),
    **dict.fromkeys(_OBJECTS.split(), (dict, None)),
    **dict.fromkeys(_OF_TEXT.split(), (dict, str)),
    **dict.fromkeys(_OF_OBJECTS.split(), (dict, dict)),
    **dict.fromkeys(_LISTS_OF_TEXT.split(), (list, str)),
    **dict.fromkeys(_LISTS_OF_OBJECTS.split(), (list, dict)),
}
"""Of each member its type, and the type of what is in it, if that is all of one type."""


def check(body: Mapping[str, Any], type_name: str) -> None:
    """Refuse a value of another type, and two parts of one name; raises 400. `type_name` is the resource type's."""
    for path, problem in _problems(body, ()):
        raise errors.invalid_format(type_name, path, problem)


def _problems(members: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    for name, value in members.items():
        expected, of = (list, str) if path[-2:-1] == ("TXTRecords",) else KNOWN.get(name, (type(value), None))
        if value is not None:
            yield from _problems_of(value, (*path, name), expected, of)


def _problems_of(
    value: Any, path: tuple[str, ...], expected: type, of: type | None
) -> Iterator[tuple[tuple[str, ...], str]]:
    if type(value) is not expected:
        yield path, f"{_WORDS[expected]} is expected"
    elif isinstance(value, list) or (isinstance(value, dict) and of):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from _problems_of(item, (*path, str(key)), of or type(item), None)
        names = Counter(str(item.get("name")).lower() for item in value if isinstance(item, dict) and "name" in item)
        yield from ((path, f"two of them have the name '{name}'") for name, count in names.items() if count > 1)
    elif isinstance(value, dict):
        yield from _problems(value, path)
