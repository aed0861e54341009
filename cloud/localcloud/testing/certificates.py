"""Client certificates that an application registers in Entra ID: self-signed, each with a key of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cryptography.hazmat.primitives.serialization import Encoding

from localcloud.core import certificates, clock

__all__ = ["IssuedCertificate", "issue"]


@dataclass(frozen=True)
class IssuedCertificate:
    """A certificate with its private key (PKCS#8 without a password), both as PEM; `repr` does not show the key.

    `thumbprint` is the SHA-1 of the DER form in upper-case hexadecimal, as Entra ID shows it.
    """

    certificate_pem: str
    private_key_pem: str = field(repr=False)
    thumbprint: str
    not_before: datetime
    not_after: datetime


def issue(
    common_name: str = "test", *, not_before: datetime | None = None, lifetime: timedelta = timedelta(days=90)
) -> IssuedCertificate:
    """A new certificate with an RSA key of 2048 bits; without a date it is valid since five minutes."""
    start = not_before or clock.now() - certificates.CLOCK_SKEW
    made = certificates.issue(common_name, not_before=start, lifetime=lifetime)
    certificate = made.certificate
    return IssuedCertificate(
        certificate_pem=certificate.public_bytes(Encoding.PEM).decode(),
        private_key_pem=certificates.private_pem(made.private_key).decode(),
        thumbprint=certificates.thumbprint(certificate),
        not_before=certificate.not_valid_before_utc,
        not_after=certificate.not_valid_after_utc,
    )
