"""Directory objects as Graph prints them, and request bodies as Graph reads them.

Source: Graph v1.0 reference of application, servicePrincipal and keyCredential. Properties that mean nothing to
sign-in are kept and returned; a property that Graph does not know is refused.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa

from localcloud.azure.shared.refusals import not_emulated, refusal
from localcloud.azure.shared.understood import Members
from localcloud.azure.tenant.objects import Application, KeyCredential, PasswordCredential, ServicePrincipal, User
from localcloud.core import clock, yaml_text
from localcloud.core.arm_ids import is_uuid
from localcloud.core.clock import parse_rfc3339, rfc3339

OWNERS = "owners@odata.bind"
USER = "#microsoft.graph.user"
TYPES: Mapping[type[Application | ServicePrincipal], str] = {
    Application: "#microsoft.graph.application",
    ServicePrincipal: "#microsoft.graph.servicePrincipal",
}
_PASSWORD_LIFETIME = timedelta(days=730)

_FILE: Mapping[str, Mapping[str, Any]] = yaml_text.load(Path(__file__).with_name("properties.yaml").read_bytes())
_PROPERTIES = {kind: _FILE[type_.rpartition(".")[2]] for kind, type_ in TYPES.items()}
_TEXTS = frozenset({"alternativeNames", "identifierUris", "notificationEmailAddresses", "tags"})
_KEY = dict.fromkeys(
    ("keyId", "type", "usage", "key", "displayName", "startDateTime", "endDateTime", "customKeyIdentifier")
)
PASSWORD: Members = {
    "passwordCredential": dict.fromkeys(("displayName", "startDateTime", "endDateTime", "hint", "keyId", "secretText"))
}
"""The body of `addPassword`; what answers have beside is null in it."""


def to_json(entry: Application | ServicePrincipal, tenant_id: str, *, with_keys: bool = False) -> dict[str, Any]:
    """The object with all its properties; the content of certificates only `with_keys` (when $select asks)."""
    common = {
        "id": entry.object_id,
        "appId": entry.app_id,
        "displayName": entry.display_name,
        "createdDateTime": rfc3339(entry.created_at),
        "keyCredentials": [_key_json(key, with_keys) for key in entry.key_credentials],
        "passwordCredentials": [password_json(password) for password in entry.passwords],
    }
    if isinstance(entry, Application):
        return {**common, **_PROPERTIES[Application]["kept"], **entry.properties}
    managed = entry.kind == "ManagedIdentity"
    return {
        **common,
        **_PROPERTIES[ServicePrincipal]["kept"],
        **entry.properties,
        "servicePrincipalType": entry.kind,
        "appOwnerOrganizationId": tenant_id,
        "servicePrincipalNames": [entry.app_id],
        **({"alternativeNames": ["isExplicit=True", entry.resource_id]} if managed else {}),
    }


def typed_json(entry: Application | ServicePrincipal, tenant_id: str) -> dict[str, Any]:
    """The object with its type, as it stands among objects of any type."""
    return {"@odata.type": TYPES[type(entry)], **to_json(entry, tenant_id)}


def writable(body: Mapping[str, Any], kind: type[Application | ServicePrincipal]) -> dict[str, Any]:
    """The plain properties of a body, without display name, certificates and owners; raises 400 for an unknown one."""
    known = _PROPERTIES[kind]["kept"]
    body = {name: without_annotations(value) for name, value in body.items() if not _is_annotation(name)}
    structural = {"displayName", "keyCredentials", OWNERS, *(() if kind is Application else ("appId",))}
    for name in body:
        if name in _PROPERTIES[kind]["notEmulated"].split():
            raise not_emulated("graph", f"the property {name} of {TYPES[kind].rpartition('.')[2]}")
        if name not in known and name not in structural:
            raise refusal("Request_BadRequest unknown property", name=name)
    properties = {name: value for name, value in body.items() if name in known}
    for name in _TEXTS & properties.keys():
        if not isinstance(properties[name], list) or not all(isinstance(item, str) for item in properties[name]):
            raise refusal("Request_BadRequest another type", type="Collection(Edm.String)")
    return properties


def members(kind: type[Application | ServicePrincipal]) -> Members:
    """The members of a body that writes an object: those that are kept, and those that are refused by their names."""
    known = _PROPERTIES[kind]["kept"]
    structural = ("id", "displayName", "appId", OWNERS)
    return {**dict.fromkeys((*known, *structural, *_PROPERTIES[kind]["notEmulated"].split())), "keyCredentials": _KEY}


def text(body: Mapping[str, Any], name: str) -> str | None:
    """A member that is a text or null; raises 400."""
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise refusal("Request_BadRequest another type", type="Edm.String")
    return value


def without_annotations(value: Any) -> Any:
    """A JSON value without the annotations of OData (`@odata.type`), which may stand at any object of a request."""
    if isinstance(value, Mapping):
        return {name: without_annotations(member) for name, member in value.items() if not _is_annotation(name)}
    return [without_annotations(item) for item in value] if isinstance(value, list) else value


def _is_annotation(name: str) -> bool:
    return "@odata." in name and name != OWNERS


def owners(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Object ids from `owners@odata.bind`, whose entries are URLs of directory objects."""
    bound = body.get(OWNERS) or []
    if not isinstance(bound, list):
        raise refusal("Request_BadRequest another type", type="Collection(Edm.String)")
    return tuple(str(url).rstrip("/").rpartition("/")[2] for url in bound)


def key_credentials(body: list[dict[str, Any]], existing: tuple[KeyCredential, ...]) -> list[KeyCredential]:
    """The certificates after a PATCH: the whole list, in which an existing one may be named by its `keyId` alone.

    Raises 400 for anything but an RSA certificate for verification, for dates outside the certificate's, for an end
    that has passed, and for other content under an existing `keyId`.
    """
    known = {key.key_id: key for key in existing}
    return [_key_credential(key, known) for key in body]


def _key_credential(body: dict[str, Any], existing: Mapping[str, KeyCredential]) -> KeyCredential:
    key_id, content = body.get("keyId"), body.get("key")
    if (known := existing.get(str(key_id).lower())) is not None:
        if content is not None and _certificate(content) != x509.load_der_x509_certificate(known.certificate):
            raise refusal("Request_BadRequest key changed", key=key_id)
        return known
    for name, accepted in (("type", "AsymmetricX509Cert"), ("usage", "Verify")):
        if body.get(name) != accepted:
            raise refusal("Request_BadRequest key of another kind", name=name, accepted=accepted)
    if key_id is not None and not is_uuid(key_id):
        raise refusal("Request_BadRequest key id", key=key_id)
    certificate = _certificate(content)
    key = KeyCredential.of(certificate, key_id=key_id, display_name=text(body, "displayName"))
    start, end = _date(body, "startDateTime", key.start), _date(body, "endDateTime", key.end)
    if not key.start <= start:
        raise refusal("KeyCredentialsInvalidStartDate")
    if not max(start, clock.now()) < end <= key.end:
        raise refusal("KeyCredentialsInvalidEndDate")
    identifier = _key_json(key, with_content=False)["customKeyIdentifier"]
    if body.get("customKeyIdentifier") not in (None, identifier):
        raise not_emulated("graph", "a customKeyIdentifier beside the certificate's thumbprint")
    return replace(key, start=start, end=end)


def _certificate(content: object) -> x509.Certificate:
    """A certificate in base64 of DER, or of PEM (which the azuread provider sends); raises 400.

    The base64 may have line breaks: `az ad app credential reset --cert` sends a PEM file's lines (azure-cli
    `role/custom.py`, `_get_public`).
    """
    try:
        raw = base64.b64decode("".join(str(content).split()), validate=True)
        is_pem = raw.lstrip().startswith(b"-----BEGIN")
        certificate = x509.load_pem_x509_certificate(raw) if is_pem else x509.load_der_x509_certificate(raw)
    except (binascii.Error, ValueError):
        raise refusal("Request_BadRequest value", name="keyCredentials") from None
    if not isinstance(certificate.public_key(), rsa.RSAPublicKey):
        raise refusal("Request_BadRequest value", name="keyCredentials")
    return certificate


def _date(body: Mapping[str, Any], name: str, default: datetime) -> datetime:
    if body.get(name) is None:
        return default
    try:
        return parse_rfc3339(str(body[name]))
    except ValueError as error:
        raise refusal("Request_BadRequest date", name=name, problem=error) from None


def password_json(password: PasswordCredential) -> dict[str, Any]:
    """A client secret without its value."""
    return {
        "keyId": password.key_id,
        "displayName": password.display_name,
        "hint": password.hint,
        "startDateTime": rfc3339(password.start),
        "endDateTime": rfc3339(password.end),
    }


def password_dates(body: Mapping[str, Any]) -> tuple[datetime, datetime]:
    """Start and end of a requested secret, by default now and two years later; raises 400."""
    start = _date(body, "startDateTime", clock.now())
    return start, _date(body, "endDateTime", start + _PASSWORD_LIFETIME)


def _key_json(key: KeyCredential, with_content: bool) -> dict[str, Any]:
    return {
        "keyId": key.key_id,
        "type": "AsymmetricX509Cert",
        "usage": "Verify",
        "displayName": key.display_name,
        "customKeyIdentifier": base64.b64encode(bytes.fromhex(key.thumbprint)).decode(),
        "startDateTime": rfc3339(key.start),
        "endDateTime": rfc3339(key.end),
        "key": base64.b64encode(key.certificate).decode() if with_content else None,
    }


def user_json(user: User) -> dict[str, Any]:
    return {
        "@odata.type": USER,
        "id": user.object_id,
        "displayName": user.display_name,
        "userPrincipalName": user.user_principal_name,
        "mail": None,
    }
