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
# Of an asymmetric key, a reader of the public half can use it: `keys/read` opens these two as well (text of the
# operations in Azure's own list, AzAdvertizer role page 12338af0, 2024-09-19).
_PUBLIC_OPERATIONS: Final = {"encrypt": "encrypt", "wrapkey": "wrap"}
_PRIVATE_OPERATIONS: Final = {"decrypt": "decrypt", "unwrapkey": "unwrap"}
# As `key_ops` has them.
_OPERATIONS: Final = {"encrypt": "encrypt", "wrapkey": "wrapKey", "decrypt": "decrypt", "unwrapkey": "unwrapKey"}


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
            route("GET", "/keys", self.list_keys, LISTED),
            route("GET", f"{one}/versions", self.list_key_versions, LISTED),
            route("GET", f"{one}/rotationpolicy", self.get_rotation_policy),
            route("GET", one, self.get_key),
            route("GET", one + "/{version:path}", self.get_key),
            route("POST", f"{one}/create", self.create_key, body=_MADE),
            route("POST", one + "/{operation}", self.use_key, body=_USED, changes=False),
            route("POST", one + "/{version:path}/{operation}", self.use_key, body=_USED, changes=False),
        ]

    async def list_keys(self, call: VaultCall) -> Response:
        self._guard.require(call, "keys/read")
        own = {key.name.lower(): key for key in self._keys.all(call.vault)}
        certificates = self._certificates.all(call.vault)
        of_certificates = (self._certificates.key(call.vault, certificate.name, None) for certificate in certificates)
        keys = {**{key.name.lower(): key for key in of_certificates}, **own}
        return page(call, [present.key_item(call.vault, keys[name], versioned=False) for name in sorted(keys)])

    async def list_key_versions(self, call: VaultCall) -> Response:
        name = self._guard.authorized(call, "keys", "read")
        versions = self._keys.versions(call.vault, name) or self._of_certificate(call, name)
        return page(call, [present.key_item(call.vault, version, versioned=True) for version in versions])

    async def get_key(self, call: VaultCall) -> Response:
        name = self._guard.authorized(call, "keys", "read")
        key = self._find(call, name)
        return JSONResponse(present.key_bundle(call.vault, key, self._keys.public_numbers(key)))

    async def create_key(self, call: VaultCall) -> Response:
        name = self._guard.authorized(call, "keys", "create/action")
        created = self._keys.create(call.vault, name, call.body)
        return JSONResponse(present.key_bundle(call.vault, created, self._keys.public_numbers(created)))

    async def use_key(self, call: VaultCall) -> Response:
        name, operation = call.part("name"), call.part("operation")
        if operation in _PUBLIC_OPERATIONS:
            granting = [f"keys/{_PUBLIC_OPERATIONS[operation]}/action", "keys/read"]
            use = self._keys.encrypt
        elif operation in _PRIVATE_OPERATIONS:
            granting = [f"keys/{_PRIVATE_OPERATIONS[operation]}/action"]
            use = self._keys.decrypt
        else:
            raise errors.not_emulated(f"{call.request.method} {call.request.url.path}")
        self._guard.require(call, granting[0], f"keys/{name}", or_else=granting[1:])
        key = self._find(call, name)
        key.require(_OPERATIONS[operation])
        result = use(key, call.body.get("alg"), call.body.get("value"))
        return JSONResponse({"kid": present.item_id(call.vault, "keys", key), "value": result})

    async def get_rotation_policy(self, call: VaultCall) -> Response:
        name = call.part("name")
        self._guard.require(call, "keyrotationpolicies/read", f"keys/{name}")
        return JSONResponse(present.rotation_policy(call.vault, self._keys.find(call.vault, name, None)))

    def _find(self, call: VaultCall, name: str) -> KeyVersion:
        """The key that the path names; raises 404."""
        version = call.part("version")
        if not self._keys.versions(call.vault, name):
            try:
                return self._certificates.key(call.vault, name, version)
            except VaultError:
                pass
        return self._keys.find(call.vault, name, version)

    def _of_certificate(self, call: VaultCall, name: str) -> list[KeyVersion]:
        try:
            versions = self._certificates.versions(call.vault, name)
        except VaultError:
            return []
        return [self._certificates.key(call.vault, name, version.version) for version in versions]
