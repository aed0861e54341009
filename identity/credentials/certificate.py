"""Issues the self-signed client certificates that Entra ID registers for an application."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from identity.credentials.certificate_rules import KEY_SIZES, LONGEST_COMMON_NAME

# A certificate is registered under an id derived from it. So a registration whose answer got lost can be found.
_REGISTRATIONS: Final = uuid.UUID("5b4e1e36-0d7f-5b0c-9a55-1f0d7c3c6f2a")


@dataclass(frozen=True)
class IssuedCertificate:
    """A certificate with its private key. `repr` does not show the key.

    Both strings are PEM; the key is PKCS#8 without a password. `thumbprint` is the SHA-1 of the DER form in upper-case
    hexadecimal, as Entra ID shows it. The dates are UTC, whole seconds.
    """

    certificate_pem: str
    private_key_pem: str = field(repr=False)
    thumbprint: str
    not_before: datetime
    not_after: datetime


def issue(common_name: str, *, key_size: int = 2048, not_before: datetime, lifetime: timedelta) -> IssuedCertificate:
    """Make an RSA key and a self-signed certificate for it: SHA-256, client authentication, random serial number.

    `not_before` (with time zone) is used as given, cut to the second: the caller subtracts `CLOCK_SKEW`. The
    certificate ends `lifetime` later. Raises ValueError for a size that is not in `KEY_SIZES`, a name that is empty or
    longer than 64 characters, or a lifetime under a second.
    """
    if key_size not in KEY_SIZES:
        raise ValueError(f"key size {key_size}: accepted are {', '.join(map(str, KEY_SIZES))} bits")
    if not 1 <= len(common_name) <= LONGEST_COMMON_NAME:
        raise ValueError(f"common name {common_name!r}: accepted are 1 to {LONGEST_COMMON_NAME} characters (RFC 5280)")
    if not_before.tzinfo is None:
        raise ValueError(f"not_before {not_before.isoformat()}: a time zone is required")
    if lifetime < timedelta(seconds=1):
        raise ValueError(f"lifetime {lifetime}: a certificate lives at least one second")
    start = not_before.astimezone(UTC).replace(microsecond=0)
    end = (start + lifetime).replace(microsecond=0)
    key = rsa.generate_private_key(public_exponent=65537, key_size=key_size)
    certificate = _sign(common_name, key, start, end)
    return IssuedCertificate(
        certificate_pem=certificate.public_bytes(serialization.Encoding.PEM).decode("ascii"),
        private_key_pem=key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode("ascii"),
        thumbprint=thumbprint(certificate),
        not_before=start,
        not_after=end,
    )


def thumbprint(certificate: x509.Certificate) -> str:
    """SHA-1 of the certificate in upper-case hexadecimal: a name Entra ID gives it, not a protection."""
    return certificate.fingerprint(hashes.SHA1()).hex().upper()  # noqa: S303


def key_id(thumbprint: str) -> str:
    """The id under which the certificate with this thumbprint is registered: UUID version 5."""
    return str(uuid.uuid5(_REGISTRATIONS, thumbprint))


def _sign(common_name: str, key: rsa.RSAPrivateKey, start: datetime, end: datetime) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
