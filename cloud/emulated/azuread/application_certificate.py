"""`azuread:index/applicationCertificate:ApplicationCertificate`.

Source: `application_certificate_resource.go` in `internal/services/applications`, `internal/helpers/credentials`.
"""

from __future__ import annotations

import base64
import binascii
import threading
import uuid
from collections import defaultdict
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

import pulumi_azuread
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from emulated.azuread.application import PREFIX, ApplicationResource
from emulated.azuread.resource import GraphResource, OpenSession, exists_already, failed
from emulated.azuread.schema import APPLICATION_ID, RFC3339, UUID, Argument, Schema, one_of
from emulated.client import RefusalError
from plugin import PluginError, PluginInterruptedError, Props, unwrap

_KIND: Final = "certificate"


class ApplicationCertificateResource(GraphResource):
    """A certificate registered on an application. Its id is `<object id>/certificate/<key id>`.

    Graph has no call for one certificate: the whole list is read and written, so the calls for one application
    wait for each other. Any change replaces. Read and delete fail when the application itself is gone, as the real
    provider's do.
    """

    arguments_type = pulumi_azuread.ApplicationCertificateArgs
    schema = Schema(
        {
            "applicationId": Argument(force_new=True, rule=APPLICATION_ID),
            "encoding": Argument(default="pem", force_new=True, rule=one_of("base64", "hex", "pem")),
            "endDate": Argument(computed=True, force_new=True, rule=RFC3339),
            "keyId": Argument(computed=True, force_new=True, rule=UUID),
            "startDate": Argument(computed=True, force_new=True, rule=RFC3339),
            "type": Argument(force_new=True, rule=one_of("AsymmetricX509Cert", "Symmetric")),
            "value": Argument(force_new=True, secret=True),
        },
        computed=(),
    )

    def __init__(self, session: OpenSession) -> None:
        super().__init__(session)
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def created(self, inputs: Props) -> tuple[str, Props]:
        plain = unwrap(inputs)
        key_id = plain.get("keyId") or str(uuid.uuid4())
        path = plain["applicationId"]
        object_id = path.removeprefix(PREFIX)
        id = f"{object_id}/{_KIND}/{key_id}"
        credential = {
            "keyId": key_id,
            "type": plain.get("type", ""),
            "usage": "Verify",
            "key": _pem_base64(plain["value"], self.schema.value(inputs, "encoding")),
            "startDateTime": _seconds(plain.get("startDate")),
            "endDateTime": _seconds(plain.get("endDate")),
        }
        with self._locks[object_id]:
            current = self._credentials(path)
            if any(certificate["keyId"].lower() == key_id.lower() for certificate in current):
                raise exists_already("azuread_application_certificate", id)
            added = {name: value for name, value in credential.items() if value is not None}
            self._write(path, [*current, added], f"Adding certificate for {ApplicationResource.printed(path)}")
            # It is registered. It must be in the state even if the wait for the replicas is interrupted.
            with suppress(PluginInterruptedError):
                self.session().graph.wait(
                    f"certificate credential for {path}", lambda: self._find(path, key_id) is not None
                )
        return id, self.existing(id, inputs)

    def live(self, id: str, state: Props) -> Props | None:
        object_id, key_id = _parsed(id)
        path = f"{PREFIX}{object_id}"
        credential = self._find(path, key_id)
        if credential is None:
            return None
        kept: Props = {name: state[name] for name in ("value", "encoding") if name in state}
        return {
            "encoding": self.schema.arguments["encoding"].default,
            **kept,
            "applicationId": path,
            "keyId": key_id,
            "type": credential.get("type") or "",
            "startDate": credential["startDateTime"],
            "endDate": credential["endDateTime"],
        }

    def delete(self, urn: str, id: str, inputs: Props, state: Props) -> None:
        object_id, key_id = _parsed(id)
        path = f"{PREFIX}{object_id}"
        with self._locks[object_id]:
            kept = [
                credential for credential in self._credentials(path) if credential["keyId"].lower() != key_id.lower()
            ]
            self._write(
                path,
                kept,
                f'Removing certificate credential "{key_id}" from application with object ID "{object_id}"',
            )
            self.session().graph.wait(f"deletion of {id}", lambda: self._find(path, key_id) is None)

    def _find(self, path: str, key_id: str) -> dict[str, Any] | None:
        return next(
            (credential for credential in self._credentials(path) if credential["keyId"].lower() == key_id.lower()),
            None,
        )

    def _credentials(self, path: str) -> list[dict[str, Any]]:
        try:
            credentials: list[dict[str, Any]] = self.session().graph.get(path)["keyCredentials"]
        except RefusalError as error:
            raise failed(f"Retrieving {ApplicationResource.printed(path)}", error) from None
        return credentials

    def _write(self, path: str, credentials: list[dict[str, Any]], doing: str) -> None:
        try:
            self.session().graph.patch(path, {"keyCredentials": credentials})
        except RefusalError as error:
            raise failed(doing, error) from None


def _parsed(id: str) -> tuple[str, str]:
    """Object id and key id; raises PluginError if the id is not a certificate's."""
    parts = id.split("/")
    if len(parts) != 3 or parts[1] != _KIND or not all(parts):
        raise PluginError(f'unable to parse Certificate ID: "{id}" is not <object id>/{_KIND}/<key id>')
    return parts[0], parts[2]


def _pem_base64(value: str, encoding: str) -> str:
    """The certificate as the provider sends it: base64 of PEM. No error message contains the value."""
    try:
        match encoding:
            case "pem":
                pem = value.encode()
            case "hex":
                pem = x509.load_der_x509_certificate(bytes.fromhex(value.strip())).public_bytes(Encoding.PEM)
            case _:
                der = base64.b64decode(value.strip(), validate=True)
                pem = x509.load_der_x509_certificate(der).public_bytes(Encoding.PEM)
    except (ValueError, binascii.Error):
        raise PluginError(f"Generating certificate credentials: failed to decode {encoding} certificate data") from None
    return base64.b64encode(pem).decode()


def _seconds(date: str | None) -> str | None:
    """The date in Go's RFC3339: whole seconds."""
    if date is None:
        return None
    return datetime.fromisoformat(date).replace(microsecond=0).isoformat().replace("+00:00", "Z")
