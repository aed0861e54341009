"""Computes the orphan candidates of a plan, finds the existing ones by their inputs, and states with the orphans."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from identity import resource_types
from identity.azure.client import AzureClient, AzureObject
from identity.azure.registered_certificates import registered, registered_at
from identity.credentials import rfc3339
from identity.naming import owner_mark
from ops.access.clients import KubernetesObjects
from ops.stack.errors import CommandError, message
from ops.stack.state import (
    UNKNOWN,
    Plan,
    State,
    StateResource,
    name_of,
    provider_urn,
    resources_in,
    with_resources,
    without,
)
from ops.world.adoption_guard import owner_of_application
from ops.world.azure import read_vault_secrets

# A secret in a plan.
_MASKED: Final = "[secret]"
# One that the engine encrypts as it imports a state (pulumi/pulumi `sdk/go/common/resource/properties.go`).
_SECRET: Final = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270"}


@dataclass(frozen=True)
class Orphan:
    """A resource of a plan, the provider's id of the existing one, and the components above it that the state lost,
    the outermost first.

    `is_deleted`: a vault keeps the secret deleted. `masked` are the inputs that the plan masks, as they exist.
    """

    resource: StateResource
    id: str
    components: tuple[StateResource, ...] = ()
    is_deleted: bool = False
    masked: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        return name_of(self.resource["urn"])


def candidates(plan: Plan, resources: Sequence[StateResource], *, is_lost: bool = False) -> Iterator[StateResource]:
    """The resources that the plan creates and whose creation may have begun, with the plan's known inputs.

    The engine begins to create a resource once all its dependencies are in the state. With `is_lost` the state lost
    these, too, and a provider is enough; but azuread would replace a registration without its certificate.
    """
    reached = {resource["urn"] for resource in resources}
    for resource in _created(plan).values():
        waits = not is_lost or resource["type"] == resource_types.REGISTERED_CERTIFICATE
        if _needs(resource, waits=waits) <= reached:
            if resource["custom"]:
                yield {**resource, "inputs": shown(resource.get("inputs", {}))}
            else:
                reached.add(resource["urn"])


def secrets(plan: Plan, resources: Sequence[StateResource]) -> list[StateResource]:
    """The secrets of vaults that the plan creates by a provider of the state, with the plan's known inputs."""
    urns = {"", *(resource["urn"] for resource in resources)}
    found = (one for one in _created(plan).values() if one["type"] in resource_types.VAULT_SECRETS)
    return [{**one, "inputs": shown(one["inputs"])} for one in found if provider_urn(one["provider"]) in urns]


def components_above(resource: StateResource, plan: Plan) -> tuple[StateResource, ...]:
    """The components above a resource that the plan creates, the outermost first."""
    parent = _created(plan).get(resource.get("parent", ""))
    return () if parent is None else (*components_above(parent, plan), parent)


def _created(plan: Plan) -> dict[str, StateResource]:
    return {step["urn"]: step["newState"] for step in plan["steps"] if step["op"] == "create"}


def ids(resources: Sequence[StateResource]) -> set[tuple[str, str]]:
    """Type and provider's id of all resources; the id alone is not unique."""
    return {(resource["type"], resource["id"]) for resource in resources if "id" in resource}


def unmarked(state: State) -> State:
    """The `state` without the engine's mark of resources that a replacement deletes first (`pendingReplacement`).

    A refresh does not read marked resources. Without the mark it removes deleted ones, so that a plan creates them
    again and finds an existing replacement; a resource with the same id stays.
    """
    kept = [resource.copy() for resource in resources_in(state)]
    for resource in kept:
        resource.pop("pendingReplacement", None)
    return with_resources(state, kept) if kept else state


def settled(state: State, orphans: Sequence[Orphan]) -> State:
    """The refreshed `state` with the orphans, as the engine would have written them.

    The next command reads the outputs (`refreshBeforeUpdate`); until then the inputs replace them. Secrets are missing
    in the inputs, so that the next `up` writes them again, but for those without which it would replace the resource.
    """
    known, now = resources_in(state), rfc3339.render(datetime.now(UTC))
    entered: dict[str, StateResource] = {}
    for orphan in orphans:
        if orphan.is_deleted and orphan.resource["type"] != resource_types.CREDENTIAL_SECRET:
            continue  # the next `up` takes a key over that it finds in the vault
        entered |= {component["urn"]: component for component in orphan.components}
        masked = {**orphan.masked, **_certificate(orphan.resource, known)}
        encrypted = {name: {**_SECRET, "plaintext": json.dumps(value)} for name, value in masked.items()}
        inputs = {**orphan.resource["inputs"], **encrypted}
        outputs = {**inputs, "provenAt": now} if orphan.resource["type"] == resource_types.SIGN_IN_GATE else inputs
        own: StateResource = {**orphan.resource, "inputs": inputs, "outputs": outputs, "refreshBeforeUpdate": True}
        entered[orphan.resource["urn"]] = {**own, "id": orphan.id}
    # What a recovered secret depends on may have to be created after it.
    urns = {*entered, *(resource["urn"] for resource in known)}
    missing = {urn for resource in entered.values() for urn in _needs(resource)} - urns
    whole = with_resources(state, [*known, *entered.values()])
    return without(whole, missing) if missing else whole


def _needs(resource: StateResource, *, waits: bool = True) -> set[str]:
    """The URNs of a resource's dependencies; without `waits` of those alone without which no state may have it."""
    provider = provider_urn(resource.get("provider", ""))
    return {*((resource.get("dependencies") or ()) if waits else ()), resource.get("parent", ""), provider} - {""}


def _certificate(resource: StateResource, resources: Sequence[StateResource]) -> dict[str, Any]:
    """The masked input of a registration: the state's certificate with its key id."""
    key_id = resource["inputs"].get("keyId") if resource["type"] == resource_types.REGISTERED_CERTIFICATE else None
    for known in resources:
        if known["type"] == resource_types.CERTIFICATE and known["outputs"]["keyId"] == key_id:
            return {"value": known["outputs"]["certificatePem"]}
    return {}


def shown(value: Any) -> Any:
    """The inputs, or another value of a plan, without masked and unknown values."""
    if isinstance(value, Mapping):
        return {key: shown(item) for key, item in value.items() if item not in (_MASKED, UNKNOWN)}
    if isinstance(value, list):
        return [shown(item) for item in value if item not in (_MASKED, UNKNOWN)]
    return value


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
            raise CommandError(message("orphans.duplicates", tag=tag, listed=listed))
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
        raise CommandError(message("orphans.several", what=what, ids=", ".join(ids)))
    return ids[0] if ids else None


def _quoted(value: str) -> str:
    """A string literal of OData."""
    return "'" + value.replace("'", "''") + "'"


def _instant(moment: datetime) -> datetime:
    return moment.replace(microsecond=0)
