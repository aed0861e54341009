"""The data plane's operations on certificates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from localcloud.azure.keyvault import errors, policies, present
from localcloud.azure.keyvault.certificates import Certificates
from localcloud.azure.keyvault.guard import LISTED, VaultCall, VaultGuard, page
from localcloud.azure.keyvault.secrets import SecretChange
from localcloud.azure.shared.understood import Members
from localcloud.core.store import Document

_MADE: Members = {"policy": policies.MEMBERS, "attributes": None, "tags": None}
_READ: Final = "certificates/read"


class CertificatePlane:
    """Certificates and deleted certificates."""

    def __init__(self, guard: VaultGuard) -> None:
        self._guard = guard
        self._certificates = Certificates(guard.store)

    def routes(self) -> Sequence[BaseRoute]:
        """Its routes."""
        route, one, deleted = self._guard.route, "/certificates/{name}", "/deletedcertificates/{name}"
        listed, imported = f"{LISTED} includepending", {**_MADE, "value": None, "pwd": None}
        return [
            route("GET", "/certificates", self.list, _READ, listed),
            route("GET", "/certificates/contacts", self.contacts, "certificatecontacts/write"),
            route("GET", "/certificates/issuers", self.issuers, "certificatecas/read", LISTED),
            route("GET", "/certificates/issuers/{issuer}", self.issuer, "certificatecas/read"),
            route("POST", f"{one}/create", self.create, "certificates/create/action", body=_MADE),
            route("POST", f"{one}/import", self.import_, "certificates/import/action", body=imported),
            route("GET", f"{one}/pending", self.pending, _READ),
            route("GET", f"{one}/policy", self.policy, _READ),
            route("GET", f"{one}/versions", self.versions, _READ, LISTED),
            route("GET", one, self.get, _READ),
            route("GET", one + "/{version:path}", self.get, _READ),
            route("DELETE", one, self.delete, "certificates/delete"),
            route("GET", "/deletedcertificates", self.list_deleted, _READ, listed),
            route("GET", deleted, self.get_deleted, _READ),
            route("POST", f"{deleted}/recover", self.recover, "certificates/recover/action"),
            route("DELETE", deleted, self.purge, "certificates/purge/action"),
        ]

    async def list(self, call: VaultCall) -> Response:
        certificates = self._certificates.all(call.vault)
        return page(
            call, [present.certificate_item(call.vault, certificate, versioned=False) for certificate in certificates]
        )

    async def get(self, call: VaultCall) -> Response:
        certificate = self._certificates.find(call.vault, call.name, call.part("version"))
        return JSONResponse(present.certificate_bundle(call.vault, certificate))

    async def versions(self, call: VaultCall) -> Response:
        versions = self._certificates.versions(call.vault, call.name)
        ordered = sorted(versions, key=lambda version: version.version)  # as those of secrets
        return page(call, [present.certificate_item(call.vault, version, versioned=True) for version in ordered])

    async def policy(self, call: VaultCall) -> Response:
        certificate = self._certificates.find(call.vault, call.name)
        return JSONResponse(present.certificate_policy(call.vault, certificate))

    async def contacts(self, call: VaultCall) -> Response:
        """No contacts (azure-keyvault-emulator issue 246 has the real answer)."""
        return JSONResponse({"id": f"{call.vault.uri}/certificates/contacts", "contacts": []})

    async def issuers(self, call: VaultCall) -> Response:
        """No issuer is set up; `Self` and `Unknown` are in no list."""
        return page(call, [])

    async def issuer(self, call: VaultCall) -> Response:
        raise errors.issuer_not_found(call.part("issuer"))

    async def list_deleted(self, call: VaultCall) -> Response:
        certificates = self._certificates.all_deleted(call.vault)
        return page(call, [present.deleted_certificate_item(call.vault, *deleted) for deleted in certificates])

    async def create(self, call: VaultCall) -> Response:
        certificate = self._certificates.create(call.vault, call.name, _policy(call.body), _change(call.body))
        return JSONResponse(present.certificate_operation(call.vault, certificate, "inProgress"), status_code=202)

    async def pending(self, call: VaultCall) -> Response:
        certificate = self._certificates.find(call.vault, call.name)
        return JSONResponse(present.certificate_operation(call.vault, certificate, "completed"))

    async def import_(self, call: VaultCall) -> Response:
        body = call.body
        certificate = self._certificates.import_(
            call.vault, call.name, (body.get("value"), body.get("pwd")), _policy(body), _change(body)
        )
        return JSONResponse(present.certificate_bundle(call.vault, certificate))

    async def delete(self, call: VaultCall) -> Response:
        certificate, deleted = self._certificates.delete(call.vault, call.name)
        return JSONResponse(present.deleted_certificate(call.vault, certificate, deleted))

    async def get_deleted(self, call: VaultCall) -> Response:
        certificate, deleted = self._certificates.find_deleted(call.vault, call.name)
        return JSONResponse(present.deleted_certificate(call.vault, certificate, deleted))

    async def recover(self, call: VaultCall) -> Response:
        certificate = self._certificates.recover(call.vault, call.name)
        return JSONResponse(present.certificate_bundle(call.vault, certificate))

    async def purge(self, call: VaultCall) -> Response:
        self._certificates.purge(call.vault, call.name)
        return Response(status_code=204)


def _policy(body: Document) -> Mapping[str, Any]:
    policy = body.get("policy")
    if policy is not None and not isinstance(policy, Mapping):
        raise errors.bad_parameter("Property policy has invalid value: an object is expected.")
    return {name: value for name, value in (policy or {}).items() if value is not None}


def _change(body: Document) -> SecretChange:
    return SecretChange.of(body.get("attributes"), None, body.get("tags"))
