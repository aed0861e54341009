"""Finds the id of an existing resource by its inputs, for each resource type of the program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias

from identity import resource_types
from identity.azure.client import AzureClient, AzureObject
from identity.azure.registered_certificates import registered, registered_at
from identity.credentials import rfc3339
from identity.naming import owner_mark
from ops.access.clients import KubernetesObjects
from ops.stack.errors import CommandError
from ops.world.adoption_guard import owner_of_application
from ops.world.azure import read_vault_secrets

Inputs: TypeAlias = Mapping[str, Any]

_GROUP: Final = "/subscriptions/{subscription}/resourceGroups/{resourceGroupName}"
_IN_GROUP: Final = f"{_GROUP}/providers/Microsoft."
_IDENTITY: Final = _IN_GROUP + "ManagedIdentity/userAssignedIdentities/{resourceName}"
_NETWORK: Final = _IN_GROUP + "Network/virtualNetworks/{virtualNetworkName}"
_ZONE: Final = _IN_GROUP + "Network/privateDnsZones/{privateZoneName}"
_ACCOUNT: Final = _IN_GROUP + "Storage/storageAccounts/{accountName}"
# The ARM id of a resource with its inputs, by type.
_ARM_IDS: Final[Mapping[str, str]] = {
    resource_types.RESOURCE_GROUP: _GROUP,
    resource_types.ROLE_ASSIGNMENT: "{scope}/providers/Microsoft.Authorization/roleAssignments/{roleAssignmentName}",
    resource_types.MANAGED_CLUSTER: _IN_GROUP + "ContainerService/managedClusters/{resourceName}",
    resource_types.VAULT: _IN_GROUP + "KeyVault/vaults/{vaultName}",
    resource_types.CREDENTIAL_SECRET: "{vaultId}/secrets/{secretName}",
    resource_types.MANAGED_IDENTITY: _IDENTITY,
    resource_types.FEDERATED_CREDENTIAL: f"{_IDENTITY}/federatedIdentityCredentials/"
    "{federatedIdentityCredentialResourceName}",
    resource_types.NETWORK: _NETWORK,
    resource_types.SUBNET: _NETWORK + "/subnets/{subnetName}",
    resource_types.SECURITY_GROUP: _IN_GROUP + "Network/networkSecurityGroups/{networkSecurityGroupName}",
    resource_types.PUBLIC_ADDRESS: _IN_GROUP + "Network/publicIPAddresses/{publicIpAddressName}",
    resource_types.LOAD_BALANCER: _IN_GROUP + "Network/loadBalancers/{loadBalancerName}",
    resource_types.PRIVATE_ZONE: _ZONE,
    resource_types.NETWORK_LINK: _ZONE + "/virtualNetworkLinks/{virtualNetworkLinkName}",
    resource_types.STORAGE_ACCOUNT: _ACCOUNT,
    # An account has one blob service, without an input for its name.
    resource_types.STORAGE_CONTAINER: _ACCOUNT + "/blobServices/default/containers/{containerName}",
}
# By the middle of a type's token; `index` is CREDENTIAL_SECRET's.
_API_VERSIONS: Final = {
    "authorization": resource_types.AUTHORIZATION_API,
    "containerservice": resource_types.CONTAINER_SERVICE_API,
    "index": resource_types.KEY_VAULT_API,
    "keyvault": resource_types.KEY_VAULT_API,
    "managedidentity": resource_types.MANAGED_IDENTITY_API,
    "network": resource_types.NETWORK_API,
    "privatedns": resource_types.PRIVATE_DNS_API,
    "resources": resource_types.RESOURCES_API,
    "storage": resource_types.STORAGE_API,
}


@dataclass(frozen=True)
class Finders:
    """Finds resources in one subscription, tenant and cluster; `cluster` is None if the stack has none.

    `taken` are type and id of the resources in the state, which are not found again. `vault_id` is the ARM id of the
    stack's vault, if the outputs have it.
    """

    azure: AzureClient
    cluster: KubernetesObjects | None
    subscription_id: str
    taken: Set[tuple[str, str]]
    vault_id: str | None = None

    def find(self, type_token: str, inputs: Inputs) -> str | None:
        """The provider's id of the resource; None if it does not exist, or is in the state.

        An unknown input, of a resource that does not exist, is missing in `inputs`. Raises AzureRefusedError if Azure
        refuses or does not answer, CommandError for several such resources and if the management cluster does.
        """
        try:
            id = self._find(type_token, inputs)
        except LookupError:
            return None
        return None if (type_token, id) in self.taken else id

    def _find(self, type_token: str, inputs: Inputs) -> str | None:
        if template := _ARM_IDS.get(type_token):
            full_id = template.format_map({**inputs, "subscription": self.subscription_id})
            resource = self.azure.resource(full_id, _API_VERSIONS[type_token.split(":")[1]])
            return str(resource["id"]) if resource else None  # in Azure's spelling, as azure-native has it
        if type_token.startswith("kubernetes:"):
            return self._object(inputs)
        by_type: Mapping[str, Callable[[Inputs], str | None]] = {
            resource_types.APPLICATION: self._application,
            resource_types.SERVICE_PRINCIPAL: self._service_principal,
            resource_types.REGISTERED_CERTIFICATE: self._registration,
            # Its certificate is registered, and the key gone: no run can prove that one again, or deliver it.
            resource_types.SIGN_IN_GATE: lambda inputs: str(inputs["registration"]),
        }
        return by_type[type_token](inputs) if type_token in by_type else None

    def masked(self, inputs: Inputs) -> dict[str, Any]:
        """What a plan masks of an existing Secret of Kubernetes, which the provider would replace without it."""
        live = self._live(inputs) if inputs.get("kind") == "Secret" else None
        return {"data": live["data"]} if live and "data" in live else {}

    def _application(self, inputs: Inputs) -> str | None:
        # Display names are not unique, and another backend may have a stack of this name; no other has the owner id.
        owner = owner_of_application(inputs)
        names = [candidate for candidate in inputs["tags"] if not candidate.startswith(owner_mark(""))]
        tag = names[0]
        tagged = self.azure.directory_objects("/applications", f"tags/any(tag:tag eq {_quoted(tag)})")
        own = [candidate for candidate in tagged if owner_of_application(candidate) == owner]
        if len(own) > 1:
            secrets = [] if self.vault_id is None else read_vault_secrets(self.azure, self.vault_id)
            delivered = {secret.thumbprint for secret in secrets if secret.thumbprint is not None}
            listed = "; ".join(self._described(candidate, delivered) for candidate in own)
            raise CommandError(
                f"there is more than one application with the tag {tag}: {listed}. The stack can have only one of "
                "them. Keep the one in use, whose certificate is in the vault; delete the others, then run the "
                "command again"
            )
        return f"/applications/{own[0]['id']}" if own else None

    def _described(self, application: AzureObject, delivered: Set[str]) -> str:
        """An application, and whether it is in use."""
        path = f"/applications/{application['id']}"
        certificates = {certificate.thumbprint or certificate.key_id for certificate in registered(application)}
        state = "in" if (resource_types.APPLICATION, path) in self.taken else "not in"
        if certificates & delivered:
            return f"{path} is in use, and {state} the stack's state"
        thumbprints = ", ".join(sorted(certificates)) or "no certificate"
        return f"{path} is {state} the stack's state, and none of its certificates is in the vault ({thumbprints})"

    def _service_principal(self, inputs: Inputs) -> str | None:
        client_id = inputs["clientId"]
        principals = self.azure.directory_objects("/servicePrincipals", f"appId eq {_quoted(client_id)}")
        return _only(
            [f"/servicePrincipals/{principal['id']}" for principal in principals], f"service principal of {client_id}"
        )

    def _registration(self, inputs: Inputs) -> str | None:
        """The certificate of the application with the plan's key id.

        If the plan does not know the key id yet, the certificate that begins at the plan's second and is not in the
        state.
        """
        application, begin = inputs["applicationId"], _instant(rfc3339.parse(inputs["startDate"]))
        certificates = registered_at(self.azure, application) or ()
        if key_id := inputs.get("keyId"):
            matching = [certificate for certificate in certificates if certificate.key_id.lower() == key_id.lower()]
        else:
            matching = [certificate for certificate in certificates if _instant(certificate.begins) == begin]
        prefix = f"{application.removeprefix('/applications/')}/certificate/"
        ids = [f"{prefix}{certificate.key_id}" for certificate in matching]
        free = [id for id in ids if (resource_types.REGISTERED_CERTIFICATE, id) not in self.taken]
        return _only(free, f"certificate of {application} from {begin}")

    def _object(self, inputs: Inputs) -> str | None:
        namespace, name = inputs["metadata"].get("namespace"), inputs["metadata"]["name"]
        return (f"{namespace}/{name}" if namespace else str(name)) if self._live(inputs) else None

    def _live(self, inputs: Inputs) -> dict[str, Any] | None:
        """The Kubernetes object with the inputs' name, as it is."""
        if self.cluster is None:
            return None
        metadata = inputs["metadata"]
        return self.cluster.read(inputs["apiVersion"], inputs["kind"], metadata.get("namespace"), metadata["name"])


def _only(ids: list[str], what: str) -> str | None:
    """The one id, None for none; raises CommandError for several."""
    if len(ids) > 1:
        raise CommandError(
            f"there is more than one {what}: {', '.join(ids)}. The stack can have only one of them; delete the others, "
            "then run the command again"
        )
    return ids[0] if ids else None


def _quoted(value: str) -> str:
    """A string literal of OData."""
    return "'" + value.replace("'", "''") + "'"


def _instant(moment: datetime) -> datetime:
    return moment.replace(microsecond=0)
