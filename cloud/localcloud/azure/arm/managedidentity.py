"""Microsoft.ManagedIdentity: user-assigned identities and their federated credentials.

Sources: the provider's REST reference (names, 20 credentials, `resourcegroups` in lower case in every id it prints),
azure-docs `workload-identity-federation-considerations` (unique issuer and subject, no concurrent writes), messages in
Azure/bicep-registry-modules issue 1447 and Azure/bicep-types-az issue 2029.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.responses import JSONResponse, Response

from localcloud.azure.arm import errors
from localcloud.azure.arm.path import ArmPath
from localcloud.azure.arm.resource_type import TRACKED, Call, ResourceType, WrittenType, page
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.resource_store import Resources, public
from localcloud.azure.shared.http import ServiceError
from localcloud.azure.shared.understood import Understood
from localcloud.core.arm_ids import in_lower_case
from localcloud.core.store import Document

IDENTITIES: Final = "Microsoft.ManagedIdentity/userAssignedIdentities"
FEDERATED_CREDENTIALS: Final = f"{IDENTITIES}/federatedIdentityCredentials"
MAXIMUM_CREDENTIALS: Final = 20
_IDENTITY_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{2,127}")
_CREDENTIAL_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{2,119}")
# The service's own properties of an identity, which a client may send back.
_IDS: Final = dict.fromkeys(("tenantId", "principalId", "clientId"))
_MAXIMUM_LENGTH: Final = 600  # of issuer, subject and audience each


class _ManagedIdentityType(WrittenType):
    def canonical_id(self, path: ArmPath) -> str:
        return in_lower_case(super().canonical_id(path))


class UserAssignedIdentities(_ManagedIdentityType):
    """Managed identities. Deleting one deletes its principal and leaves the principal's role assignments behind."""

    name = IDENTITIES
    reads = MappingProxyType(
        {
            "PUT": Understood.of(body={**TRACKED, "properties": _IDS}),
            "PATCH": Understood.of(body={**TRACKED, "properties": _IDS}),
        }
    )

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
    reads = MappingProxyType({"PUT": Understood.of(body="properties"), "list": Understood.of("$top $skiptoken")})

    def __init__(self) -> None:
        self._being_written: set[str] = set()

    def not_found(self, call: Call) -> ServiceError:
        return ServiceError(
            404, "NotFound", f"The federated identity credential '{call.path.name}' could not be found."
        )

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
            raise ServiceError(
                409,
                "ConcurrentFederatedIdentityCredentialsWritesForSingleManagedIdentity",
                "Too many Federated Identity Credentials are written concurrently for the managed identity "
                f"'{identity}'. Concurrent Federated Identity Credentials writes under the same managed identity are "
                "not supported.",
            )
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
            raise errors.bad_request(
                f"Too many Federated Identity Credentials for the managed identity '{identity}': at most "
                f"{MAXIMUM_CREDENTIALS} are allowed."
            )


def _trust(properties: dict[str, Any]) -> dict[str, Any]:
    """The three properties of a federated credential, checked; raises 400."""
    if unknown := sorted(set(properties) - {"issuer", "subject", "audiences"}):
        raise errors.bad_request(f"Could not find member '{unknown[0]}' on a federated identity credential.")
    issuer, subject, audiences = (properties.get(name) for name in ("issuer", "subject", "audiences"))
    if not isinstance(issuer, str) or urlsplit(issuer).scheme != "https" or len(issuer) > _MAXIMUM_LENGTH:
        raise errors.bad_request(f"Property 'issuer' must be an https URL of at most {_MAXIMUM_LENGTH} characters.")
    if not isinstance(subject, str) or not 0 < len(subject) <= _MAXIMUM_LENGTH:
        raise errors.bad_request(f"Property 'subject' must have 1-{_MAXIMUM_LENGTH} characters.")
    if not isinstance(audiences, list) or len(audiences) != 1 or not isinstance(audiences[0], str):
        raise errors.bad_request("Property 'audiences' must hold exactly one audience.")
    return {"issuer": issuer, "subject": subject, "audiences": audiences}


def _check_name(rule: re.Pattern[str], name: str, words: str) -> None:
    if not rule.fullmatch(name):
        raise errors.bad_request(f"The name '{name}' is not valid: {words}.")


def types() -> tuple[ResourceType, ...]:
    """The namespace's resource types."""
    return UserAssignedIdentities(), FederatedIdentityCredentials()
