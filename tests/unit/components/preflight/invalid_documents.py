"""Credential documents that no consumer takes, each with the line of the report."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import pkcs12

from identity.credentials import rfc3339
from identity.credentials.certificate import IssuedCertificate
from tests.unit.components.world import REGISTRY, TENANT
from tests.unit.identity.credentials.documents import certificate_of, key_of, pem_of, signed_by
from tests.unit.identity.credentials.world import certificate, document

MARKER: Final = "MARKERMARKERMARKER"
OTHER: Final = "cccccccc-0000-4000-8000-000000000001"
_ENTRY: Final = "write the key (PKCS#8 PEM, no password) and its certificate (PEM) one after the other"


@dataclass(frozen=True)
class InvalidDocument:
    """A change that makes a valid document invalid: fields (None drops one) or the whole document, and the problem."""

    name: str
    change: Callable[[IssuedCertificate], dict[str, Any] | str]
    problem: str

    def text(self, issued: IssuedCertificate) -> str:
        """The document."""
        change = self.change(issued)
        return change if isinstance(change, str) else changed(issued, **change)

    def expected_problem(self, issued: IssuedCertificate) -> str:
        """The line of the report; `<validity>` is the certificate's."""
        validity = " to ".join(map(rfc3339.render, (issued.not_before, issued.not_after)))
        return self.problem.replace("<validity>", validity)


def changed(issued: IssuedCertificate, **fields: Any) -> str:
    valid = json.loads(document(issued, tenant_id=TENANT, client_id=REGISTRY["clientId"]))
    return json.dumps({key: value for key, value in {**valid, **fields}.items() if value is not None})


def bundle(*parts: bytes | str) -> dict[str, str]:
    """A `client_secret` of these parts."""
    data = b"".join(part.encode() if isinstance(part, str) else part for part in parts)
    return {"client_secret": base64.b64encode(data).decode()}


def pfx(issued: IssuedCertificate) -> bytes:
    own = certificate_of(issued)
    return pkcs12.serialize_key_and_certificates(b"x", key_of(issued), own, None, serialization.NoEncryption())


def of_another_kind(issued: IssuedCertificate, key: Any) -> dict[str, str]:
    """Key and certificate that are no RSA pair of 2048 bits, with the same validity."""
    own = signed_by(key, hashes.SHA256(), start=issued.not_before, end=issued.not_after)
    return bundle(pem_of(key), own)


def dates(**moments: str) -> Callable[[IssuedCertificate], dict[str, Any]]:
    return lambda issued: dict(moments)


INVALID: Final = (
    InvalidDocument(
        "no JSON",
        lambda issued: f'{{"client_secret": "{MARKER}"',
        "document: found no JSON object (Expecting ',' delimiter at line 1, column 39; 38 characters); accepted: the "
        "JSON of UserAssignedIdentityCredentials in UTF-8 without a byte-order mark; store the document itself, "
        "wrapped exactly as objectEncoding states",
    ),
    InvalidDocument(
        "camelCase",
        lambda issued: {"client_secret": None, "clientSecret": MARKER},
        "client_secret: found nothing; accepted: standard padded base64 of a PEM bundle or of PKCS#12 without a "
        'password; rename "clientSecret" to "client_secret"',
    ),
    InvalidDocument(
        "missing date",
        lambda issued: {"not_before": None},
        "not_before: found nothing; accepted: RFC 3339, such as 2026-01-31T09:30:00Z; add it",
    ),
    InvalidDocument(
        "type",
        lambda issued: {"client_secret": [MARKER]},
        "client_secret: found a list; accepted: standard padded base64 of a PEM bundle or of PKCS#12 without a "
        "password; write it as a JSON string",
    ),
    InvalidDocument(
        "authority",
        lambda issued: {"authentication_endpoint": f"http://{MARKER}/?"},
        "authentication_endpoint: found a string of 27 characters that is not shown; accepted: an https URL of the "
        "authority, such as https://login.microsoftonline.com/; correct it",
    ),
    InvalidDocument(
        "base64",
        lambda issued: {"client_secret": f"{MARKER}%"},
        "client_secret: found 19 characters that are not base64; accepted: standard padded base64 of a PEM bundle or "
        "of PKCS#12 without a password; encode the bundle with `base64 -w0`",
    ),
    InvalidDocument(
        "neither PEM nor PKCS#12",
        lambda issued: bundle(MARKER),
        "client_secret: found 18 bytes that are neither PEM nor PKCS#12; accepted: a PEM bundle of key and "
        f"certificate, or PKCS#12 without a password; {_ENTRY}",
    ),
    InvalidDocument(
        "PEM that is broken",
        lambda issued: bundle(
            f"-----BEGIN PRIVATE KEY-----\n{MARKER}==\n-----END PRIVATE KEY-----\n{issued.certificate_pem}"
        ),
        f"client_secret: found a PEM private key that cannot be read; {_ENTRY}",
    ),
    InvalidDocument(
        "PEM without a certificate",
        lambda issued: bundle(issued.private_key_pem),
        f"client_secret: found PEM without a certificate; {_ENTRY}",
    ),
    InvalidDocument(
        "modern PKCS#12",
        lambda issued: bundle(pfx(issued)),
        "client_secret: found PKCS#12 with modern algorithms, which the loader in the pods cannot read; accepted: "
        f"SHA-1 MAC and 3DES encryption (`openssl pkcs12 -export -legacy`); better: {_ENTRY}",
    ),
    InvalidDocument(
        "another certificate's key",
        lambda issued: bundle(issued.private_key_pem, certificate().certificate_pem),
        "client_secret: found a private key that belongs to none of the 1 certificate(s); store the certificate that "
        "was issued for this key",
    ),
    InvalidDocument(
        "no RSA",
        lambda issued: of_another_kind(issued, ec.generate_private_key(ec.SECP256R1())),
        "client_secret: found a private key of type EC; accepted: RSA; issue the certificate with an RSA key",
    ),
    InvalidDocument(
        "short key",
        lambda issued: of_another_kind(issued, rsa.generate_private_key(65537, 1024)),  # noqa: S505
        "client_secret: found an RSA key of 1024 bits; accepted: 2048 or more; issue a new certificate",
    ),
    InvalidDocument(
        "a date before the certificate's",
        dates(not_before="2020-01-01T00:00:00Z"),
        "not_before: found a date before the certificate's validity (<validity>); accepted: a date within "
        "it; copy it from the certificate",
    ),
    InvalidDocument(
        "dates in the wrong order",
        dates(renew_after="2020-01-01T00:00:00Z"),
        'renew_after: found "2020-01-01T00:00:00Z", which is not after not_before; accepted: RFC 3339, such as '
        "2026-01-31T09:30:00Z; correct the dates",
    ),
    InvalidDocument(
        "expired",
        dates(not_after="2020-01-01T00:00:00Z"),
        'not_after: found "2020-01-01T00:00:00Z", which is in the past; accepted: RFC 3339, such as '
        "2026-01-31T09:30:00Z; issue the credential again",
    ),
    InvalidDocument(
        "not valid yet",
        dates(not_before="2999-01-01T00:00:00Z"),
        'not_before: found "2999-01-01T00:00:00Z", which is in the future; accepted: RFC 3339, such as '
        "2026-01-31T09:30:00Z; wait until it is valid",
    ),
    InvalidDocument(
        "another tenant",
        lambda issued: {"tenant_id": OTHER},
        f'tenant_id: found "{OTHER}"; accepted: "{TENANT}", as configured; take the credential of this identity, or '
        "correct the configuration",
    ),
    InvalidDocument(
        "another client",
        lambda issued: {"client_id": OTHER},
        f'client_id: found "{OTHER}"; accepted: "{REGISTRY["clientId"]}", as configured; take the credential of this '
        "identity, or correct the configuration",
    ),
    InvalidDocument(
        "size",
        lambda issued: changed(issued, extra="x" * (25 * 1024 + 1 - len(changed(issued, extra="")))),
        "size: found 25601 bytes; accepted: at most 25600, Key Vault's limit; store the key with its own certificate "
        "only",
    ),
)
