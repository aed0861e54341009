"""The metadata of each resource type and function of the emulated azure-native: one row each.

Argument and output types come from the installed SDK; a row holds the provider's metadata, which the SDK lacks.
Sources, all of pulumi/pulumi-azure-native: `provider/pkg/provider/diff.go` (every parameter of the path forces a
replacement, and so does a body property marked ForceNew), `provider/pkg/gen/replacement.go` (ForceNew by hand),
`provider/pkg/gen/properties.go` (ForceNew from `x-ms-mutability` without `update`, at the top level of the body) and
the OpenAPI documents in Azure/azure-rest-api-specs (patterns, mutability). API versions are the SDK docstrings'.
"""

from __future__ import annotations

from typing import Final

from emulated.azure_native.rows import IN_A_GROUP, FunctionRow, ResourceRow
from emulated.azure_native.rows import IN_A_GROUP as _GROUP

# The rows of a hosted cluster's infrastructure: groups, networks, load balancers, private DNS zones.
#
# Sources: `provider/pkg/gen/replacement.go` of pulumi/pulumi-azure-native (PublicIPAddress, VirtualNetwork,
# ResourceGroup), and `x-ms-mutability` of `location` in privatedns.json 2024-06-01. A load balancer's or security
# group's changed location is an update, which ARM refuses. The SDK's documentation names the arrays that are resources
# of their own.


_NETWORK: Final = "2024-05-01"
_PRIVATE_DNS: Final = "2024-06-01"
_RESOURCES: Final = "2024-03-01"
_NETWORKS: Final = f"{IN_A_GROUP}/providers/Microsoft.Network/virtualNetworks/{{virtualNetworkName}}"
_SUBNETS: Final = f"{_NETWORKS}/subnets/{{subnetName}}"
_GROUPS: Final = f"{IN_A_GROUP}/providers/Microsoft.Network/networkSecurityGroups/{{networkSecurityGroupName}}"
_BALANCERS: Final = f"{IN_A_GROUP}/providers/Microsoft.Network/loadBalancers/{{loadBalancerName}}"
_ADDRESSES: Final = f"{IN_A_GROUP}/providers/Microsoft.Network/publicIPAddresses/{{publicIpAddressName}}"
_ZONES: Final = f"{IN_A_GROUP}/providers/Microsoft.Network/privateDnsZones/{{privateZoneName}}"
_LINKS: Final = f"{_ZONES}/virtualNetworkLinks/{{virtualNetworkLinkName}}"

NETWORK_RESOURCES: Final = (
    ResourceRow(
        token="azure-native:resources:ResourceGroup",
        api_version=_RESOURCES,
        path=IN_A_GROUP,
        force_new=frozenset({"location"}),
    ),
    ResourceRow(
        token="azure-native:network:VirtualNetwork",
        api_version=_NETWORK,
        path=_NETWORKS,
        force_new=frozenset({"location"}),
        sub_resources=(("subnets",), ("virtualNetworkPeerings",)),
    ),
    ResourceRow(
        token="azure-native:network:Subnet",
        api_version=_NETWORK,
        path=_SUBNETS,
    ),
    ResourceRow(
        token="azure-native:network:NetworkSecurityGroup",
        api_version=_NETWORK,
        path=_GROUPS,
        sub_resources=(("securityRules",),),
    ),
    ResourceRow(
        token="azure-native:network:PublicIPAddress",
        api_version=_NETWORK,
        path=_ADDRESSES,
        force_new=frozenset({"location", "publicIPAddressVersion", "publicIPPrefix", "sku"}),
    ),
    ResourceRow(
        token="azure-native:network:LoadBalancer",
        api_version=_NETWORK,
        path=_BALANCERS,
        sub_resources=(("backendAddressPools",), ("inboundNatRules",)),
    ),
    ResourceRow(
        token="azure-native:privatedns:PrivateZone",
        api_version=_PRIVATE_DNS,
        path=_ZONES,
        force_new=frozenset({"location"}),
    ),
    ResourceRow(
        token="azure-native:privatedns:VirtualNetworkLink",
        api_version=_PRIVATE_DNS,
        path=_LINKS,
        force_new=frozenset({"location"}),
    ),
)

_function: Final = FunctionRow.of
NETWORK_FUNCTIONS: Final = (
    _function("resources", "getResourceGroup", _RESOURCES, IN_A_GROUP),
    _function("network", "getVirtualNetwork", _NETWORK, _NETWORKS),
    _function("network", "getSubnet", _NETWORK, _SUBNETS),
    _function("network", "getNetworkSecurityGroup", _NETWORK, _GROUPS),
    _function("network", "getLoadBalancer", _NETWORK, _BALANCERS),
    _function("privatedns", "getPrivateZone", _PRIVATE_DNS, _ZONES),
    _function("privatedns", "getVirtualNetworkLink", _PRIVATE_DNS, _LINKS),
)


_CONTAINER_SERVICE: Final = "2025-09-01"
_KEY_VAULT: Final = "2024-11-01"
_MANAGED_IDENTITY: Final = "2023-01-31"
_STORAGE: Final = "2024-01-01"
_MANAGED_CLUSTER: Final = f"{_GROUP}/providers/Microsoft.ContainerService/managedClusters/{{resourceName}}"
_VAULTS: Final = f"{_GROUP}/providers/Microsoft.KeyVault/vaults/{{vaultName}}"
_SECRETS: Final = f"{_VAULTS}/secrets/{{secretName}}"
_IDENTITIES: Final = f"{_GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{{resourceName}}"
_ACCOUNTS: Final = f"{_GROUP}/providers/Microsoft.Storage/storageAccounts/{{accountName}}"
_FIXED_NETWORK: Final = (
    *("serviceCidr", "serviceCidrs", "dnsServiceIP", "networkMode", "networkPlugin", "networkPluginMode", "podCidr"),
    *("networkDataplane", "networkPolicy", "outboundType"),
)

# keyvault.json and secrets.json 2024-11-01, checked by the provider itself before any request.
_VAULT_NAME: Final = "^[a-zA-Z0-9-]{3,24}$"
_SECRET_NAME: Final = "^[a-zA-Z0-9-]{1,127}$"
# ManagedIdentity.json 2023-01-31.
_CREDENTIAL_NAME: Final = "^[a-zA-Z0-9]{1}[a-zA-Z0-9-_]{2,119}$"


RESOURCES: Final = {
    row.token: row
    for row in (
        ResourceRow(
            token="azure-native:keyvault:Vault",
            api_version=_KEY_VAULT,
            path=_VAULTS,
            patterns={"vaultName": _VAULT_NAME},
            # `location` carries no x-ms-mutability in keyvault.json: its change is an update, which ARM then refuses
            # (InvalidResourceLocation; the same seen in pulumi-azure-native issue 3053).
            sub_resources=(("properties", "accessPolicies"),),
        ),
        ResourceRow(
            token="azure-native:keyvault:Secret",
            api_version=_KEY_VAULT,
            path=_SECRETS,
            patterns={"vaultName": _VAULT_NAME, "secretName": _SECRET_NAME},
            # provider/pkg/resources/customresources/custom_keyvault.go
            vault_collection="secrets",
        ),
        ResourceRow(
            token="azure-native:managedidentity:UserAssignedIdentity",
            api_version=_MANAGED_IDENTITY,
            path=_IDENTITIES,
            # common-types TrackedResource: `"x-ms-mutability": ["read", "create"]`.
            force_new=frozenset({"location"}),
        ),
        ResourceRow(
            token="azure-native:managedidentity:FederatedIdentityCredential",
            api_version=_MANAGED_IDENTITY,
            path=f"{_IDENTITIES}/federatedIdentityCredentials/{{federatedIdentityCredentialResourceName}}",
            patterns={"federatedIdentityCredentialResourceName": _CREDENTIAL_NAME},
        ),
        ResourceRow(
            token="azure-native:storage:StorageAccount",
            api_version=_STORAGE,
            path=_ACCOUNTS,
            patterns={"accountName": "^[a-z0-9]{3,24}$"},
            # replacement.go.
            force_new=frozenset({"isHnsEnabled", "location"}),
            defaults={
                "networkRuleSet": {
                    "bypass": "AzureServices",
                    "defaultAction": "Allow",
                    "ipRules": [],
                    "virtualNetworkRules": [],
                }
            },
        ),
        ResourceRow(
            token="azure-native:storage:BlobContainer",
            api_version=_STORAGE,
            path=f"{_ACCOUNTS}/blobServices/default/containers/{{containerName}}",
            patterns={"accountName": "^[a-z0-9]{3,24}$"},
        ),
        ResourceRow(
            token="azure-native:authorization:RoleAssignment",
            api_version="2022-04-01",
            path="/{scope}/providers/Microsoft.Authorization/roleAssignments/{roleAssignmentName}",
            # replacement.go: "principalId", "scope". A changed role definition is an update, which Azure then refuses.
            force_new=frozenset({"principalId"}),
        ),
        ResourceRow(
            token="azure-native:containerservice:ManagedCluster",
            api_version=_CONTAINER_SERVICE,
            path=_MANAGED_CLUSTER,
            patterns={"resourceName": "^[a-zA-Z0-9]$|^[a-zA-Z0-9][-_a-zA-Z0-9]{0,61}[a-zA-Z0-9]$"},
            # replacement.go since pull request 4771: of the network profile only what cannot be changed in place.
            force_new=frozenset(
                {"diskEncryptionSetID", "dnsPrefix", "fqdnSubdomain", "linuxProfile", "location", "nodeResourceGroup"}
                | {"windowsProfile"}
                | {f"networkProfile.{name}" for name in _FIXED_NETWORK}
            ),
        ),
        *NETWORK_RESOURCES,
    )
}


def _credentials(who: str, **options: str) -> FunctionRow:
    """A kubeconfig of a managed cluster; the SDK's plural is the OpenAPI document's operation."""
    return FunctionRow(
        token=f"azure-native:containerservice:listManagedCluster{who}Credentials",
        api_version=_CONTAINER_SERVICE,
        path=_MANAGED_CLUSTER,
        action=f"listCluster{who}Credential",
        options=options,
    )


FUNCTIONS: Final = {
    row.token: row
    for row in (
        _function("containerservice", "getManagedCluster", _CONTAINER_SERVICE, _MANAGED_CLUSTER),
        _credentials("User", format="format", serverFqdn="server-fqdn"),
        _credentials("Admin", serverFqdn="server-fqdn"),
        *NETWORK_FUNCTIONS,
        _function(
            "dns", "getZone", "2023-07-01-preview", f"{_GROUP}/providers/Microsoft.Network/dnsZones/{{zoneName}}"
        ),
        _function("keyvault", "getVault", _KEY_VAULT, _VAULTS),
        _function("keyvault", "getSecret", _KEY_VAULT, _SECRETS),
        _function("keyvault", "getKey", _KEY_VAULT, f"{_VAULTS}/keys/{{keyName}}"),
        _function(
            "containerregistry",
            "getRegistry",
            "2023-01-01-preview",
            f"{_GROUP}/providers/Microsoft.ContainerRegistry/registries/{{registryName}}",
        ),
        _function("storage", "getStorageAccount", _STORAGE, _ACCOUNTS),
        _function("managedidentity", "getUserAssignedIdentity", _MANAGED_IDENTITY, _IDENTITIES),
    )
}
