"""Microsoft.ManagedIdentity: user-assigned identities and their federated credentials.

Sources: the provider's REST reference (names, 20 credentials, `resourcegroups` in lower case in every id it prints),
azure-docs `workload-identity-federation-considerations` (unique issuer and subject, no concurrent writes), messages in
Azure/bicep-registry-modules issue 1447 and Azure/bicep-types-az issue 2029.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.responses import JSONResponse, Response

from localcloud.azure.arm import errors
from localcloud.azure.arm.path import ArmPath
from localcloud.azure.arm.resource_type import Call, ResourceType, WrittenType, page
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.resource_store import Resources, public
from localcloud.azure.shared.refusals import ServiceError, refusal
from localcloud.core.arm_ids import in_lower_case, resource_group_id, resource_id
from localcloud.core.store import Document

# A managed cluster's second resource group: its nodes, and the identities that AKS makes for it.
#
# For IMDS, a scale set here is this machine's node: the identities in its `identity` get tokens on this machine.

_GROUPS: Final = "Microsoft.Resources/resourceGroups"
_SCALE_SETS: Final = "Microsoft.Compute/virtualMachineScaleSets"


class NodeGroup:
    """The node resource group of one cluster, by its ARM id."""

    def __init__(self, cloud: LocalAzure, resources: Resources, cluster: str, name: str) -> None:
        self._cloud = cloud
        self._resources = resources
        self._cluster = cluster
        self._name = name
        self._id = resource_group_id(cloud.subscription_id, name)

    def create(self, location: str, tags: Mapping[str, str]) -> None:
        """Create the group unless the cluster already has it; raises 400 if another owner has it."""
        current = self._resources.get(self._id)
        if current is None:
            group = self._document(self._id, _GROUPS, location, {"provisioningState": "Succeeded"})
            self._resources.put({**group, "tags": dict(tags), "managedBy": self._cluster})
        elif str(current.get("managedBy") or self._cluster).lower() != self._cluster.lower():
            raise errors.bad_request(f"The node resource group '{self._name}' already exists.")

    def identity(self, name: str, location: str) -> dict[str, str]:
        """A managed identity in it, created on the first call, in the form of a cluster's `identityProfile`."""
        full_id = in_lower_case(resource_id(self._cloud.subscription_id, self._name, IDENTITIES, name))
        identity = self._resources.get(full_id) or new_identity(
            self._cloud, self._resources, self._document(full_id, IDENTITIES, location, {})
        )
        ids = identity["properties"]
        return {"resourceId": identity["id"], "clientId": ids["clientId"], "objectId": ids["principalId"]}

    def remove_identity(self, name: str) -> None:
        """Delete a managed identity in it and its principal, if there is one."""
        identity = self._resources.get(resource_id(self._cloud.subscription_id, self._name, IDENTITIES, name))
        if identity is not None:
            self._delete(identity)

    def attach(self, pools: list[dict[str, Any]], location: str, identities: list[dict[str, str]]) -> None:
        """Attach exactly these identities to the nodes of every pool."""
        carried = {
            identity["resourceId"]: {"clientId": identity["clientId"], "principalId": identity["objectId"]}
            for identity in identities
        }
        for pool in pools:
            number = uuid.uuid5(uuid.NAMESPACE_URL, f"{self._id.lower()}/{pool['name']}").int % 10**8
            name = f"aks-{pool['name']}-{number:08}-vmss"
            full_id = resource_id(self._cloud.subscription_id, self._name, _SCALE_SETS, name)
            scale_set = self._document(full_id, _SCALE_SETS, location, {"provisioningState": "Succeeded"})
            attached = {"type": "UserAssigned", "userAssignedIdentities": carried}
            self._resources.put({**scale_set, "identity": attached})

    def remove(self) -> None:
        """Delete the group with everything in it; role assignments elsewhere outlive their principals."""
        for identity in list(self._resources.below(self._id, IDENTITIES)):
            self._delete(identity)
        self._resources.delete(self._id)

    def _delete(self, identity: Document) -> None:
        self._cloud.directory.delete_service_principal(identity["properties"]["principalId"])
        self._resources.delete(identity["id"])

    def _document(self, full_id: str, type_name: str, location: str, properties: dict[str, Any]) -> Document:
        name = full_id.rpartition("/")[2]
        document = {"id": full_id, "name": name, "type": type_name, "location": location, "tags": {}}
        return {**document, "properties": properties}


IDENTITIES: Final = "Microsoft.ManagedIdentity/userAssignedIdentities"
FEDERATED_CREDENTIALS: Final = f"{IDENTITIES}/federatedIdentityCredentials"
MAXIMUM_CREDENTIALS: Final = 20
_IDENTITY_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{2,127}")
_CREDENTIAL_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{2,119}")
_MAXIMUM_LENGTH: Final = 600  # of issuer, subject and audience each


class _ManagedIdentityType(WrittenType):
    def canonical_id(self, path: ArmPath) -> str:
        return in_lower_case(super().canonical_id(path))


class UserAssignedIdentities(_ManagedIdentityType):
    """Managed identities. Deleting one deletes its principal and leaves the principal's role assignments behind."""

    name = IDENTITIES

    async def put(self, call: Call) -> Response:
        current = call.current
        identity = self.envelope(call, tracked=True)
        _check_name(_IDENTITY_NAME, call.path.name, "3-128 letters, digits, '-' and '_', the first a letter or digit")
        if current is None:
            return JSONResponse(public(new_identity(call.cloud, call.resources, identity)), status_code=201)
        return JSONResponse(public(call.resources.put({**current, "tags": identity["tags"]})))

    async def patch(self, call: Call) -> Response:
        identity = self.existing(call)
        tags = identity["tags"] if call.body.get("tags") is None else call.body["tags"]
        return JSONResponse(public(call.resources.put({**identity, "tags": tags})))

    def before_deletion(self, call: Call, resource: Document) -> None:
        call.cloud.directory.delete_service_principal(resource["properties"]["principalId"])


def new_identity(cloud: LocalAzure, resources: Resources, identity: Document) -> Document:
    """Write a managed identity and create its principal, whose ids become its `properties`."""
    with cloud.store.transaction():
        principal = cloud.directory.create_managed_identity(identity["id"], identity["name"])
        ids = {"tenantId": cloud.tenant_id, "principalId": principal.object_id, "clientId": principal.app_id}
        return resources.put({**identity, "properties": ids})


class FederatedIdentityCredentials(_ManagedIdentityType):
    """Federated credentials of a managed identity. During a write, another write for the same identity is refused."""

    name = FEDERATED_CREDENTIALS

    def __init__(self) -> None:
        self._being_written: set[str] = set()

    def not_found(self, call: Call) -> ServiceError:
        return refusal("NotFound federated credential", name=call.path.name)

    async def list(self, call: Call) -> Response:
        return page(call, map(public, call.resources.below(str(call.path.parent_id), self.name)))

    async def put(self, call: Call) -> Response:
        credential = self.envelope(call, tracked=False)
        _check_name(_CREDENTIAL_NAME, call.path.name, "3-120 letters, digits, '-' and '_', the first a letter or digit")
        properties = _trust(call.properties)
        async with self._sole_write(call):
            self._refuse_surplus(call, properties)
            return self.written(call, {**credential, "properties": properties})

    async def delete(self, call: Call) -> Response:
        async with self._sole_write(call):
            return await super().delete(call)

    @asynccontextmanager
    async def _sole_write(self, call: Call) -> AsyncIterator[None]:
        identity = str(call.path.parent_id).lower()
        if identity in self._being_written:
            raise refusal("ConcurrentFederatedIdentityCredentialsWritesForSingleManagedIdentity", identity=identity)
        self._being_written.add(identity)
        try:
            await asyncio.sleep(call.cloud.faults.federated_credential_write)
            yield
        finally:
            self._being_written.remove(identity)

    def _refuse_surplus(self, call: Call, properties: dict[str, Any]) -> None:
        identity = str(call.path.parent_id)
        others = [other for other in call.resources.below(identity, self.name) if other["id"].lower() != call.path.key]
        trusted = (properties["issuer"], properties["subject"])
        if any((other["properties"]["issuer"], other["properties"]["subject"]) == trusted for other in others):
            raise errors.bad_request("Issuer and subject combination already exists for this Managed Identity.")
        if len(others) >= MAXIMUM_CREDENTIALS:
            raise refusal("BadRequest too many federated credentials", identity=identity, most=MAXIMUM_CREDENTIALS)


def _trust(properties: dict[str, Any]) -> dict[str, Any]:
    """The three properties of a federated credential, checked; raises 400."""
    errors.refuse_unknown(properties, ("issuer", "subject", "audiences"), "a federated identity credential")
    issuer, subject, audiences = (properties.get(name) for name in ("issuer", "subject", "audiences"))
    if not issuer or urlsplit(issuer).scheme != "https" or len(issuer) > _MAXIMUM_LENGTH:
        raise errors.bad_request(f"Property 'issuer' must be an https URL of at most {_MAXIMUM_LENGTH} characters.")
    if not 0 < len(subject or "") <= _MAXIMUM_LENGTH:
        raise errors.bad_request(f"Property 'subject' must have 1-{_MAXIMUM_LENGTH} characters.")
    if len(audiences or ()) != 1:
        raise errors.bad_request("Property 'audiences' must hold exactly one audience.")
    return {"issuer": issuer, "subject": subject, "audiences": audiences}


def _check_name(rule: re.Pattern[str], name: str, words: str) -> None:
    if not rule.fullmatch(name):
        raise errors.bad_request(f"The name '{name}' is not valid: {words}.")


def types() -> tuple[ResourceType, ...]:
    """The namespace's resource types."""
    return UserAssignedIdentities(), FederatedIdentityCredentials()
