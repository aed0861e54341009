"""The data plane's operations on certificates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from localcloud.azure.keyvault import errors, policies, present
from localcloud.azure.keyvault.certificates import Certificates
from localcloud.azure.keyvault.door import LISTED, VaultDoor, Visit, page
from localcloud.azure.keyvault.secrets import SecretChange
from localcloud.azure.shared.understood import Members
from localcloud.core.store import Document

_MADE: Members = {"policy": policies.MEMBERS, "attributes": None, "tags": None}


class CertificatePlane:
    """Certificates and deleted certificates."""

    def __init__(self, door: VaultDoor) -> None:
        self._door = door
        self._certificates = Certificates(door.store)

    def routes(self) -> Sequence[BaseRoute]:
        """Its routes."""
        route, one = self._door.route, "/certificates/{name}"
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

    async def list(self, visit: Visit) -> Response:
        self._door.require(visit, "certificates/read")
        certificates = self._certificates.all(visit.vault)
        return page(
            visit, [present.certificate_item(visit.vault, certificate, versioned=False) for certificate in certificates]
        )

    async def get(self, visit: Visit) -> Response:
        name = self._admitted(visit, "read")
        certificate = self._certificates.find(visit.vault, name, visit.part("version"))
        return JSONResponse(present.certificate_bundle(visit.vault, certificate))

    async def versions(self, visit: Visit) -> Response:
        versions = self._certificates.versions(visit.vault, self._admitted(visit, "read"))
        ordered = sorted(versions, key=lambda version: version.version)  # as those of secrets
        return page(visit, [present.certificate_item(visit.vault, version, versioned=True) for version in ordered])

    async def policy(self, visit: Visit) -> Response:
        certificate = self._certificates.find(visit.vault, self._admitted(visit, "read"))
        return JSONResponse(present.certificate_policy(visit.vault, certificate))

    async def contacts(self, visit: Visit) -> Response:
        """No contacts (azure-keyvault-emulator issue 246 has the real answer)."""
        self._door.require(visit, "certificatecontacts/write")
        return JSONResponse({"id": f"{visit.vault.uri}/certificates/contacts", "contacts": []})

    async def issuers(self, visit: Visit) -> Response:
        """No issuer is set up; `Self` and `Unknown` are in no list."""
        self._door.require(visit, "certificatecas/read")
        return page(visit, [])

    async def issuer(self, visit: Visit) -> Response:
        self._door.require(visit, "certificatecas/read")
        raise errors.issuer_not_found(visit.part("issuer"))

    async def list_deleted(self, visit: Visit) -> Response:
        self._door.require(visit, "certificates/read")
        certificates = self._certificates.all_deleted(visit.vault)
        return page(visit, [present.deleted_certificate_item(visit.vault, *deleted) for deleted in certificates])

    async def create(self, visit: Visit) -> Response:
        name = self._admitted(visit, "create/action")
        certificate = self._certificates.create(visit.vault, name, _policy(visit.body), _change(visit.body))
        return JSONResponse(present.certificate_operation(visit.vault, certificate, "inProgress"), status_code=202)

    async def pending(self, visit: Visit) -> Response:
        name = self._admitted(visit, "read")
        certificate = self._certificates.find(visit.vault, name)
        return JSONResponse(present.certificate_operation(visit.vault, certificate, "completed"))

    async def import_(self, visit: Visit) -> Response:
        name = self._admitted(visit, "import/action")
        body = visit.body
        certificate = self._certificates.import_(
            visit.vault, name, (body.get("value"), body.get("pwd")), _policy(body), _change(body)
        )
        return JSONResponse(present.certificate_bundle(visit.vault, certificate))

    async def delete(self, visit: Visit) -> Response:
        certificate, deleted = self._certificates.delete(visit.vault, self._admitted(visit, "delete"))
        return JSONResponse(present.deleted_certificate(visit.vault, certificate, deleted))

    async def get_deleted(self, visit: Visit) -> Response:
        certificate, deleted = self._certificates.find_deleted(visit.vault, self._admitted(visit, "read"))
        return JSONResponse(present.deleted_certificate(visit.vault, certificate, deleted))

    async def recover(self, visit: Visit) -> Response:
        certificate = self._certificates.recover(visit.vault, self._admitted(visit, "recover/action"))
        return JSONResponse(present.certificate_bundle(visit.vault, certificate))

    async def purge(self, visit: Visit) -> Response:
        self._certificates.purge(visit.vault, self._admitted(visit, "purge/action"))
        return Response(status_code=204)

    def _admitted(self, visit: Visit, operation: str) -> str:
        """The certificate's name, after the check that the caller may do this."""
        name = visit.part("name")
        self._door.require(visit, f"certificates/{operation}", f"certificates/{name}")
        return name


def _policy(body: Document) -> Mapping[str, Any]:
    policy = body.get("policy")
    if policy is not None and not isinstance(policy, Mapping):
        raise errors.bad_parameter("Property policy has invalid value: an object is expected.")
    return {name: value for name, value in (policy or {}).items() if value is not None}


def _change(body: Document) -> SecretChange:
    return SecretChange.of(body.get("attributes"), None, body.get("tags"))
