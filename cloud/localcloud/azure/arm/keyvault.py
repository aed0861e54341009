"""Microsoft.KeyVault: vaults, soft-deleted vaults, and the secrets that ARM may write but never read back.

Sources: Microsoft.KeyVault REST reference 2023-07-01, azure-docs `key-vault/general/soft-delete-overview`, issues
Azure/ai-hub 241 (purge protection), microsoft/AzureTRE 1446 (purge), Azure/azure-resource-manager-schemas 1494 and
Azure/bicep 6448 (a PUT of what is there already). Creating a secret here needs control-plane rights alone; there is no
DELETE: a secret is deleted through its vault.

Left out: access policies (a vault must use RBAC), moving a vault, private endpoints.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from localcloud.azure.arm import errors
from localcloud.azure.arm.resource_type import Call, ResourceType, StoredType, collection, enumerated, page
from localcloud.azure.keyvault.guard import item_id
from localcloud.azure.keyvault.secrets import (
    DEFAULT_RETENTION_DAYS,
    VAULTS,
    DeletedVault,
    KeyVault,
    SecretChange,
    Secrets,
    SecretVersion,
    Vaults,
)
from localcloud.azure.resource_store import public
from localcloud.azure.shared.refusals import refusal
from localcloud.core.clock import now, rfc3339
from localcloud.core.documents import document
from localcloud.core.store import Document

# The `properties` of a vault: validation, the service's defaults, and what cannot be undone.
#
# Source: Microsoft.KeyVault REST reference 2023-07-01 (VaultProperties), azure-docs `soft-delete-overview`. Purge
# protection is written as true or not at all: `false` is refused even for a new vault (Azure/ai-hub issue 241).

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


def checked_properties(requested: dict[str, Any], current: Document | None, name: str) -> dict[str, Any]:
    """The vault's properties after a PUT of `requested`; raises 400 `BadRequest` (501 for a vault without RBAC)."""
    errors.refuse_unknown(requested, _WRITABLE, "object of type 'VaultProperties'")
    if not requested.get("tenantId"):
        raise errors.bad_request("The parameter 'properties.tenantId' must be specified.")
    sku = requested.get("sku") or {}
    family, name_of_sku = (enumerated(sku.get(key), _CHOICES[key]) for key in _SKU)
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
        raise refusal("BadRequest soft delete off")
    current = before.get("softDeleteRetentionInDays")
    days = requested.get("softDeleteRetentionInDays")
    if days is None:
        return int(current or DEFAULT_RETENTION_DAYS)
    if not isinstance(days, int) or not 7 <= days <= 90:
        raise errors.bad_request('The property "softDeleteRetentionInDays" must be between 7 and 90 days.')
    if current is not None and days != current:
        raise refusal("BadRequest retention changed")
    return days


def _purge_protection(requested: dict[str, Any], before: dict[str, Any]) -> bool:
    if requested.get("enablePurgeProtection") is False:
        raise refusal("BadRequest purge protection off")
    return bool(requested.get("enablePurgeProtection") or before.get("enablePurgeProtection"))


def _network_rules(rules: dict[str, Any]) -> dict[str, Any]:
    """The network rules with the service's defaults; a bare address becomes a /32, as the service prints it."""
    known = ("bypass", "defaultAction", "ipRules", "virtualNetworkRules")
    errors.refuse_unknown(rules, known, "object of type 'NetworkRuleSet'")
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


_NAME: Final = re.compile(r"(?=.{3,24}$)[A-Za-z](?:-?[A-Za-z0-9])*")
_JOIN: Final = "Microsoft.Network/virtualNetworks/subnets/joinViaServiceEndpoint/action"


class KeyVaults(StoredType):
    """Vaults. Live and soft-deleted vaults both occupy their names."""

    name = VAULTS

    async def put(self, call: Call) -> Response:
        resource = self.envelope(call, tracked=True)
        name = call.path.name
        if not _NAME.fullmatch(name):
            raise refusal("VaultNameNotValid", name=name)
        vaults = Vaults(call.resources)
        current = call.current
        deleted = vaults.deleted(name)
        if current is None and call.properties.get("createMode") == "recover":
            if deleted is None or deleted.vault.id.lower() != call.path.key:
                raise refusal("DeletedVaultNotFound", name=name)
            return JSONResponse(self.present(call, vaults.recover(deleted).resource))
        if current is None:
            if vaults.named(name) is not None:
                raise refusal("VaultAlreadyExists", name=name)
            if deleted is not None:
                raise refusal("ConflictError")
        properties = checked_properties(call.properties, current, name)
        self._require_subnets(call, properties)
        system_data = _system_data(call, current)
        seeded = {"seeded": True} if current and current.get("seeded") else {}
        vaults.put({**resource, "properties": properties, "systemData": system_data, **seeded})
        return JSONResponse(self.present(call, self.existing(call)), status_code=200 if current else 201)

    async def list(self, call: Call) -> Response:
        scope = str(call.path.scope)
        return page(call, (self.present(call, resource) for resource in call.resources.below(scope, self.name)))

    async def patch(self, call: Call) -> Response:
        current = self.existing(call)
        properties = checked_properties(merged_properties(current, call.properties), current, current["name"])
        self._require_subnets(call, properties)
        tags = current["tags"] if call.body.get("tags") is None else call.body["tags"]
        changed = {**current, "tags": tags, "properties": properties, "systemData": _system_data(call, current)}
        return JSONResponse(self.present(call, Vaults(call.resources).put(changed).resource))

    async def delete(self, call: Call) -> Response:
        current = call.current
        if current is None:
            return Response(status_code=204)
        Vaults(call.resources).delete(KeyVault(current))
        return Response(status_code=200)

    def present(self, call: Call, resource: Document) -> dict[str, Any]:
        """The vault, with its address in the cloud that was asked."""
        address = KeyVault(resource, call.asked.vault_suffix).uri
        return {**public(resource), "properties": {**resource["properties"], "vaultUri": f"{address}/"}}

    def _require_subnets(self, call: Call, properties: dict[str, Any]) -> None:
        rules = properties.get("networkAcls", {}).get("virtualNetworkRules", [])
        call.require_linked(self.name, _JOIN, [rule["id"] for rule in rules])


class VaultSecrets(ResourceType):
    """Secrets of a vault; no answer has a value.

    A PUT creates a new version unless value, content type, dates and tags are those of the current one.
    """

    name = "Microsoft.KeyVault/vaults/secrets"

    async def get(self, call: Call) -> Response:
        vault, secrets = _vault(call), Secrets(call.cloud.store)
        secret = secrets.find(vault, call.path.name)
        if secret is None:
            raise errors.resource_not_found(call.path, self.name)
        return JSONResponse(_secret_resource(vault, secret.current))

    async def list(self, call: Call) -> Response:
        """Without tags, as in Azure's own example (keyvault 2026-02-01, `listSecrets.json`)."""
        vault = _vault(call)
        secrets = (_secret_resource(vault, secret.current) for secret in Secrets(call.cloud.store).all(vault))
        return page(call, ({name: value for name, value in secret.items() if name != "tags"} for secret in secrets))

    async def put(self, call: Call) -> Response:
        vault, properties = _vault(call), _secret_properties(call)
        secrets = Secrets(call.cloud.store)
        existing = secrets.find(vault, call.path.name)
        change = SecretChange.of(properties.get("attributes"), properties.get("contentType"), call.body.get("tags"))
        if existing is not None and secrets.is_current(existing, properties.get("value"), change):
            return JSONResponse(_secret_resource(vault, existing.current))
        version = secrets.set(vault, call.path.name, properties.get("value"), change)
        return JSONResponse(_secret_resource(vault, version), status_code=201 if existing is None else 200)

    async def patch(self, call: Call) -> Response:
        vault, properties = _vault(call), _secret_properties(call)
        secrets = Secrets(call.cloud.store)
        change = SecretChange.of(properties.get("attributes"), properties.get("contentType"), call.body.get("tags"))
        if "value" in properties:
            version = secrets.set(vault, call.path.name, properties["value"], change)
        else:
            version = secrets.update(vault, call.path.name, None, change)
        return JSONResponse(_secret_resource(vault, version))

    async def delete(self, call: Call) -> Response:
        raise refusal("MethodNotAllowed", method="DELETE")


class DeletedVaults(ResourceType):
    """The soft-deleted vaults of the subscription: list."""

    name = "Microsoft.KeyVault/deletedVaults"

    async def list(self, call: Call) -> Response:
        return collection(_deleted_resource(call, vault) for vault in Vaults(call.resources).all_deleted())


class DeletedVaultsOfLocation(ResourceType):
    """A soft-deleted vault, found by name and location: GET and purge."""

    name = "Microsoft.KeyVault/locations/deletedVaults"

    async def get(self, call: Call) -> Response:
        return JSONResponse(_deleted_resource(call, self._deleted(call)))

    async def action(self, call: Call) -> Response:
        if str(call.path.verb).lower() != "purge":
            return await super().action(call)
        if self._deleted(call).vault.is_purge_protected:
            raise refusal("MethodNotAllowed purge")
        Vaults(call.resources).purge(call.path.name)
        return Response(status_code=200)

    def _deleted(self, call: Call) -> DeletedVault:
        deleted = Vaults(call.resources).deleted(call.path.name)
        if deleted is None or deleted.vault.location != call.path.names[0].lower():
            raise refusal("DeletedVaultNotFound", name=call.path.name)
        return deleted


class ManagedHsms(ResourceType):
    """Managed HSMs, of which there are none: clients that list vaults list them, too."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def list(self, call: Call) -> Response:
        return collection([])


def types() -> tuple[ResourceType, ...]:
    """The namespace's resource types."""
    none = (ManagedHsms(f"Microsoft.KeyVault/{name}") for name in ("managedHSMs", "deletedManagedHSMs"))
    return KeyVaults(), VaultSecrets(), DeletedVaults(), DeletedVaultsOfLocation(), *none


def _vault(call: Call) -> KeyVault:
    resource = call.resources.get(str(call.path.parent_id))
    if resource is None:
        raise errors.parent_not_found(call.path, VaultSecrets.name, "read")
    return KeyVault(resource, call.asked.vault_suffix)


def _secret_properties(call: Call) -> dict[str, Any]:
    errors.refuse_unknown(call.properties, ("value", "contentType", "attributes"), "object of type 'SecretProperties'")
    return call.properties


def _secret_resource(vault: KeyVault, version: SecretVersion) -> dict[str, Any]:
    attributes = {name: getattr(version, name) for name in ("enabled", "nbf", "exp", "created", "updated")}
    properties = {
        "contentType": version.content_type,
        "attributes": {name: value for name, value in attributes.items() if value is not None},
        "secretUri": item_id(vault, "secrets", version, versioned=False),
        "secretUriWithVersion": item_id(vault, "secrets", version),
    }
    return {
        "id": f"{vault.id}/secrets/{version.name}",
        "name": version.name,
        "type": VaultSecrets.name,
        "location": vault.location,
        **({"tags": version.tags} if version.tags else {}),
        "properties": {name: value for name, value in properties.items() if value is not None},
    }


def _deleted_resource(call: Call, deleted: DeletedVault) -> dict[str, Any]:
    vault = deleted.vault
    dates = {"deleted": rfc3339(deleted.deleted_at), "purged": rfc3339(deleted.purge_at)}
    words = {"subscription": call.cloud.subscription_id, "location": vault.location, "name": vault.name}
    shown = document(__file__, "soft-deleted vault", **words, **dates, id=vault.id, tags=vault.resource["tags"])
    if vault.is_purge_protected:
        shown["properties"]["purgeProtectionEnabled"] = True
    return shown


def _system_data(call: Call, current: Document | None) -> dict[str, str]:
    instant, author = rfc3339(now()), call.caller.client_id
    created = current.get("systemData") if current else None
    return {
        "createdBy": created["createdBy"] if created else author,
        "createdByType": "Application",
        "createdAt": created["createdAt"] if created else instant,
        "lastModifiedBy": author,
        "lastModifiedByType": "Application",
        "lastModifiedAt": instant,
    }
