"""Microsoft.Storage: accounts, their blob containers and file shares; blobs are at its endpoint (`azure/blob`).

Sources: azure-rest-api-specs `storage/…/2024-01-01/{storage,blob}.json` (defaults, names), azure-docs
`resource-name-rules`, messages in azure-rest-api-specs issue 11331 (public access) and as users report them to
azure-cli and terraform-provider-azurerm. Left out: another key in the place of one, and shared access signatures.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from localcloud.azure.arm import errors
from localcloud.azure.arm.resource_type import Call, ResourceType, SeededType, WrittenType, enumerated
from localcloud.azure.blob.contents import (
    ACCOUNTS,
    BLOB_SERVICES,
    CONTAINER_NAME,
    CONTAINERS,
    AccountKeys,
    Accounts,
    Blobs,
    allows_anyone,
    new_container,
    time_now,
)
from localcloud.azure.resource_store import public
from localcloud.azure.shared.refusals import ServiceError, refusal
from localcloud.core.documents import document
from localcloud.core.store import Document, Store

_ACCOUNT_NAME: Final = re.compile(r"[a-z0-9]{3,24}")
_FILE_SERVICES: Final = f"{ACCOUNTS}/fileServices"
_KINDS: Final = frozenset({"Storage", "StorageV2", "BlobStorage", "FileStorage", "BlockBlobStorage"})
_SKU_NAME: Final = re.compile(r"(Standard|Premium)(V2)?_([A-Z]+)", re.IGNORECASE)
_PUBLIC_ACCESS: Final = ("None", "Blob", "Container")
_PROPERTIES: Final[Mapping[str, Any]] = document(__file__, "storage settings")


class NamesOfAccounts(ResourceType):
    """Whether an account may have a name: a POST to the provider itself, that of its action `checkNameAvailability`.

    The image registry operator asks with roles at resource groups only.
    """

    name = "Microsoft.Storage"
    read_with_any_role = True

    async def action(self, call: Call) -> Response:
        if str(call.path.verb).lower() != "checknameavailability":
            return await super().action(call)
        name = str(call.body.get("name"))
        if not _ACCOUNT_NAME.fullmatch(name):
            reason, why = "AccountNameInvalid", refusal("AccountNameInvalid", name=name)
        elif Accounts(call.resources).named(name) is not None:
            reason, why = "AlreadyExists", refusal("StorageAccountAlreadyTaken", name=name)
        else:
            return JSONResponse({"nameAvailable": True})
        return JSONResponse({"nameAvailable": False, "reason": reason, "message": why.message})


class StorageAccounts(WrittenType):
    """Storage accounts. Deleting one deletes its containers and blobs."""

    name = ACCOUNTS

    async def put(self, call: Call) -> Response:
        account = self.envelope(call, tracked=True)
        name, current = call.path.name, call.current
        if not _ACCOUNT_NAME.fullmatch(name):
            raise refusal("AccountNameInvalid", name=name)
        if current is None and Accounts(call.resources).named(name) is not None:
            raise refusal("StorageAccountAlreadyTaken", name=name)
        sku, kind = _sku(call.body), enumerated(call.body.get("kind"), _KINDS)
        if kind is None:
            raise errors.bad_request(f"Kind '{call.body.get('kind')}' is not one of {', '.join(sorted(_KINDS))}.")
        before = current["properties"] if current else {}
        made = document(__file__, "storage account", name=name, location=account["location"], now=time_now())
        properties = {**made, **before, **_wanted(call.properties, before)}
        written = {**account, "sku": sku, "kind": kind, "properties": properties}
        call.resources.put(written)
        for service_type in (BLOB_SERVICES, _FILE_SERVICES):
            service = f"{account['id']}/{service_type.rpartition('/')[2]}/default"
            call.resources.put({"id": service, "name": "default", "type": service_type, "properties": {}})
        return JSONResponse(public(written))

    async def patch(self, call: Call) -> Response:
        account = self.existing(call)
        before = account["properties"]
        changed = {
            "tags": call.body.get("tags") or {} if "tags" in call.body else account["tags"],
            "sku": _sku(call.body) if "sku" in call.body else account["sku"],
            "properties": {**before, **_wanted(call.properties, before)},
        }
        return JSONResponse(public(call.resources.put({**account, **changed})))

    def before_deletion(self, call: Call, resource: Document) -> None:
        empty_account(call.cloud.store, resource["name"])

    async def action(self, call: Call) -> Response:
        account = self.existing(call)
        if str(call.path.verb).lower() != "listkeys":
            return await super().action(call)
        # Keys for Kerberos, which only an account in a domain has.
        if (expanded := call.query.get("$expand", "kerb")) != "kerb":
            raise errors.not_emulated(f"$expand={expanded} of listKeys")
        created = account["properties"].get("keyCreationTime", {})
        keys = AccountKeys(call.cloud.store).of(account["name"])
        return JSONResponse(
            {
                "keys": [
                    {"creationTime": created.get(name), "keyName": name, "value": value, "permissions": "FULL"}
                    for name, value in keys.items()
                ]
            }
        )


def empty_account(store: Store, name: str) -> None:
    """Remove the blobs and keys of an account."""
    Blobs(store).delete_below(f"{name}/")
    AccountKeys(store).forget(name)


class BlobContainers(WrittenType):
    """Blob containers; one of backups is seeded. Deleting one deletes its blobs."""

    name = CONTAINERS

    async def put(self, call: Call) -> Response:
        container = self.envelope(call, tracked=False)
        if not CONTAINER_NAME.fullmatch(call.path.name):
            raise refusal("InvalidResourceName container")
        errors.refuse_unknown(call.properties, ("publicAccess", "metadata"), "a blob container")
        asked_access = call.properties.get("publicAccess", "None")
        access = enumerated(asked_access, _PUBLIC_ACCESS)
        if access is None:
            raise errors.bad_request(f"PublicAccess '{asked_access}' is not one of {', '.join(_PUBLIC_ACCESS)}.")
        account = Accounts(call.resources).named(call.path.names[0])
        if access != "None" and not (account and allows_anyone(account)):
            raise refusal("PublicAccessNotPermitted")
        metadata = call.properties.get("metadata")
        asked = {"publicAccess": access, **({"metadata": metadata} if metadata else {})}
        return self.written(call, {**container, "properties": {**new_container(), **asked}})

    def not_found(self, call: Call) -> ServiceError:
        return refusal("ContainerNotFound")

    def before_deletion(self, call: Call, resource: Document) -> None:
        account, _, name = call.path.names
        # The names of both are in lower case, a path in any.
        Blobs(call.cloud.store).delete_below(f"{account}/{name}/".lower())


class FileShares(WrittenType):
    """File shares without content."""

    name = f"{_FILE_SERVICES}/shares"

    async def put(self, call: Call) -> Response:
        share = self.envelope(call, tracked=False)
        if not CONTAINER_NAME.fullmatch(call.path.name):
            raise refusal("InvalidResourceName container")
        kept = {"shareQuota": 5120, "enabledProtocols": "SMB", "accessTier": "TransactionOptimized", **call.properties}
        return self.written(call, {**share, "properties": {**kept, "lastModifiedTime": time_now()}})


def _sku(body: Mapping[str, Any]) -> dict[str, str]:
    known = _SKU_NAME.fullmatch((body.get("sku") or {}).get("name") or "")
    if known is None:
        raise errors.bad_request("Required property 'sku.name' is missing, or is not a SKU of a storage account.")
    return {
        "name": f"{known[1].capitalize()}{(known[2] or '').upper()}_{known[3].upper()}",
        "tier": known[1].capitalize(),
    }


def _wanted(properties: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """The requested properties; a property that the request leaves out stays, or gets its default."""
    errors.refuse_unknown(properties, _PROPERTIES, "object of type 'StorageAccountProperties'")
    rules: Mapping[str, Any] = properties.get("networkAcls") or {"defaultAction": "Allow"}
    if "defaultAction" not in rules or not all("value" in rule for rule in rules.get("ipRules") or ()):
        raise errors.invalid_content("properties.networkAcls: defaultAction, and value of each rule, are required")
    filled = {name: properties.get(name, before.get(name, default)) for name, default in _PROPERTIES.items()}
    return {name: value for name, value in filled.items() if value is not None}


def types() -> tuple[ResourceType, ...]:
    """The namespace's resource types."""
    return (
        NamesOfAccounts(),
        StorageAccounts(),
        SeededType(BLOB_SERVICES),
        BlobContainers(),
        SeededType(_FILE_SERVICES),
        FileShares(),
    )
