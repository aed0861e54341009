"""Resource ids as ARM writes them."""

from __future__ import annotations

import re
from typing import Final

_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def is_uuid(value: object) -> bool:
    """Whether this is the text of a UUID, as Azure prints it but for the letter case."""
    return isinstance(value, str) and _UUID.fullmatch(value) is not None


def subscription_id(subscription: str) -> str:
    return f"/subscriptions/{subscription}"


def resource_group_id(subscription: str, resource_group: str) -> str:
    return f"{subscription_id(subscription)}/resourceGroups/{resource_group}"


def resource_id(subscription: str, resource_group: str, resource_type: str, *names: str) -> str:
    """ARM id of a resource; a child type (`vaults/secrets`) takes one name per segment."""
    namespace, *types = resource_type.split("/")
    pairs = [f"{kind}/{name}" for kind, name in zip(types, names, strict=True)]
    return "/".join([resource_group_id(subscription, resource_group), "providers", namespace, *pairs])


def in_lower_case(full_id: str) -> str:
    """An ARM id as managed identities and AKS print it, with `resourcegroups` instead of `resourceGroups`."""
    return full_id.replace("/resourceGroups/", "/resourcegroups/")


def role_definition_id(subscription: str, guid: str) -> str:
    """ARM id of a role definition, built in or custom."""
    return f"{subscription_id(subscription)}/providers/Microsoft.Authorization/roleDefinitions/{guid}"
