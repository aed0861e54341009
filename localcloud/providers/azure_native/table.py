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
from typing import Final

_GROUP: Final = "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}"
_CONTAINER_SERVICE: Final = "2025-09-01"
_KEY_VAULT: Final = "2024-11-01"
_MANAGED_IDENTITY: Final = "2023-01-31"
_NETWORK: Final = "2024-05-01"
_SCOPE: Final = "scope"
_MANAGED_CLUSTER: Final = f"{_GROUP}/providers/Microsoft.ContainerService/managedClusters/{{resourceName}}"
_FIXED_NETWORK: Final = (
    *("serviceCidr", "serviceCidrs", "dnsServiceIP", "networkMode", "networkPlugin", "networkPluginMode", "podCidr"),
    *("networkDataplane", "networkPolicy", "outboundType"),
)

# keyvault.json and secrets.json 2024-11-01, checked by the provider itself before any request.
_VAULT_NAME: Final = "^[a-zA-Z0-9-]{3,24}$"
_SECRET_NAME: Final = "^[a-zA-Z0-9-]{1,127}$"
# ManagedIdentity.json 2023-01-31.
_CREDENTIAL_NAME: Final = "^[a-zA-Z0-9]{1}[a-zA-Z0-9-_]{2,119}$"


_LOADING: Final = threading.Lock()


@cache
def _sdk_class(module: str, name: str) -> type:
    """A class of the SDK. Its module loads at first use, under a lock, because other threads would see half of it."""
    with _LOADING:
        found: type = getattr(importlib.import_module(f"pulumi_azure_native.{module}"), name)
        return found


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
        values = {name: inputs[name].strip("/") if name == _SCOPE else inputs[name] for name in self.parameters}
        return self.path.format(subscriptionId=subscription_id, **values)

    def _sdk(self, name: str) -> type:
        return _sdk_class(self.module_name, name)


@dataclass(frozen=True, kw_only=True)
class ResourceRow(_TypeRow):
    """A resource type.

    Attributes:
        name_input: the input that names it; the real provider makes one up, the emulated one demands it.
        flattened: whether the SDK's arguments lie in `properties` of the request although the SDK shows no such level.
        force_new: inputs of the body, or dotted paths in them, whose change replaces; those of the path always do.
        patterns: what an input must look like, refused before any request.
        sub_resources: arrays that are resources of their own: `[]` on create and left alone on update when not given.
        vault_collection: the collection at the vault's own endpoint that deletes it, because ARM cannot.
    """

    name_input: str
    flattened: bool = False
    force_new: frozenset[str] = frozenset()
    patterns: Mapping[str, str] = field(default_factory=dict)
    sub_resources: tuple[tuple[str, ...], ...] = ()
    vault_collection: str | None = None

    @property
    def arguments(self) -> type:
        """The SDK's class of arguments."""
        return self._sdk(f"{self.type_name}Args")

    @property
    def outputs(self) -> type:
        """The SDK's class of the resource, whose properties are its outputs."""
        return self._sdk(self.type_name)

    def replaces(self, path: str) -> bool:
        """Whether a change at this property path replaces the resource."""
        names = re.sub(r"\[\d+\]", "", path).split(".")
        return not {".".join(names[:end]) for end in range(1, len(names) + 1)}.isdisjoint(
            {*self.parameters, *self.force_new}
        )


@dataclass(frozen=True, kw_only=True)
class FunctionRow(_TypeRow):
    """A function that reads one resource, or with `action` posts that to it.

    `options` are arguments of the SDK, and the query parameters of the API that they are sent as.
    """

    action: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def inputs(self) -> tuple[str, ...]:
        """All inputs of the function."""
        return (*self.parameters, *self.options)

    @property
    def outputs(self) -> type:
        """The SDK's class of the result."""
        return self._sdk(f"{self.type_name[0].upper()}{self.type_name[1:]}Result")


RESOURCES: Final = {
    row.token: row
    for row in (
        ResourceRow(
            token="azure-native:keyvault:Vault",
            api_version=_KEY_VAULT,
            path=f"{_GROUP}/providers/Microsoft.KeyVault/vaults/{{vaultName}}",
            name_input="vaultName",
            patterns={"vaultName": _VAULT_NAME},
            # `location` carries no x-ms-mutability in keyvault.json: its change is an update, which ARM then refuses
            # (InvalidResourceLocation; the same seen in pulumi-azure-native issue 3053).
            sub_resources=(("properties", "accessPolicies"),),
        ),
        ResourceRow(
            token="azure-native:keyvault:Secret",
            api_version=_KEY_VAULT,
            path=f"{_GROUP}/providers/Microsoft.KeyVault/vaults/{{vaultName}}/secrets/{{secretName}}",
            name_input="secretName",
            patterns={"vaultName": _VAULT_NAME, "secretName": _SECRET_NAME},
            # provider/pkg/resources/customresources/custom_keyvault.go
            vault_collection="secrets",
        ),
        ResourceRow(
            token="azure-native:managedidentity:UserAssignedIdentity",
            api_version=_MANAGED_IDENTITY,
            path=f"{_GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{{resourceName}}",
            name_input="resourceName",
            flattened=True,
            # common-types TrackedResource: `"x-ms-mutability": ["read", "create"]`.
            force_new=frozenset({"location"}),
        ),
        ResourceRow(
            token="azure-native:managedidentity:FederatedIdentityCredential",
            api_version=_MANAGED_IDENTITY,
            path=f"{_GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{{resourceName}}"
            "/federatedIdentityCredentials/{federatedIdentityCredentialResourceName}",
            name_input="federatedIdentityCredentialResourceName",
            patterns={"federatedIdentityCredentialResourceName": _CREDENTIAL_NAME},
            flattened=True,
        ),
        ResourceRow(
            token="azure-native:authorization:RoleAssignment",
            api_version="2022-04-01",
            path="/{scope}/providers/Microsoft.Authorization/roleAssignments/{roleAssignmentName}",
            name_input="roleAssignmentName",
            flattened=True,
            # replacement.go: "principalId", "scope". A changed role definition is an update, which Azure then refuses.
            force_new=frozenset({"principalId"}),
        ),
        ResourceRow(
            token="azure-native:containerservice:ManagedCluster",
            api_version=_CONTAINER_SERVICE,
            path=_MANAGED_CLUSTER,
            name_input="resourceName",
            patterns={"resourceName": "^[a-zA-Z0-9]$|^[a-zA-Z0-9][-_a-zA-Z0-9]{0,61}[a-zA-Z0-9]$"},
            flattened=True,
            # replacement.go since pull request 4771: of the network profile only what cannot be changed in place.
            force_new=frozenset(
                {"diskEncryptionSetID", "dnsPrefix", "fqdnSubdomain", "linuxProfile", "location", "nodeResourceGroup"}
                | {"windowsProfile"}
                | {f"networkProfile.{name}" for name in _FIXED_NETWORK}
            ),
        ),
    )
}


def _function(module: str, name: str, api_version: str, path: str) -> FunctionRow:
    return FunctionRow(token=f"azure-native:{module}:{name}", api_version=api_version, path=path)


def _credentials(who: str, **options: str) -> FunctionRow:
    """A kubeconfig of a managed cluster; the SDK's plural is the OpenAPI document's operation."""
    return FunctionRow(
        token=f"azure-native:containerservice:listManagedCluster{who}Credentials",
        api_version=_CONTAINER_SERVICE,
        path=_MANAGED_CLUSTER,
        action=f"listCluster{who}Credential",
        options=options,
    )


_NETWORKS: Final = f"{_GROUP}/providers/Microsoft.Network/virtualNetworks/{{virtualNetworkName}}"

FUNCTIONS: Final = {
    row.token: row
    for row in (
        _function("resources", "getResourceGroup", "2024-03-01", _GROUP),
        _function("containerservice", "getManagedCluster", _CONTAINER_SERVICE, _MANAGED_CLUSTER),
        _credentials("User", format="format", serverFqdn="server-fqdn"),
        _credentials("Admin", serverFqdn="server-fqdn"),
        _function("network", "getVirtualNetwork", _NETWORK, _NETWORKS),
        _function("network", "getSubnet", _NETWORK, f"{_NETWORKS}/subnets/{{subnetName}}"),
        _function(
            "network",
            "getNetworkSecurityGroup",
            _NETWORK,
            f"{_GROUP}/providers/Microsoft.Network/networkSecurityGroups/{{networkSecurityGroupName}}",
        ),
        _function(
            "dns", "getZone", "2023-07-01-preview", f"{_GROUP}/providers/Microsoft.Network/dnsZones/{{zoneName}}"
        ),
        _function("keyvault", "getVault", _KEY_VAULT, f"{_GROUP}/providers/Microsoft.KeyVault/vaults/{{vaultName}}"),
        _function(
            "keyvault",
            "getSecret",
            _KEY_VAULT,
            f"{_GROUP}/providers/Microsoft.KeyVault/vaults/{{vaultName}}/secrets/{{secretName}}",
        ),
        _function(
            "keyvault",
            "getKey",
            _KEY_VAULT,
            f"{_GROUP}/providers/Microsoft.KeyVault/vaults/{{vaultName}}/keys/{{keyName}}",
        ),
        _function(
            "managedidentity",
            "getUserAssignedIdentity",
            _MANAGED_IDENTITY,
            f"{_GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{{resourceName}}",
        ),
    )
}
