"""ARM's own refusals, word for word where a public source shows them.

Seen in: azure-docs `troubleshooting/error-not-found`, `error-resource-group-not-found`, `error-parent-resource`;
cloudquery issue 6626 (api-version); azure-rest-api-specs issue 8075. `NotEmulated` is the local cloud's own.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from localcloud.azure.arm.path import ArmPath
from localcloud.azure.shared.held import Lock
from localcloud.azure.shared.http import ServiceError
from localcloud.core.store import Document

_API_VERSION: Final = re.compile(r"\d{4}-\d{2}-\d{2}(-preview)?")


def not_emulated(what: str) -> ServiceError:
    """501: Azure would do this, the local cloud does not."""
    return ServiceError(501, "NotEmulated", f"The local cloud does not emulate {what}; see COVERAGE.md.")


def bad_request(message: str) -> ServiceError:
    """400 in a resource provider's plain form."""
    return ServiceError(400, "BadRequest", message)


def invalid_content(problem: str) -> ServiceError:
    """400 for a body that ARM itself cannot parse."""
    return ServiceError(
        400, "InvalidRequestContent", f"The request content was invalid and could not be deserialized: '{problem}'."
    )


def invalid_format(type_name: str, path: Sequence[str], problem: str) -> ServiceError:
    """400 for a member of another JSON type: of Microsoft.Network's own properties, or as ARM itself has it."""
    place = f"{'.'.join(path)}: {problem}"
    if path[0] == "properties" and type_name.startswith("Microsoft.Network/"):
        return ServiceError(400, "InvalidRequestFormat", f"Cannot parse the request. {place}.")
    return invalid_content(place)


def invalid_filter(term: str) -> ServiceError:
    """400 for a `$filter` that ARM cannot parse, or that is not emulated."""
    return ServiceError(400, "InvalidFilterInQueryString", f"Invalid $filter '{term}' specified in the query string.")


def method_not_allowed(method: str) -> ServiceError:
    """405: the resource type has no such method in Azure."""
    return ServiceError(405, "MethodNotAllowed", f"The requested resource does not support http method '{method}'.")


def subscription_not_found(subscription: str) -> ServiceError:
    """404 for a subscription that is not the tenant's."""
    return ServiceError(404, "SubscriptionNotFound", f"The subscription '{subscription}' could not be found.")


def resource_group_not_found(name: str) -> ServiceError:
    """404 for the group itself and for everything in it."""
    return ServiceError(404, "ResourceGroupNotFound", f"Resource group '{name}' could not be found.")


def refuse_deleting(group: Document) -> None:
    """409 for a write in a resource group that is being deleted (azure-cli issue 28679)."""
    if group["properties"]["provisioningState"] == "Deleting":
        raise ServiceError(
            409,
            "ResourceGroupBeingDeleted",
            f"The resource group '{group['name']}' is in deprovisioning state and cannot perform this operation.",
        )


def resource_not_found(path: ArmPath, type_name: str) -> ServiceError:
    """404 for a resource whose group and parent exist."""
    namespace, *types = type_name.split("/")
    nested = "/".join(f"{type_name}/{name}" for type_name, name in zip(types, path.names, strict=True))
    return ServiceError(
        404,
        "ResourceNotFound",
        f"The Resource '{namespace}/{nested}' under resource group '{path.resource_group or '<null>'}' was not found. "
        "For more details please go to https://aka.ms/ARMResourceNotFoundFix",
    )


def parent_not_found(path: ArmPath, type_name: str, operation: str) -> ServiceError:
    """404 for a child of something that does not exist; `operation`: read, write, delete."""
    return ServiceError(
        404,
        "ParentResourceNotFound",
        f"Failed to perform '{operation}' on resource(s) of type '{type_name.partition('/')[2]}', because the parent "
        f"resource '{path.parent_id}' could not be found.",
    )


def refuse_unregistered(path: ArmPath, namespaces: Collection[str]) -> None:
    """409 for a type of a provider that the subscription does not have (`error-register-resource-provider`)."""
    namespace = path.type.partition("/")[0]
    if namespace.lower() in namespaces:
        raise ServiceError(
            409,
            "MissingSubscriptionRegistration",
            f"The subscription is not registered to use namespace '{namespace}'. See https://aka.ms/rps-not-found for "
            "how to register subscriptions.",
        )


def refuse_locked(path: ArmPath, operation: str, locks: Mapping[str, Lock]) -> None:
    """409 for a change at a management lock or below (`lock-resources`); an action counts as a write."""
    kinds = {"delete": (Lock.CAN_NOT_DELETE, Lock.READ_ONLY), "write": (Lock.READ_ONLY,)}.get(operation, ())
    if found := [at for at, lock in locks.items() if lock in kinds and f"{path.id}/".lower().startswith(f"{at}/")]:
        raise ServiceError(
            409,
            "ScopeLocked",
            f"The scope '{path.id}' cannot perform {operation} operation because following scope(s) are locked: "
            f"'{', '.join(found)}'. Please remove the lock and try again.",
        )


def vault_read_only(vault: str) -> ServiceError:
    """403: during a failover nothing in a vault can be changed (azure-docs `disaster-recovery-guidance.md`)."""
    return ServiceError(403, "Forbidden", f"The vault {vault} is in read-only mode.")


def location_required() -> ServiceError:
    """400 for a tracked resource without a location."""
    return ServiceError(400, "LocationRequired", "The location property is required for this definition.")


def location_differs(path: ArmPath, current: str, asked: str) -> ServiceError:
    """409: a write cannot move a resource to another location."""
    return ServiceError(
        409,
        "InvalidResourceLocation",
        f"The resource '{path.name}' already exists in location '{current}' in resource group "
        f"'{path.resource_group}'. A resource with the same name cannot be created in location '{asked}'. Please "
        "select a new resource name.",
    )


def check_api_version(version: str) -> None:
    """Refuse a request without an api-version, before the caller is known (MicrosoftDocs/feedback 2279)."""
    if not version:
        raise ServiceError(
            400,
            "MissingApiVersionParameter",
            "The api-version query parameter (?api-version=) is required for all requests.",
        )
    if not _API_VERSION.fullmatch(version):
        raise ServiceError(
            400, "InvalidApiVersionParameter", f"The api-version '{version}' is invalid. It must be a date: YYYY-MM-DD."
        )
