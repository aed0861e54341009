"""The data plane's operations on certificates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from localcloud.azure.keyvault import errors, policies, present
from localcloud.azure.keyvault.certificates import Certificates
from localcloud.azure.keyvault.guard import LISTED, VaultCall, VaultGuard, page
from localcloud.azure.keyvault.secrets import SecretChange
from localcloud.azure.shared.understood import Members
from localcloud.core.store import Document

_MADE: Members = {"policy": policies.MEMBERS, "attributes": None, "tags": None}


class CertificatePlane:
    """Certificates and deleted certificates."""

    def __init__(self, guard: VaultGuard) -> None:
        self._guard = guard
        self._certificates = Certificates(guard.store)

    def routes(self) -> Sequence[BaseRoute]:
        """Its routes."""
        route, one = self._guard.route, "/certificates/{name}"
        listed = f"{LISTED} includepending"
        return [
            route("GET", "/certificates", self.list, listed),
            route("GET", "/certificates/contacts", self.contacts),
            route("GET", "/certificates/issuers", self.issuers, LISTED),
            route("GET", "/certificates/issuers/{issuer}", self.issuer),
            route("POST", f"{one}/create", self.create, body=_MADE),
            route("POST", f"{one}/import", self.import_, body={**_MADE, "value": None, "pwd": None}),
            route("GET", f"{one}/pending", self.pending),
            route("GET", f"{one}/policy", self.policy),
            route("GET", f"{one}/versions", self.versions, LISTED),
            route("GET", one, self.get),
            route("GET", one + "/{version:path}", self.get),
            route("DELETE", one, self.delete),
            route("GET", "/deletedcertificates", self.list_deleted, listed),
            route("GET", "/deletedcertificates/{name}", self.get_deleted),
            route("POST", "/deletedcertificates/{name}/recover", self.recover),
            route("DELETE", "/deletedcertificates/{name}", self.purge),
        ]

    async def list(self, call: VaultCall) -> Response:
        self._guard.require(call, "certificates/read")
        certificates = self._certificates.all(call.vault)
        return page(
            call, [present.certificate_item(call.vault, certificate, versioned=False) for certificate in certificates]
        )

    async def get(self, call: VaultCall) -> Response:
        name = self._authorized(call, "read")
        certificate = self._certificates.find(call.vault, name, call.part("version"))
        return JSONResponse(present.certificate_bundle(call.vault, certificate))

    async def versions(self, call: VaultCall) -> Response:
        versions = self._certificates.versions(call.vault, self._authorized(call, "read"))
        ordered = sorted(versions, key=lambda version: version.version)  # as those of secrets
        return page(call, [present.certificate_item(call.vault, version, versioned=True) for version in ordered])

    async def policy(self, call: VaultCall) -> Response:
        certificate = self._certificates.find(call.vault, self._authorized(call, "read"))
        return JSONResponse(present.certificate_policy(call.vault, certificate))

    async def contacts(self, call: VaultCall) -> Response:
        """No contacts (azure-keyvault-emulator issue 246 has the real answer)."""
        self._guard.require(call, "certificatecontacts/write")
        return JSONResponse({"id": f"{call.vault.uri}/certificates/contacts", "contacts": []})

    async def issuers(self, call: VaultCall) -> Response:
        """No issuer is set up; `Self` and `Unknown` are in no list."""
        self._guard.require(call, "certificatecas/read")
        return page(call, [])

    async def issuer(self, call: VaultCall) -> Response:
        self._guard.require(call, "certificatecas/read")
        raise errors.issuer_not_found(call.part("issuer"))

    async def list_deleted(self, call: VaultCall) -> Response:
        self._guard.require(call, "certificates/read")
        certificates = self._certificates.all_deleted(call.vault)
        return page(call, [present.deleted_certificate_item(call.vault, *deleted) for deleted in certificates])

    async def create(self, call: VaultCall) -> Response:
        name = self._authorized(call, "create/action")
        certificate = self._certificates.create(call.vault, name, _policy(call.body), _change(call.body))
        return JSONResponse(present.certificate_operation(call.vault, certificate, "inProgress"), status_code=202)

    async def pending(self, call: VaultCall) -> Response:
        name = self._authorized(call, "read")
        certificate = self._certificates.find(call.vault, name)
        return JSONResponse(present.certificate_operation(call.vault, certificate, "completed"))

    async def import_(self, call: VaultCall) -> Response:
        name = self._authorized(call, "import/action")
        body = call.body
        certificate = self._certificates.import_(
            call.vault, name, (body.get("value"), body.get("pwd")), _policy(body), _change(body)
        )
        return JSONResponse(present.certificate_bundle(call.vault, certificate))

    async def delete(self, call: VaultCall) -> Response:
        certificate, deleted = self._certificates.delete(call.vault, self._authorized(call, "delete"))
        return JSONResponse(present.deleted_certificate(call.vault, certificate, deleted))

    async def get_deleted(self, call: VaultCall) -> Response:
        certificate, deleted = self._certificates.find_deleted(call.vault, self._authorized(call, "read"))
        return JSONResponse(present.deleted_certificate(call.vault, certificate, deleted))

    async def recover(self, call: VaultCall) -> Response:
        certificate = self._certificates.recover(call.vault, self._authorized(call, "recover/action"))
        return JSONResponse(present.certificate_bundle(call.vault, certificate))

    async def purge(self, call: VaultCall) -> Response:
        self._certificates.purge(call.vault, self._authorized(call, "purge/action"))
        return Response(status_code=204)

    def _authorized(self, call: VaultCall, operation: str) -> str:
        return self._guard.authorized(call, "certificates", operation)


def _policy(body: Document) -> Mapping[str, Any]:
    policy = body.get("policy")
    if policy is not None and not isinstance(policy, Mapping):
        raise errors.bad_parameter("Property policy has invalid value: an object is expected.")
    return {name: value for name, value in (policy or {}).items() if value is not None}


def _change(body: Document) -> SecretChange:
    return SecretChange.of(body.get("attributes"), None, body.get("tags"))
