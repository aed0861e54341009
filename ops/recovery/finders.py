"""Finds, for each resource type of the program, the id of the thing that the inputs describe, if it exists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from identity.access.azure_client import AzureClient, AzureObject
from identity.access.registered_certificates import thumbprint
from identity.credentials.secret_tags import THUMBPRINT
from identity.naming import owner_mark, resource_group_id, resource_id
from ops.access import vault_secrets
from ops.recovery.kubernetes_objects import KubernetesObjects
from ops.siblings.whose import owner_of_application
from ops.stack.errors import CommandError

Inputs: TypeAlias = Mapping[str, Any]

APPLICATION: Final = "azuread:index/application:Application"
REGISTRATION: Final = "azuread:index/applicationCertificate:ApplicationCertificate"
_CREDENTIAL_SECRET: Final = "idstack:index:CredentialSecret"
_VAULTS: Final = "Microsoft.KeyVault/vaults"
_CLUSTERS: Final = "Microsoft.ContainerService/managedClusters"
_IDENTITIES: Final = "Microsoft.ManagedIdentity/userAssignedIdentities"
_ACCOUNTS: Final = "Microsoft.Storage/storageAccounts"
_KEY_VAULT: Final = "2024-11-01"
_STORAGE: Final = "2024-01-01"
_CONTAINER_SERVICE: Final = "2025-09-01"
_MANAGED_IDENTITY: Final = "2023-01-31"
_AUTHORIZATION: Final = "2022-04-01"
_RESOURCES: Final = "2024-03-01"
_NETWORK: Final = "2024-05-01"
_PRIVATE_DNS: Final = "2024-06-01"
_NETWORKS: Final = "Microsoft.Network/virtualNetworks"
_ZONES: Final = "Microsoft.Network/privateDnsZones"
_TOPICS: Final = "Microsoft.EventGrid/systemTopics"
_EVENT_GRID: Final = "2025-02-15"
_INSIGHTS: Final = "2021-05-01-preview"


@dataclass(frozen=True)
class _GroupedType:
    """A type of azure-native in a resource group: its type in ARM, the API version to read it with, its names."""

    type: str
    api_version: str
    names: tuple[str, ...]


_IN_A_GROUP: Final[Mapping[str, _GroupedType]] = MappingProxyType(
    {
        "azure-native:containerservice:ManagedCluster": _GroupedType(_CLUSTERS, _CONTAINER_SERVICE, ("resourceName",)),
        "azure-native:eventgrid:SystemTopic": _GroupedType(_TOPICS, _EVENT_GRID, ("systemTopicName",)),
        "azure-native:eventgrid:SystemTopicEventSubscription": _GroupedType(
            f"{_TOPICS}/eventSubscriptions", _EVENT_GRID, ("systemTopicName", "eventSubscriptionName")
        ),
        "azure-native:keyvault:Vault": _GroupedType(_VAULTS, _KEY_VAULT, ("vaultName",)),
        "azure-native:managedidentity:UserAssignedIdentity": _GroupedType(
            _IDENTITIES, _MANAGED_IDENTITY, ("resourceName",)
        ),
        "azure-native:managedidentity:FederatedIdentityCredential": _GroupedType(
            f"{_IDENTITIES}/federatedIdentityCredentials",
            _MANAGED_IDENTITY,
            ("resourceName", "federatedIdentityCredentialResourceName"),
        ),
        "azure-native:network:VirtualNetwork": _GroupedType(_NETWORKS, _NETWORK, ("virtualNetworkName",)),
        "azure-native:network:Subnet": _GroupedType(
            f"{_NETWORKS}/subnets", _NETWORK, ("virtualNetworkName", "subnetName")
        ),
        "azure-native:network:NetworkSecurityGroup": _GroupedType(
            "Microsoft.Network/networkSecurityGroups", _NETWORK, ("networkSecurityGroupName",)
        ),
        "azure-native:network:PublicIPAddress": _GroupedType(
            "Microsoft.Network/publicIPAddresses", _NETWORK, ("publicIpAddressName",)
        ),
        "azure-native:network:LoadBalancer": _GroupedType(
            "Microsoft.Network/loadBalancers", _NETWORK, ("loadBalancerName",)
        ),
        "azure-native:privatedns:PrivateZone": _GroupedType(_ZONES, _PRIVATE_DNS, ("privateZoneName",)),
        "azure-native:privatedns:VirtualNetworkLink": _GroupedType(
            f"{_ZONES}/virtualNetworkLinks", _PRIVATE_DNS, ("privateZoneName", "virtualNetworkLinkName")
        ),
        "azure-native:storage:StorageAccount": _GroupedType(_ACCOUNTS, _STORAGE, ("accountName",)),
    }
)


class Finders:
    """Looks things up in one subscription, tenant and cluster; `cluster` is None if the stack has none.

    `taken` are type and id of what the state has already, which is not found again. `vault_id` is the ARM id of the
    stack's vault, if an output of a complete run names it.
    """

    def __init__(
        self,
        azure: AzureClient,
        cluster: KubernetesObjects | None,
        subscription_id: str,
        taken: Set[tuple[str, str]],
        vault_id: str | None = None,
    ) -> None:
        self._azure = azure
        self._cluster = cluster
        self._subscription_id = subscription_id
        self._taken = taken
        self._vault_id = vault_id
        self._by_type: Mapping[str, Callable[[Inputs], str | None]] = {
            "azure-native:authorization:RoleAssignment": self._role_assignment,
            "azure-native:monitor:DiagnosticSetting": self._diagnostic_setting,
            "azure-native:resources:ResourceGroup": self._resource_group,
            "azure-native:storage:BlobContainer": self._container,
            APPLICATION: self._application,
            "azuread:index/servicePrincipal:ServicePrincipal": self._service_principal,
            REGISTRATION: self._registration,
            _CREDENTIAL_SECRET: self._credential_secret,
        }

    def find(self, type_token: str, inputs: Inputs) -> str | None:
        """The provider's id of the thing; None if there is none, or if the state has it.

        An input that is not known yet comes from something that does not exist itself; it is missing here. Raises
        CommandError if the service refuses or does not answer, or has several such things.
        """
        try:
            found = self._find(type_token, inputs)
        except LookupError:
            return None
        return None if (type_token, found) in self._taken else found

    def _find(self, type_token: str, inputs: Inputs) -> str | None:
        if row := _IN_A_GROUP.get(type_token):
            names = [inputs[name] for name in row.names]
            full_id = resource_id(self._subscription_id, inputs["resourceGroupName"], row.type, *names)
            return self._resource(full_id, row.api_version)
        if type_token.startswith("kubernetes:"):
            return self._object(inputs)
        return self._by_type[type_token](inputs) if type_token in self._by_type else None

    def _resource(self, full_id: str, api_version: str) -> str | None:
        # The id as Azure spells it, as azure-native takes it.
        found = self._azure.resource(full_id, api_version)
        return str(found["id"]) if found else None

    def _resource_group(self, inputs: Inputs) -> str | None:
        return self._resource(resource_group_id(self._subscription_id, inputs["resourceGroupName"]), _RESOURCES)

    def _role_assignment(self, inputs: Inputs) -> str | None:
        name = f"Microsoft.Authorization/roleAssignments/{inputs['roleAssignmentName']}"
        return self._resource(f"{inputs['scope']}/providers/{name}", _AUTHORIZATION)

    def _diagnostic_setting(self, inputs: Inputs) -> str | None:
        name = f"Microsoft.Insights/diagnosticSettings/{inputs['name']}"
        return self._resource(f"{inputs['resourceUri']}/providers/{name}", _INSIGHTS)

    def _container(self, inputs: Inputs) -> str | None:
        # An account has one blob service, which no input names.
        names = (inputs["accountName"], "default", inputs["containerName"])
        containers = f"{_ACCOUNTS}/blobServices/containers"
        full_id = resource_id(self._subscription_id, inputs["resourceGroupName"], containers, *names)
        return self._resource(full_id, _STORAGE)

    def _credential_secret(self, inputs: Inputs) -> str | None:
        return self._resource(f"{inputs['vaultId']}/secrets/{inputs['secretName']}", _KEY_VAULT)

    def _application(self, inputs: Inputs) -> str | None:
        # Display names are not unique, and another backend may have a stack of this name; no other has the owner id
        # (components/azure/ownership.py).
        owner = owner_of_application(inputs)
        names = [each for each in inputs["tags"] if not each.startswith(owner_mark(""))]
        tag = names[0]
        tagged = self._azure.directory_objects("/applications", f"tags/any(tag:tag eq {_quoted(tag)})")
        found = [each for each in tagged if owner_of_application(each) == owner]
        if len(found) > 1:
            delivered = self._delivered()
            listed = "; ".join(self._described(each, delivered) for each in found)
            raise CommandError(
                f"there is more than one application with the tag {tag}: {listed}. The stack can have only one of "
                "them. Keep the one in use, which the vault has a certificate of; delete the others, then run `make "
                "recover` again"
            )
        return f"/applications/{found[0]['id']}" if found else None

    def _described(self, application: AzureObject, delivered: Set[str]) -> str:
        """An application with what tells whether it is in use."""
        path = f"/applications/{application['id']}"
        certificates = {thumbprint(each) or each["keyId"] for each in application.get("keyCredentials") or ()}
        state = "in" if (APPLICATION, path) in self._taken else "not in"
        if certificates & delivered:
            return f"{path} is in use, and {state} the stack's state"
        shown = ", ".join(sorted(certificates)) or "no certificate"
        return f"{path} is {state} the stack's state, and none of its certificates is in the vault ({shown})"

    def _delivered(self) -> set[str]:
        """Thumbprints of the certificates in the stack's vault."""
        secrets = [] if self._vault_id is None else vault_secrets.read(self._azure, self._vault_id)
        return {tags[THUMBPRINT] for each in secrets if THUMBPRINT in (tags := each.get("tags") or {})}

    def _service_principal(self, inputs: Inputs) -> str | None:
        client_id = inputs["clientId"]
        found = self._azure.directory_objects("/servicePrincipals", f"appId eq {_quoted(client_id)}")
        return _only([f"/servicePrincipals/{each['id']}" for each in found], f"service principal of {client_id}")

    def _registration(self, inputs: Inputs) -> str | None:
        """The certificate of the application with the plan's key id.

        A plan that does not know the key id yet is of a certificate that begins at the same second as one that the
        state does not have.
        """
        application, begin = inputs["applicationId"], _instant(inputs["startDate"])
        found = self._azure.directory_object(application) or {}
        registered = found.get("keyCredentials", ())
        if key_id := inputs.get("keyId"):
            matching = [each for each in registered if each["keyId"].lower() == key_id.lower()]
        else:
            matching = [each for each in registered if _instant(each["startDateTime"]) == begin]
        ids = [f"{application.removeprefix('/applications/')}/certificate/{each['keyId']}" for each in matching]
        free = [each for each in ids if (REGISTRATION, each) not in self._taken]
        return _only(free, f"certificate of {application} from {begin}")

    def _object(self, inputs: Inputs) -> str | None:
        if self._cluster is None:
            return None
        namespace, name = inputs["metadata"].get("namespace"), inputs["metadata"]["name"]
        if not self._cluster.has(inputs["apiVersion"], inputs["kind"], namespace, name):
            return None
        return f"{namespace}/{name}" if namespace else str(name)


def _only(ids: list[str], what: str) -> str | None:
    """The one id, None for none; raises CommandError for several."""
    if len(ids) > 1:
        raise CommandError(
            f"there is more than one {what}: {', '.join(ids)}. The stack can have only one of them; delete the others, "
            "then run `make recover` again"
        )
    return ids[0] if ids else None


def _quoted(value: str) -> str:
    """A string literal of OData."""
    return "'" + value.replace("'", "''") + "'"


def _instant(date: str) -> datetime:
    return datetime.fromisoformat(date).replace(microsecond=0)
