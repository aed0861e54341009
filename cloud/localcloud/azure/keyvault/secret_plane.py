"""The data plane's operations on secrets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from localcloud.azure.keyvault import errors, present
from localcloud.azure.keyvault.guard import LISTED, VaultCall, VaultGuard, page
from localcloud.azure.keyvault.secrets import DeletedSecret, SecretChange, Secrets
from localcloud.azure.shared.understood import Members
from localcloud.core.store import Document

_WRITTEN: Members = dict.fromkeys(("contentType", "attributes", "tags"))
_SEE: Final = "secrets/readMetadata/action"


class SecretPlane:
    """Secrets and deleted secrets."""

    def __init__(self, guard: VaultGuard) -> None:
        self._guard = guard
        self._secrets = Secrets(guard.store)

    def routes(self) -> Sequence[BaseRoute]:
        """Its routes."""
        route, one, deleted = self._guard.route, "/secrets/{name}", "/deletedsecrets/{name}"
        version = one + "/{version:path}"
        return [
            route("GET", "/secrets", self.list_secrets, _SEE, LISTED),
            route("GET", f"{one}/versions", self.list_secret_versions, _SEE, LISTED),
            route("GET", one, self.get_secret, "secrets/getSecret/action"),
            route("GET", version, self.get_secret, "secrets/getSecret/action"),
            route("PUT", one, self.set_secret, "secrets/setSecret/action", body={**_WRITTEN, "value": None}),
            route("PATCH", one, self.update_secret, "secrets/update/action", body=_WRITTEN),
            route("PATCH", version, self.update_secret, "secrets/update/action", body=_WRITTEN),
            route("DELETE", one, self.delete_secret, "secrets/delete"),
            route("GET", "/deletedsecrets", self.list_deleted_secrets, _SEE, LISTED),
            route("GET", deleted, self.get_deleted_secret, _SEE),
            route("POST", f"{deleted}/recover", self.recover_secret, "secrets/recover/action"),
            route("DELETE", deleted, self.purge_secret, "secrets/purge/action"),
        ]

    async def list_secrets(self, call: VaultCall) -> Response:
        secrets = self._secrets.all(call.vault)
        return page(call, [present.secret_item(call.vault, secret.current, versioned=False) for secret in secrets])

    async def list_secret_versions(self, call: VaultCall) -> Response:
        secret = self._secrets.find(call.vault, call.name)
        # In the order of their random names: seen in Azure/azure-sdk-for-python 35923 ("not chronological").
        versions = sorted(secret.versions, key=lambda secret: secret.version) if secret else []
        return page(call, [present.secret_item(call.vault, version, versioned=True) for version in versions])

    async def get_secret(self, call: VaultCall) -> Response:
        version, secret = call.part("version"), self._secrets.find(call.vault, call.name)
        secret_version = secret.at(version) if secret else None
        if secret_version is None:
            raise errors.not_found("secret", call.name, version)
        if not secret_version.enabled:
            raise errors.secret_disabled()
        return JSONResponse(present.secret_bundle(call.vault, secret_version, self._secrets.value(secret_version)))

    async def set_secret(self, call: VaultCall) -> Response:
        set_ = self._secrets.set(call.vault, call.name, call.body.get("value"), _change(call.body))
        return JSONResponse(present.secret_bundle(call.vault, set_, self._secrets.value(set_)))

    async def update_secret(self, call: VaultCall) -> Response:
        updated = self._secrets.update(call.vault, call.name, call.part("version"), _change(call.body))
        return JSONResponse(present.secret_item(call.vault, updated, versioned=True))

    async def delete_secret(self, call: VaultCall) -> Response:
        deleted = self._secrets.delete(call.vault, call.name)
        return JSONResponse(present.deleted_secret(call.vault, deleted, versioned=True))

    async def list_deleted_secrets(self, call: VaultCall) -> Response:
        # A certificate's secret is deleted, recovered and purged with the certificate.
        secrets = [deleted for deleted in self._secrets.all_deleted(call.vault) if not deleted.secret.current.managed]
        return page(call, [present.deleted_secret(call.vault, deleted, versioned=False) for deleted in secrets])

    async def get_deleted_secret(self, call: VaultCall) -> Response:
        return JSONResponse(present.deleted_secret(call.vault, self._deleted(call), versioned=True))

    async def recover_secret(self, call: VaultCall) -> Response:
        self._deleted(call)
        recovered = self._secrets.recover(call.vault, call.name)
        return JSONResponse(present.secret_item(call.vault, recovered.current, versioned=True))

    async def purge_secret(self, call: VaultCall) -> Response:
        self._deleted(call)
        self._secrets.purge(call.vault, call.name)
        return Response(status_code=204)

    def _deleted(self, call: VaultCall) -> DeletedSecret:
        """The soft-deleted secret that the path names, unless it belongs to a certificate; raises 404."""
        deleted = self._secrets.find_deleted(call.vault, call.name)
        if deleted is None or deleted.secret.current.managed:
            raise errors.not_found("secret", call.name)
        return deleted


def _change(body: Document) -> SecretChange:
    return SecretChange.of(body.get("attributes"), body.get("contentType"), body.get("tags"))
