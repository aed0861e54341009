"""The `properties` of a vault: validation, the service's defaults, and what cannot be undone.

Source: Microsoft.KeyVault REST reference 2023-07-01 (VaultProperties), azure-docs `soft-delete-overview`. Purge
protection is written as true or not at all: `false` is refused even for a new vault (Azure/ai-hub issue 241).
"""

from __future__ import annotations

import ipaddress
from typing import Any, Final

from localcloud.azure.arm import errors
from localcloud.azure.arm.resource_type import enumerated
from localcloud.azure.keyvault.vaults import DEFAULT_RETENTION_DAYS
from localcloud.azure.shared.understood import ANY, Members
from localcloud.core.store import Document

_WRITABLE: Final = frozenset(
    {"tenantId", "sku", "accessPolicies", "enableRbacAuthorization", "createMode", "vaultUri", "provisioningState"}
    | {"enabledForDeployment", "enabledForDiskEncryption", "enabledForTemplateDeployment"}
    | {"enableSoftDelete", "softDeleteRetentionInDays", "enablePurgeProtection", "networkAcls", "publicNetworkAccess"}
)
_SKU: Final = ("family", "name")
_CHOICES: Final = {
    "family": ("A",),
    "name": ("standard", "premium"),
    "bypass": ("AzureServices", "None"),
    "defaultAction": ("Allow", "Deny"),
    "publicNetworkAccess": ("Enabled", "Disabled"),
}
PROPERTIES: Members = {
    ANY: None,
    "sku": dict.fromkeys(_SKU),
    "networkAcls": {
        ANY: None,
        "ipRules": {"value": None},
        "virtualNetworkRules": dict.fromkeys(("id", "ignoreMissingVnetServiceEndpoint", "state")),
    },
}
"""The members in a vault's properties; the names of the properties themselves are checked with their values."""


def checked_properties(requested: dict[str, Any], current: Document | None, name: str) -> dict[str, Any]:
    """The vault's properties after a PUT of `requested`; raises 400 `BadRequest` (501 for a vault without RBAC)."""
    if unknown := sorted(set(requested) - _WRITABLE):
        raise errors.bad_request(f"Could not find member '{unknown[0]}' on object of type 'VaultProperties'.")
    if not requested.get("tenantId"):
        raise errors.bad_request("The parameter 'properties.tenantId' must be specified.")
    sku = requested.get("sku")
    family, name_of_sku = (enumerated(sku.get(key), _CHOICES[key]) if isinstance(sku, dict) else None for key in _SKU)
    if family is None or name_of_sku is None:
        raise errors.bad_request("The parameter 'properties.sku' must be family 'A', name 'standard' or 'premium'.")
    before = current["properties"] if current else {}
    if not requested.get("enableRbacAuthorization", before.get("enableRbacAuthorization")):
        raise errors.not_emulated("vaults with access policies: set enableRbacAuthorization")
    properties = {
        "sku": {"family": family, "name": name_of_sku},
        "tenantId": str(requested["tenantId"]).lower(),
        "accessPolicies": requested.get("accessPolicies") or [],
        "enabledForDeployment": bool(requested.get("enabledForDeployment")),
        "enableSoftDelete": True,
        "softDeleteRetentionInDays": _retention(requested, before),
        "enableRbacAuthorization": True,
        "vaultUri": f"https://{name.lower()}.vault.azure.net/",
        "provisioningState": "Succeeded",
        "publicNetworkAccess": _choice(requested, "publicNetworkAccess", "Enabled"),
    }
    properties |= {
        option: requested[option]
        for option in ("enabledForDiskEncryption", "enabledForTemplateDeployment")
        if requested.get(option) is not None
    }
    if _purge_protection(requested, before):
        properties["enablePurgeProtection"] = True
    if requested.get("networkAcls") is not None:
        properties["networkAcls"] = _network_rules(requested["networkAcls"])
    return properties


def merged_properties(current: Document, requested: dict[str, Any]) -> dict[str, Any]:
    """The properties of the PUT that is equivalent to a PATCH of `requested`."""
    return {**current["properties"], **{name: value for name, value in requested.items() if value is not None}}


def _retention(requested: dict[str, Any], before: dict[str, Any]) -> int:
    if requested.get("enableSoftDelete") is False:
        raise errors.bad_request(
            'The property "enableSoftDelete" can be set to false only for creating new vault. Enabling the \'soft '
            "delete' functionality is an irreversible action."
        )
    current = before.get("softDeleteRetentionInDays")
    days = requested.get("softDeleteRetentionInDays")
    if days is None:
        return int(current or DEFAULT_RETENTION_DAYS)
    if not isinstance(days, int) or not 7 <= days <= 90:
        raise errors.bad_request('The property "softDeleteRetentionInDays" must be between 7 and 90 days.')
    if current is not None and days != current:
        raise errors.bad_request(
            'The property "softDeleteRetentionInDays" has been set already and it can\'t be modified.'
        )
    return days


def _purge_protection(requested: dict[str, Any], before: dict[str, Any]) -> bool:
    if requested.get("enablePurgeProtection") is False:
        raise errors.bad_request(
            'The property "enablePurgeProtection" cannot be set to false. Enabling the purge protection for a vault is '
            "an irreversible action."
        )
    return bool(requested.get("enablePurgeProtection") or before.get("enablePurgeProtection"))


def _network_rules(rules: Any) -> dict[str, Any]:
    """The network rules with the service's defaults; a bare address becomes a /32, as the service prints it."""
    if not isinstance(rules, dict):
        raise errors.bad_request("The parameter 'properties.networkAcls' must be an object.")
    if unknown := sorted(set(rules) - {"bypass", "defaultAction", "ipRules", "virtualNetworkRules"}):
        raise errors.bad_request(f"Could not find member '{unknown[0]}' on object of type 'NetworkRuleSet'.")
    return {
        "bypass": _choice(rules, "bypass", "AzureServices"),
        "defaultAction": _choice(rules, "defaultAction", "Allow"),
        "ipRules": [{"value": _address_range(rule.get("value"))} for rule in rules.get("ipRules") or []],
        "virtualNetworkRules": list(rules.get("virtualNetworkRules") or []),
    }


def _address_range(text: object) -> str:
    try:
        return str(ipaddress.IPv4Network(str(text)))
    except ValueError:
        raise errors.bad_request(f"The IP rule '{text}' is not an IPv4 address or CIDR range.") from None


def _choice(properties: dict[str, Any], name: str, default: str) -> str:
    """One of the values of an enumeration, compared without case, in Azure's own letter case."""
    value = str(properties.get(name) or default)
    if (choice := enumerated(value, _CHOICES[name])) is not None:
        return choice
    raise errors.bad_request(f"The value '{value}' of '{name}' is not one of {', '.join(_CHOICES[name])}.")
