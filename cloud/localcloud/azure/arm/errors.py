"""ARM's refusals that depend on the request's path, on what is held, or on a provider's own sentence."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from localcloud.azure.arm.path import ArmPath
from localcloud.azure.shared.held import Lock
from localcloud.azure.shared.refusals import ServiceError, refusal
from localcloud.core.store import Document

_API_VERSION: Final = re.compile(r"\d{4}-\d{2}-\d{2}(-preview)?")


def not_emulated(what: str) -> ServiceError:
    """501: Azure would do this, the local cloud does not."""
    return refusal("NotEmulated", what=what)


def bad_request(message: str) -> ServiceError:
    """400 in a resource provider's plain form."""
    return ServiceError(400, "BadRequest", message)


def invalid_content(problem: str) -> ServiceError:
    """400 for a body that ARM itself cannot parse."""
    return refusal("InvalidRequestContent", problem=problem)


def invalid_format(type_name: str, path: Sequence[str], problem: str) -> ServiceError:
    """400 for a member of another JSON type: of Microsoft.Network's own properties, or as ARM itself has it."""
    place = f"{'.'.join(path)}: {problem}"
    if path[0] == "properties" and type_name.startswith("Microsoft.Network/"):
        return refusal("InvalidRequestFormat", place=place)
    return invalid_content(place)


def refuse_unknown(properties: Collection[str], known: Collection[str], place: str) -> None:
    """400 of a resource provider for a property that it does not have; `place` is where it was looked for."""
    if unknown := sorted(set(properties) - set(known)):
        raise bad_request(f"Could not find member '{unknown[0]}' on {place}.")


def refuse_deleting(group: Document) -> None:
    """409 for a write in a resource group that is being deleted."""
    if group["properties"]["provisioningState"] == "Deleting":
        raise refusal("ResourceGroupBeingDeleted", name=group["name"])


def resource_not_found(path: ArmPath, type_name: str) -> ServiceError:
    """404 for a resource whose group and parent exist."""
    namespace, *types = type_name.split("/")
    nested = "/".join(f"{type_name}/{name}" for type_name, name in zip(types, path.names, strict=True))
    return refusal("ResourceNotFound", resource=f"{namespace}/{nested}", group=path.resource_group or "<null>")


def parent_not_found(path: ArmPath, type_name: str, operation: str) -> ServiceError:
    """404 for a child of something that does not exist; `operation`: read, write, delete."""
    words = {"operation": operation, "type": type_name.partition("/")[2], "parent": path.parent_id}
    return refusal("ParentResourceNotFound", **words)


def refuse_unregistered(path: ArmPath, namespaces: Collection[str]) -> None:
    """409 for a type of a provider that the subscription does not have."""
    namespace = path.type.partition("/")[0]
    if namespace.lower() in namespaces:
        raise refusal("MissingSubscriptionRegistration", namespace=namespace)


def refuse_locked(path: ArmPath, operation: str, locks: Mapping[str, Lock]) -> None:
    """409 for a change at a management lock or below; an action counts as a write."""
    kinds = {"delete": (Lock.CAN_NOT_DELETE, Lock.READ_ONLY), "write": (Lock.READ_ONLY,)}.get(operation, ())
    if found := [at for at, lock in locks.items() if lock in kinds and f"{path.id}/".lower().startswith(f"{at}/")]:
        raise refusal("ScopeLocked", scope=path.id, operation=operation, locked=", ".join(found))


def check_api_version(version: str) -> None:
    """Refuse a request without an api-version, before the caller is known (MicrosoftDocs/feedback 2279)."""
    if not version:
        raise refusal("MissingApiVersionParameter")
    if not _API_VERSION.fullmatch(version):
        raise refusal("InvalidApiVersionParameter", version=version)
