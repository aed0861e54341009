"""The metadata of each resource type and function of the emulated azure-native: one row each.

Argument and output types come from the installed SDK; a row holds the provider's metadata, which the SDK lacks.
Sources, all of pulumi/pulumi-azure-native: `provider/pkg/provider/diff.go` (every parameter of the path forces a
replacement, and so does a body property marked ForceNew), `provider/pkg/gen/replacement.go` (ForceNew by hand),
`provider/pkg/gen/properties.go` (ForceNew from `x-ms-mutability` without `update`, at the top level of the body) and
the OpenAPI documents in Azure/azure-rest-api-specs (patterns, mutability). API versions are the SDK docstrings'.
"""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Final, Literal

from emulated.sdk_types import properties

IN_A_GROUP: Final = "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}"
# Parameters at the beginning of a path that are a complete id.
SCOPES: Final = frozenset({"scope", "resourceUri"})
_LOADING: Final = threading.Lock()


@cache
def _sdk_class(module: str, *names: str) -> type:
    """The first of these classes that the SDK has.

    Its module loads at first use, under a lock, so that no thread sees an incomplete module.
    """
    with _LOADING:
        classes = importlib.import_module(f"pulumi_azure_native.{module}")
        cls: type = next(getattr(classes, name) for name in names if hasattr(classes, name))
        return cls


@dataclass(frozen=True, kw_only=True)
class _TypeRow:
    token: str
    api_version: str
    path: str

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Inputs that are part of the path, in its order."""
        return tuple(name for name in re.findall(r"{(\w+)}", self.path) if name != "subscriptionId")

    @property
    def module_name(self) -> str:
        """The SDK's module: the middle of the token."""
        return self.token.split(":")[1]

    @property
    def type_name(self) -> str:
        """The last part of the token: a class of the SDK, or a function in camelCase."""
        return self.token.split(":")[2]

    def resource_id(self, subscription_id: str, inputs: Mapping[str, str]) -> str:
        """The ARM id that the inputs lead to."""
        values = {name: inputs[name].strip("/") if name in SCOPES else inputs[name] for name in self.parameters}
        return self.path.format(subscriptionId=subscription_id, **values)

    def _sdk(self, *names: str) -> type:
        return _sdk_class(self.module_name, *names)


@dataclass(frozen=True, kw_only=True)
class ResourceRow(_TypeRow):
    """A resource type.

    Attributes:
        force_new: inputs of the body, or dotted paths in them, whose change replaces; those of the path always do.
        patterns: what an input must look like, refused before any request.
        sub_resources: arrays that are resources of their own, as paths of inputs: `[]` on create and left alone on
            update when not given.
        defaults: inputs that an update sends with these values when they are not given, because ARM would keep what is
            there (`propertyDefaults` in `gen/defaults.go`).
        vault_collection: the collection at the vault's own endpoint that deletes it, because ARM cannot.
    """

    force_new: frozenset[str] = frozenset()
    patterns: Mapping[str, str] = field(default_factory=dict)
    sub_resources: tuple[tuple[str, ...], ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    vault_collection: str | None = None

    @property
    def arguments(self) -> type:
        """The SDK's class of arguments; its name differs where a property's class has taken it."""
        return self._sdk(f"{self.type_name}InitArgs", f"{self.type_name}Args")

    @property
    def name_input(self) -> str:
        """The input that names it, the path's last; the real provider generates one, the emulated one requires it."""
        return self.parameters[-1]

    @property
    def flattened(self) -> bool:
        """Whether the SDK's arguments are in `properties` of the request, a level that the SDK does not show."""
        return "properties" not in properties(self.arguments)

    def wire_path(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """Where the inputs at `path` are in the body of a request."""
        return ("properties", *path) if self.flattened else path

    @property
    def outputs(self) -> type:
        """The SDK's class of the resource, whose properties are its outputs."""
        return self._sdk(self.type_name)

    def replaces(self, path: str, kind: Literal["add", "delete", "update"] = "update") -> bool:
        """Whether a change of this kind at this property path replaces the resource (`calculateValueDiff` in diff.go).

        An object that replaces does so for each changed value in it, not for one that is added or removed.
        Elements of an array replace nothing, except inside such an object.
        """
        names = re.sub(r"\[\d+\]", "[]", path).split(".")
        objects = {".".join(names[:end]) for end in range(1, len(names))} if kind == "update" else set()
        return not (objects | {".".join(names)}).isdisjoint({*self.parameters, *self.force_new})


@dataclass(frozen=True, kw_only=True)
class FunctionRow(_TypeRow):
    """A function that reads one resource, or with `action` posts that to it.

    `options` are arguments of the SDK, and the query parameters of the API that they are sent as.
    """

    action: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, module: str, name: str, api_version: str, path: str) -> FunctionRow:
        """The row of a function that reads a resource."""
        return cls(token=f"azure-native:{module}:{name}", api_version=api_version, path=path)

    @property
    def inputs(self) -> tuple[str, ...]:
        return (*self.parameters, *self.options)

    @property
    def outputs(self) -> type:
        """The SDK's class of the result."""
        return self._sdk(f"{self.type_name[0].upper()}{self.type_name[1:]}Result")


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
_MANAGED_CLUSTER: Final = f"{IN_A_GROUP}/providers/Microsoft.ContainerService/managedClusters/{{resourceName}}"
_VAULTS: Final = f"{IN_A_GROUP}/providers/Microsoft.KeyVault/vaults/{{vaultName}}"
_SECRETS: Final = f"{_VAULTS}/secrets/{{secretName}}"
_IDENTITIES: Final = f"{IN_A_GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{{resourceName}}"
_ACCOUNTS: Final = f"{IN_A_GROUP}/providers/Microsoft.Storage/storageAccounts/{{accountName}}"
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
            "dns", "getZone", "2023-07-01-preview", f"{IN_A_GROUP}/providers/Microsoft.Network/dnsZones/{{zoneName}}"
        ),
        _function("keyvault", "getVault", _KEY_VAULT, _VAULTS),
        _function("keyvault", "getSecret", _KEY_VAULT, _SECRETS),
        _function("keyvault", "getKey", _KEY_VAULT, f"{_VAULTS}/keys/{{keyName}}"),
        _function(
            "containerregistry",
            "getRegistry",
            "2023-01-01-preview",
            f"{IN_A_GROUP}/providers/Microsoft.ContainerRegistry/registries/{{registryName}}",
        ),
        _function("storage", "getStorageAccount", _STORAGE, _ACCOUNTS),
        _function("managedidentity", "getUserAssignedIdentity", _MANAGED_IDENTITY, _IDENTITIES),
    )
}
