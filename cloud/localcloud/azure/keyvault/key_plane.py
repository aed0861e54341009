"""The data plane's operations on keys, those of certificates included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from localcloud.azure.keyvault import errors, present
from localcloud.azure.keyvault.certificates import Certificates
from localcloud.azure.keyvault.errors import VaultError
from localcloud.azure.keyvault.guard import LISTED, VaultCall, VaultGuard, page
from localcloud.azure.keyvault.keys import Keys, KeyVersion
from localcloud.azure.shared.understood import Members

_MADE: Members = dict.fromkeys(
    ("kty", "key_size", "key_ops", "attributes", "tags", "release_policy", "crv", "public_exponent")
)
_USED: Members = dict.fromkeys(("alg", "value"))
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
    """Keys and their operations."""

    def __init__(self, guard: VaultGuard) -> None:
        self._guard = guard
        self._keys = Keys(guard.store)
        self._certificates = Certificates(guard.store)

    def routes(self) -> Sequence[BaseRoute]:
        """Its routes."""
        route, one = self._guard.route, "/keys/{name}"
        return [
            route("GET", "/keys", self.list_keys, "keys/read", LISTED),
            route("GET", f"{one}/versions", self.list_key_versions, "keys/read", LISTED),
            route("GET", f"{one}/rotationpolicy", self.get_rotation_policy, "keyrotationpolicies/read"),
            route("GET", one, self.get_key, "keys/read"),
            route("GET", one + "/{version:path}", self.get_key, "keys/read"),
            route("POST", f"{one}/create", self.create_key, "keys/create/action", body=_MADE),
            route("POST", one + "/{operation}", self.use_key, None, body=_USED, changes=False),
            route("POST", one + "/{version:path}/{operation}", self.use_key, None, body=_USED, changes=False),
        ]

    async def list_keys(self, call: VaultCall) -> Response:
        own = {key.name.lower(): key for key in self._keys.all(call.vault)}
        certificates = self._certificates.all(call.vault)
        of_certificates = (self._certificates.key(call.vault, certificate.name, None) for certificate in certificates)
        keys = {**{key.name.lower(): key for key in of_certificates}, **own}
        return page(call, [present.key_item(call.vault, keys[name], versioned=False) for name in sorted(keys)])

    async def list_key_versions(self, call: VaultCall) -> Response:
        versions = self._keys.versions(call.vault, call.name) or self._of_certificate(call)
        return page(call, [present.key_item(call.vault, version, versioned=True) for version in versions])

    async def get_key(self, call: VaultCall) -> Response:
        key = self._find(call)
        return JSONResponse(present.key_bundle(call.vault, key, self._keys.public_numbers(key)))

    async def create_key(self, call: VaultCall) -> Response:
        created = self._keys.create(call.vault, call.name, call.body)
        return JSONResponse(present.key_bundle(call.vault, created, self._keys.public_numbers(created)))

    async def use_key(self, call: VaultCall) -> Response:
        operation = call.part("operation")
        if operation not in _OPERATIONS:
            raise errors.not_emulated(f"{call.request.method} {call.request.url.path}")
        name, verb, is_public = _OPERATIONS[operation]
        self._guard.require(call, f"keys/{verb}/action", *(["keys/read"] if is_public else []))
        use = self._keys.encrypt if is_public else self._keys.decrypt
        key = self._find(call)
        key.require(name)
        result = use(key, call.body.get("alg"), call.body.get("value"))
        return JSONResponse({"kid": present.item_id(call.vault, "keys", key), "value": result})

    async def get_rotation_policy(self, call: VaultCall) -> Response:
        return JSONResponse(present.rotation_policy(call.vault, self._keys.find(call.vault, call.name, None)))

    def _find(self, call: VaultCall) -> KeyVersion:
        """The key that the path names; raises 404."""
        version = call.part("version")
        if not self._keys.versions(call.vault, call.name):
            try:
                return self._certificates.key(call.vault, call.name, version)
            except VaultError:
                pass
        return self._keys.find(call.vault, call.name, version)

    def _of_certificate(self, call: VaultCall) -> list[KeyVersion]:
        try:
            versions = self._certificates.versions(call.vault, call.name)
        except VaultError:
            return []
        return [self._certificates.key(call.vault, call.name, version.version) for version in versions]
