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

_LOCATION: Final = frozenset({"location"})
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


@dataclass(frozen=True)
class _TypeRow:
    """`name` is `<module of the SDK>:<class, or function in camelCase>`, the end of the token."""

    name: str
    api_version: str
    path: str

    @property
    def token(self) -> str:
        """The engine's name of the type or function."""
        return f"azure-native:{self.name}"

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Inputs that are part of the path, in its order."""
        return tuple(name for name in re.findall(r"{(\w+)}", self.path) if name != "subscriptionId")

    @property
    def module_name(self) -> str:
        """The SDK's module."""
        return self.name.partition(":")[0]

    @property
    def type_name(self) -> str:
        """A class of the SDK, or a function in camelCase."""
        return self.name.partition(":")[2]

    def resource_id(self, subscription_id: str, inputs: Mapping[str, str]) -> str:
        """The ARM id that the inputs lead to."""
        values = {name: inputs[name].strip("/") if name in SCOPES else inputs[name] for name in self.parameters}
        return self.path.format(subscriptionId=subscription_id, **values)

    def _sdk(self, *names: str) -> type:
        return _sdk_class(self.module_name, *names)


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class FunctionRow(_TypeRow):
    """A function that reads one resource, or with `action` posts that to it.

    `options` are arguments of the SDK, and the query parameters of the API that they are sent as.
    """

    action: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

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

_ADDRESS_FIXED: Final = _LOCATION | {"publicIPAddressVersion", "publicIPPrefix", "sku"}

NETWORK_RESOURCES: Final = (
    ResourceRow("resources:ResourceGroup", _RESOURCES, IN_A_GROUP, _LOCATION),
    ResourceRow(
        *("network:VirtualNetwork", _NETWORK, _NETWORKS, _LOCATION),
        sub_resources=(("subnets",), ("virtualNetworkPeerings",)),
    ),
    ResourceRow("network:Subnet", _NETWORK, _SUBNETS),
    ResourceRow("network:NetworkSecurityGroup", _NETWORK, _GROUPS, sub_resources=(("securityRules",),)),
    ResourceRow("network:PublicIPAddress", _NETWORK, _ADDRESSES, _ADDRESS_FIXED),
    ResourceRow(
        *("network:LoadBalancer", _NETWORK, _BALANCERS),
        sub_resources=(("backendAddressPools",), ("inboundNatRules",)),
    ),
    ResourceRow("privatedns:PrivateZone", _PRIVATE_DNS, _ZONES, _LOCATION),
    ResourceRow("privatedns:VirtualNetworkLink", _PRIVATE_DNS, _LINKS, _LOCATION),
)
NETWORK_FUNCTIONS: Final = (
    FunctionRow("resources:getResourceGroup", _RESOURCES, IN_A_GROUP),
    FunctionRow("network:getVirtualNetwork", _NETWORK, _NETWORKS),
    FunctionRow("network:getSubnet", _NETWORK, _SUBNETS),
    FunctionRow("network:getNetworkSecurityGroup", _NETWORK, _GROUPS),
    FunctionRow("network:getLoadBalancer", _NETWORK, _BALANCERS),
    FunctionRow("privatedns:getPrivateZone", _PRIVATE_DNS, _ZONES),
    FunctionRow("privatedns:getVirtualNetworkLink", _PRIVATE_DNS, _LINKS),
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
_CREDENTIALS: Final = f"{_IDENTITIES}/federatedIdentityCredentials/{{federatedIdentityCredentialResourceName}}"
_ASSIGNMENTS: Final = "/{scope}/providers/Microsoft.Authorization/roleAssignments/{roleAssignmentName}"
_REGISTRIES: Final = f"{IN_A_GROUP}/providers/Microsoft.ContainerRegistry/registries/{{registryName}}"
_PUBLIC_ZONES: Final = f"{IN_A_GROUP}/providers/Microsoft.Network/dnsZones/{{zoneName}}"
# replacement.go since pull request 4771: of the network profile only what cannot be changed in place.
_FIXED_NETWORK: Final = (
    "serviceCidr serviceCidrs dnsServiceIP networkMode networkPlugin networkPluginMode podCidr networkDataplane "
    "networkPolicy outboundType"
)
_FIXED_OF_A_CLUSTER: Final = _LOCATION | {
    *("diskEncryptionSetID", "dnsPrefix", "fqdnSubdomain", "linuxProfile", "nodeResourceGroup", "windowsProfile"),
    *(f"networkProfile.{name}" for name in _FIXED_NETWORK.split()),
}
_OPEN: Final = {"bypass": "AzureServices", "defaultAction": "Allow", "ipRules": [], "virtualNetworkRules": []}
_ACCOUNT_NAME: Final = "^[a-z0-9]{3,24}$"

# keyvault.json and secrets.json 2024-11-01, checked by the provider itself before any request.
_VAULT_NAME: Final = "^[a-zA-Z0-9-]{3,24}$"
_SECRET_NAME: Final = "^[a-zA-Z0-9-]{1,127}$"
# ManagedIdentity.json 2023-01-31.
_CREDENTIAL_NAME: Final = "^[a-zA-Z0-9]{1}[a-zA-Z0-9-_]{2,119}$"


RESOURCES: Final = {
    row.token: row
    for row in (
        # `location` carries no x-ms-mutability in keyvault.json: its change is an update, which ARM then refuses
        # (InvalidResourceLocation; the same seen in pulumi-azure-native issue 3053).
        ResourceRow(
            *("keyvault:Vault", _KEY_VAULT, _VAULTS),
            patterns={"vaultName": _VAULT_NAME},
            sub_resources=(("properties", "accessPolicies"),),
        ),
        # provider/pkg/resources/customresources/custom_keyvault.go
        ResourceRow(
            *("keyvault:Secret", _KEY_VAULT, _SECRETS),
            patterns={"vaultName": _VAULT_NAME, "secretName": _SECRET_NAME},
            vault_collection="secrets",
        ),
        # common-types TrackedResource: `"x-ms-mutability": ["read", "create"]`.
        ResourceRow("managedidentity:UserAssignedIdentity", _MANAGED_IDENTITY, _IDENTITIES, _LOCATION),
        ResourceRow(
            *("managedidentity:FederatedIdentityCredential", _MANAGED_IDENTITY, _CREDENTIALS),
            patterns={"federatedIdentityCredentialResourceName": _CREDENTIAL_NAME},
        ),
        # Of an account and of a role assignment: replacement.go. A changed role definition is an update, which Azure
        # then refuses.
        ResourceRow(
            *("storage:StorageAccount", _STORAGE, _ACCOUNTS, _LOCATION | {"isHnsEnabled"}),
            patterns={"accountName": _ACCOUNT_NAME},
            defaults={"networkRuleSet": _OPEN},
        ),
        ResourceRow(
            *("storage:BlobContainer", _STORAGE, f"{_ACCOUNTS}/blobServices/default/containers/{{containerName}}"),
            patterns={"accountName": _ACCOUNT_NAME},
        ),
        ResourceRow("authorization:RoleAssignment", "2022-04-01", _ASSIGNMENTS, frozenset({"principalId"})),
        ResourceRow(
            *("containerservice:ManagedCluster", _CONTAINER_SERVICE, _MANAGED_CLUSTER, _FIXED_OF_A_CLUSTER),
            patterns={"resourceName": "^[a-zA-Z0-9]$|^[a-zA-Z0-9][-_a-zA-Z0-9]{0,61}[a-zA-Z0-9]$"},
        ),
        *NETWORK_RESOURCES,
    )
}


def _credentials(who: str, **options: str) -> FunctionRow:
    """A kubeconfig of a managed cluster; the SDK's plural is the OpenAPI document's operation."""
    return FunctionRow(
        *(f"containerservice:listManagedCluster{who}Credentials", _CONTAINER_SERVICE, _MANAGED_CLUSTER),
        action=f"listCluster{who}Credential",
        options=options,
    )


FUNCTIONS: Final = {
    row.token: row
    for row in (
        FunctionRow("containerservice:getManagedCluster", _CONTAINER_SERVICE, _MANAGED_CLUSTER),
        _credentials("User", format="format", serverFqdn="server-fqdn"),
        _credentials("Admin", serverFqdn="server-fqdn"),
        *NETWORK_FUNCTIONS,
        FunctionRow("dns:getZone", "2023-07-01-preview", _PUBLIC_ZONES),
        FunctionRow("keyvault:getVault", _KEY_VAULT, _VAULTS),
        FunctionRow("keyvault:getSecret", _KEY_VAULT, _SECRETS),
        FunctionRow("keyvault:getKey", _KEY_VAULT, f"{_VAULTS}/keys/{{keyName}}"),
        FunctionRow("containerregistry:getRegistry", "2023-01-01-preview", _REGISTRIES),
        FunctionRow("storage:getStorageAccount", _STORAGE, _ACCOUNTS),
        FunctionRow("managedidentity:getUserAssignedIdentity", _MANAGED_IDENTITY, _IDENTITIES),
    )
}
