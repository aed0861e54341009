"""The data plane's operations on secrets."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from localcloud.azure.keyvault import errors, present
from localcloud.azure.keyvault.guard import LISTED, VaultCall, VaultGuard, page
from localcloud.azure.keyvault.secrets import DeletedSecret, SecretChange, Secrets
from localcloud.azure.shared.understood import Members
from localcloud.core.store import Document

_WRITTEN: Members = dict.fromkeys(("contentType", "attributes", "tags"))


class SecretPlane:
    """Secrets and deleted secrets."""

    def __init__(self, guard: VaultGuard) -> None:
        self._guard = guard
        self._secrets = Secrets(guard.store)

    def routes(self) -> Sequence[BaseRoute]:
        """Its routes."""
        route, one = self._guard.route, "/secrets/{name}"
        version = one + "/{version:path}"
        return [
            route("GET", "/secrets", self.list_secrets, LISTED),
            route("GET", f"{one}/versions", self.list_secret_versions, LISTED),
            route("GET", one, self.get_secret),
            route("GET", version, self.get_secret),
            route("PUT", one, self.set_secret, body={**_WRITTEN, "value": None}),
            route("PATCH", one, self.update_secret, body=_WRITTEN),
            route("PATCH", version, self.update_secret, body=_WRITTEN),
            route("DELETE", one, self.delete_secret),
            route("GET", "/deletedsecrets", self.list_deleted_secrets, LISTED),
            route("GET", "/deletedsecrets/{name}", self.get_deleted_secret),
            route("POST", "/deletedsecrets/{name}/recover", self.recover_secret),
            route("DELETE", "/deletedsecrets/{name}", self.purge_secret),
        ]

    async def list_secrets(self, call: VaultCall) -> Response:
        self._guard.require(call, "secrets/readMetadata/action")
        secrets = self._secrets.all(call.vault)
        return page(call, [present.secret_item(call.vault, secret.current, versioned=False) for secret in secrets])

    async def list_secret_versions(self, call: VaultCall) -> Response:
        name = self._guard.authorized(call, "secrets", "readMetadata/action")
        secret = self._secrets.find(call.vault, name)
        # In the order of their random names: seen in Azure/azure-sdk-for-python 35923 ("not chronological").
        versions = sorted(secret.versions, key=lambda secret: secret.version) if secret else []
        return page(call, [present.secret_item(call.vault, version, versioned=True) for version in versions])

    async def get_secret(self, call: VaultCall) -> Response:
        version, name = call.part("version"), self._guard.authorized(call, "secrets", "getSecret/action")
        secret = self._secrets.find(call.vault, name)
        secret_version = secret.at(version) if secret else None
        if secret_version is None:
            raise errors.not_found("secret", name, version)
        if not secret_version.enabled:
            raise errors.secret_disabled()
        return JSONResponse(present.secret_bundle(call.vault, secret_version, self._secrets.value(secret_version)))

    async def set_secret(self, call: VaultCall) -> Response:
        name = self._guard.authorized(call, "secrets", "setSecret/action")
        set_ = self._secrets.set(call.vault, name, call.body.get("value"), _change(call.body))
        return JSONResponse(present.secret_bundle(call.vault, set_, self._secrets.value(set_)))

    async def update_secret(self, call: VaultCall) -> Response:
        name = self._guard.authorized(call, "secrets", "update/action")
        updated = self._secrets.update(call.vault, name, call.part("version"), _change(call.body))
        return JSONResponse(present.secret_item(call.vault, updated, versioned=True))

    async def delete_secret(self, call: VaultCall) -> Response:
        name = self._guard.authorized(call, "secrets", "delete")
        deleted = self._secrets.delete(call.vault, name)
        return JSONResponse(present.deleted_secret(call.vault, deleted, versioned=True))

    async def list_deleted_secrets(self, call: VaultCall) -> Response:
        self._guard.require(call, "secrets/readMetadata/action")
        # A certificate's secret is deleted, recovered and purged with the certificate.
        secrets = [deleted for deleted in self._secrets.all_deleted(call.vault) if not deleted.secret.current.managed]
        return page(call, [present.deleted_secret(call.vault, deleted, versioned=False) for deleted in secrets])

    async def get_deleted_secret(self, call: VaultCall) -> Response:
        name = self._guard.authorized(call, "secrets", "readMetadata/action")
        return JSONResponse(present.deleted_secret(call.vault, self._deleted(call, name), versioned=True))

    async def recover_secret(self, call: VaultCall) -> Response:
        name = self._guard.authorized(call, "secrets", "recover/action")
        self._deleted(call, name)
        recovered = self._secrets.recover(call.vault, name)
        return JSONResponse(present.secret_item(call.vault, recovered.current, versioned=True))

    async def purge_secret(self, call: VaultCall) -> Response:
        name = self._guard.authorized(call, "secrets", "purge/action")
        self._deleted(call, name)
        self._secrets.purge(call.vault, name)
        return Response(status_code=204)

    def _deleted(self, call: VaultCall, name: str) -> DeletedSecret:
        """The soft-deleted secret of this name, unless it belongs to a certificate; raises 404."""
        deleted = self._secrets.find_deleted(call.vault, name)
        if deleted is None or deleted.secret.current.managed:
            raise errors.not_found("secret", name)
        return deleted


def _change(body: Document) -> SecretChange:
    return SecretChange.of(body.get("attributes"), body.get("contentType"), body.get("tags"))
