"""Key Vault's data plane: secrets, RSA keys and certificates, for the clients of Microsoft's SDKs and the CSI provider.

Network rules of a vault are stored by ARM and not enforced here: every caller is on this machine. Access policies are
not emulated, ARM refuses such a vault. Source: Key Vault REST 7.4 and the paths that azure-keyvault-secrets, -keys and
-certificates use. Left out: backup, deleting keys and changing their attributes, signing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

from starlette.applications import Starlette
from starlette.routing import BaseRoute

from localcloud.azure.keyvault import errors, guard
from localcloud.azure.keyvault.certificates import Certificates
from localcloud.azure.keyvault.guard import LISTED, Handler, VaultCall, VaultGuard
from localcloud.azure.keyvault.keys import Keys, KeyVersion
from localcloud.azure.keyvault.secrets import VAULTS, DeletedSecret, KeyVault, SecretChange, Secrets, Vaults
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.resource_store import Resources
from localcloud.azure.shared.http import service_app
from localcloud.azure.shared.refusals import ServiceError, refusal
from localcloud.core.store import Document

# Recovers soft-deleted vaults and secrets by ARM id, as `az keyvault [secret] recover` does on Azure.

_SECRETS: Final = f"{VAULTS}/secrets"
_ID: Final = re.compile(
    rf"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/{re.escape(VAULTS)}/([^/]+)(?:/secrets/([^/]+))?",
    re.IGNORECASE,
)


class NotDeletedError(LookupError):
    """Nothing soft-deleted has this resource id."""


def recover(cloud: LocalAzure, resource_id: str) -> None:
    """Recover a vault or a secret by its resource id; raises NotDeletedError, and ValueError for another id."""
    match = _ID.fullmatch(resource_id)
    if match is None:
        raise ValueError(f"{resource_id} is neither a {VAULTS} nor a {_SECRETS}")
    name, secret = match.groups()
    vaults = Vaults(Resources(cloud.store))
    if secret is None:
        deleted = vaults.deleted(name)
        if deleted is None or deleted.vault.id.lower() != resource_id.lower():
            raise NotDeletedError(f"no deleted vault {resource_id}")
        vaults.recover(deleted)
        return
    vault = vaults.named(name)
    if vault is None:
        raise NotDeletedError(f"no vault {name}")
    try:
        Secrets(cloud.store).recover(vault, secret)
    except ServiceError:
        raise NotDeletedError(f"no deleted secret {resource_id}") from None


Found = TypeVar("Found")
Items: TypeAlias = list[dict[str, Any]]


def _shown(find: Callable[[KeyVault, str], Found], show: Callable[[KeyVault, Found], dict[str, Any]]) -> Handler:
    """Answers with what is found in the vault by the name in the path."""
    return lambda call: show(call.vault, find(call.vault, call.name))


def _listed(find: Callable[[KeyVault], list[Found]], show: Callable[[KeyVault, Found], dict[str, Any]]) -> Handler:
    """Answers with everything of a kind in the vault."""
    return lambda call: [show(call.vault, found) for found in find(call.vault)]


# The data plane's operations on secrets.

_SEE: Final = "secrets/readMetadata/action"


class SecretPlane:
    def __init__(self, guard: VaultGuard) -> None:
        self._guard = guard
        self._secrets = Secrets(guard.store)

    def routes(self) -> Sequence[BaseRoute]:
        route, one, deleted = self._guard.route, "/secrets/{name}", "/deletedsecrets/{name}"
        version = one + "/{version:path}"
        return [
            route("GET", "/secrets", self.list_secrets, _SEE, LISTED),
            route("GET", f"{one}/versions", self.list_secret_versions, _SEE, LISTED),
            route("GET", one, self.get_secret, "secrets/getSecret/action"),
            route("GET", version, self.get_secret, "secrets/getSecret/action"),
            route("PUT", one, self.set_secret, "secrets/setSecret/action", body="set secret"),
            route("PATCH", one, self.update_secret, "secrets/update/action", body="update secret"),
            route("PATCH", version, self.update_secret, "secrets/update/action", body="update secret"),
            route("DELETE", one, _shown(self._secrets.delete, guard.deleted_secret), "secrets/delete"),
            route("GET", "/deletedsecrets", self.list_deleted_secrets, _SEE, LISTED),
            route("GET", deleted, _shown(self._deleted, guard.deleted_secret), _SEE),
            route("POST", f"{deleted}/recover", self.recover_secret, "secrets/recover/action"),
            route("DELETE", deleted, self.purge_secret, "secrets/purge/action"),
        ]

    def list_secrets(self, call: VaultCall) -> Items:
        secrets = self._secrets.all(call.vault)
        return [guard.secret_item(call.vault, secret.current, versioned=False) for secret in secrets]

    def list_secret_versions(self, call: VaultCall) -> Items:
        secret = self._secrets.find(call.vault, call.name)
        # In the order of their random names: seen in Azure/azure-sdk-for-python 35923 ("not chronological").
        versions = sorted(secret.versions, key=lambda secret: secret.version) if secret else []
        return [guard.secret_item(call.vault, version) for version in versions]

    def get_secret(self, call: VaultCall) -> dict[str, Any]:
        version, secret = call.part("version"), self._secrets.find(call.vault, call.name)
        secret_version = secret.at(version) if secret else None
        if secret_version is None:
            raise errors.not_found("secret", call.name, version)
        if not secret_version.enabled:
            raise refusal("Forbidden disabled secret")
        return guard.secret_bundle(call.vault, secret_version, self._secrets.value(secret_version))

    def set_secret(self, call: VaultCall) -> dict[str, Any]:
        set_ = self._secrets.set(call.vault, call.name, call.body.get("value"), _change(call.body))
        return guard.secret_bundle(call.vault, set_, self._secrets.value(set_))

    def update_secret(self, call: VaultCall) -> dict[str, Any]:
        updated = self._secrets.update(call.vault, call.name, call.part("version"), _change(call.body))
        return guard.secret_item(call.vault, updated)

    def list_deleted_secrets(self, call: VaultCall) -> Items:
        # A certificate's secret is deleted, recovered and purged with the certificate.
        secrets = [deleted for deleted in self._secrets.all_deleted(call.vault) if not deleted.secret.current.managed]
        return [guard.deleted_secret(call.vault, deleted, versioned=False) for deleted in secrets]

    def recover_secret(self, call: VaultCall) -> dict[str, Any]:
        self._deleted(call.vault, call.name)
        return guard.secret_item(call.vault, self._secrets.recover(call.vault, call.name).current)

    def purge_secret(self, call: VaultCall) -> None:
        self._deleted(call.vault, call.name)
        self._secrets.purge(call.vault, call.name)

    def _deleted(self, vault: KeyVault, name: str) -> DeletedSecret:
        """The soft-deleted secret of this name, unless it belongs to a certificate; raises 404."""
        deleted = self._secrets.find_deleted(vault, name)
        if deleted is None or deleted.secret.current.managed:
            raise errors.not_found("secret", name)
        return deleted


def _change(body: Document) -> SecretChange:
    return SecretChange.of(body.get("attributes"), body.get("contentType"), body.get("tags"))


# The data plane's operations on keys, those of certificates included.

# The operation as `key_ops` has it, the verb of its data action, and whether it uses the public half. Of an asymmetric
# key, a reader of that half can use it: `keys/read` opens such an operation as well (text of the operations in Azure's
# own list, AzAdvertizer role page 12338af0, 2024-09-19).
_OPERATIONS: Final = {
    "encrypt": ("encrypt", "encrypt", True),
    "wrapkey": ("wrapKey", "wrap", True),
    "decrypt": ("decrypt", "decrypt", False),
    "unwrapkey": ("unwrapKey", "unwrap", False),
}


class KeyPlane:
    def __init__(self, guard: VaultGuard) -> None:
        self._guard = guard
        self._keys = Keys(guard.store)
        self._certificates = Certificates(guard.store)

    def routes(self) -> Sequence[BaseRoute]:
        route, one = self._guard.route, "/keys/{name}"
        rotation = _shown(self._keys.find, guard.rotation_policy)
        return [
            route("GET", "/keys", self.list_keys, "keys/read", LISTED),
            route("GET", f"{one}/versions", self.list_key_versions, "keys/read", LISTED),
            route("GET", f"{one}/rotationpolicy", rotation, "keyrotationpolicies/read"),
            route("GET", one, self.get_key, "keys/read"),
            route("GET", one + "/{version:path}", self.get_key, "keys/read"),
            route("POST", f"{one}/create", self.create_key, "keys/create/action", body="create key"),
            route("POST", one + "/{operation}", self.use_key, None, body="use key", changes=False),
            route("POST", one + "/{version:path}/{operation}", self.use_key, None, body="use key", changes=False),
        ]

    def list_keys(self, call: VaultCall) -> Items:
        own = {key.name.lower(): key for key in self._keys.all(call.vault)}
        certificates = self._certificates.all(call.vault)
        of_certificates = (self._certificates.key(call.vault, certificate.name, None) for certificate in certificates)
        keys = {**{key.name.lower(): key for key in of_certificates}, **own}
        return [guard.key_item(call.vault, keys[name], versioned=False) for name in sorted(keys)]

    def list_key_versions(self, call: VaultCall) -> Items:
        versions = self._keys.versions(call.vault, call.name) or self._of_certificate(call)
        return [guard.key_item(call.vault, version) for version in versions]

    def get_key(self, call: VaultCall) -> dict[str, Any]:
        key = self._find(call)
        return guard.key_bundle(call.vault, key, self._keys.public_numbers(key))

    def create_key(self, call: VaultCall) -> dict[str, Any]:
        created = self._keys.create(call.vault, call.name, call.body)
        return guard.key_bundle(call.vault, created, self._keys.public_numbers(created))

    def use_key(self, call: VaultCall) -> dict[str, Any]:
        operation = call.part("operation")
        if operation not in _OPERATIONS:
            raise errors.not_emulated(f"{call.request.method} {call.request.url.path}")
        name, verb, is_public = _OPERATIONS[operation]
        self._guard.require(call, f"keys/{verb}/action", *(["keys/read"] if is_public else []))
        use = self._keys.encrypt if is_public else self._keys.decrypt
        key = self._find(call)
        key.require(name)
        result = use(key, call.body.get("alg"), call.body.get("value"))
        return {"kid": guard.item_id(call.vault, "keys", key), "value": result}

    def _find(self, call: VaultCall) -> KeyVersion:
        """The key that the path names; raises 404."""
        version = call.part("version")
        if not self._keys.versions(call.vault, call.name):
            try:
                return self._certificates.key(call.vault, call.name, version)
            except ServiceError:
                pass
        return self._keys.find(call.vault, call.name, version)

    def _of_certificate(self, call: VaultCall) -> list[KeyVersion]:
        try:
            versions = self._certificates.versions(call.vault, call.name)
        except ServiceError:
            return []
        return [self._certificates.key(call.vault, call.name, version.version) for version in versions]


# The data plane's operations on certificates.

_READ: Final = "certificates/read"


class CertificatePlane:
    def __init__(self, guard: VaultGuard) -> None:
        self._guard = guard
        self._certificates = Certificates(guard.store)

    def routes(self) -> Sequence[BaseRoute]:
        route, one, deleted = self._guard.route, "/certificates/{name}", "/deletedcertificates/{name}"
        listed, known, deleted_item = f"{LISTED} includepending", self._certificates, guard.deleted_certificate_item
        make = "certificates/create/action"
        recovered = _shown(known.recover, guard.certificate_bundle)
        unversioned = partial(guard.certificate_item, versioned=False)
        return [
            route("GET", "/certificates", _listed(known.all, unversioned), _READ, listed),
            route("GET", "/certificates/contacts", _contacts, "certificatecontacts/write"),
            # None is set up; `Self` and `Unknown` are in no list.
            route("GET", "/certificates/issuers", lambda _: [], "certificatecas/read", LISTED),
            route("GET", "/certificates/issuers/{issuer}", _issuer, "certificatecas/read"),
            route("POST", f"{one}/create", self.create, make, body="create certificate", status=202),
            route("POST", f"{one}/import", self.import_, "certificates/import/action", body="import certificate"),
            route("GET", f"{one}/pending", _shown(known.find, guard.certificate_operation), _READ),
            route("GET", f"{one}/policy", _shown(known.find, guard.certificate_policy), _READ),
            route("GET", f"{one}/versions", self.versions, _READ, LISTED),
            route("GET", one, self.get, _READ),
            route("GET", one + "/{version:path}", self.get, _READ),
            route("DELETE", one, _shown(known.delete, guard.deleted_certificate), "certificates/delete"),
            route("GET", "/deletedcertificates", _listed(known.all_deleted, deleted_item), _READ, listed),
            route("GET", deleted, _shown(known.find_deleted, guard.deleted_certificate), _READ),
            route("POST", f"{deleted}/recover", recovered, "certificates/recover/action"),
            route("DELETE", deleted, lambda call: known.purge(call.vault, call.name), "certificates/purge/action"),
        ]

    def get(self, call: VaultCall) -> dict[str, Any]:
        certificate = self._certificates.find(call.vault, call.name, call.part("version"))
        return guard.certificate_bundle(call.vault, certificate)

    def versions(self, call: VaultCall) -> Items:
        versions = self._certificates.versions(call.vault, call.name)
        ordered = sorted(versions, key=lambda version: version.version)  # as those of secrets
        return [guard.certificate_item(call.vault, version) for version in ordered]

    def create(self, call: VaultCall) -> dict[str, Any]:
        certificate = self._certificates.create(call.vault, call.name, _policy(call.body), _change(call.body))
        return guard.certificate_operation(call.vault, certificate, "inProgress")

    def import_(self, call: VaultCall) -> dict[str, Any]:
        body = call.body
        certificate = self._certificates.import_(
            call.vault, call.name, (body.get("value"), body.get("pwd")), _policy(body), _change(body)
        )
        return guard.certificate_bundle(call.vault, certificate)


def _contacts(call: VaultCall) -> dict[str, Any]:
    """No contacts (azure-keyvault-emulator issue 246 has the real answer)."""
    return {"id": f"{call.vault.uri}/certificates/contacts", "contacts": []}


def _issuer(call: VaultCall) -> dict[str, Any]:
    raise refusal("CertificateIssuerNotFound", name=call.part("issuer"))


def _policy(body: Document) -> Mapping[str, Any]:
    policy = body.get("policy")
    if policy is not None and not isinstance(policy, Mapping):
        raise errors.bad_parameter("Property policy has invalid value: an object is expected.")
    return {name: value for name, value in (policy or {}).items() if value is not None}


def app(cloud: LocalAzure) -> Starlette:
    """The data plane of every vault of the local cloud, to be served over TLS."""
    guard = VaultGuard(cloud)
    planes = (SecretPlane(guard), KeyPlane(guard), CertificatePlane(guard))
    routes = [route for plane in planes for route in plane.routes()]
    return service_app("keyvault", routes, faults=cloud.faults, holder=cloud.holder, render=errors.render)
