"""RSA keys with their certificates: issued here, or read from PEM or PKCS#12."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

KEY_SIZES: Final = (2048, 3072, 4096)
# A certificate is valid from this long before its issue, for hosts with a slow clock.
CLOCK_SKEW: Final = timedelta(minutes=5)
PEM_BEGINS: Final = b"-----BEGIN"


class UnreadableKeyMaterialError(ValueError):
    """Neither PEM nor PKCS#12 with one RSA key and its certificate; the message does not contain it."""


class ForeignKeyKindError(UnreadableKeyMaterialError):
    """The private key is of another kind than RSA."""


@dataclass(frozen=True)
class KeyMaterial:
    """An RSA private key and its certificates, the key's own one first. `repr` hides the key."""

    private_key: RSAPrivateKey = field(repr=False)
    chain: tuple[x509.Certificate, ...]

    @property
    def certificate(self) -> x509.Certificate:
        return self.chain[0]

    def pem(self) -> bytes:
        """Key (PKCS#8) and chain as one PEM bundle, the form azure-identity takes."""
        return private_pem(self.private_key) + b"".join(
            certificate.public_bytes(Encoding.PEM) for certificate in self.chain
        )


def issue(common_name: str, *, key_size: int = KEY_SIZES[0], not_before: datetime, lifetime: timedelta) -> KeyMaterial:
    """A new key with a self-signed certificate for client authentication; dates are cut to the second."""
    key = generate_private_key(public_exponent=65537, key_size=key_size)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    start = not_before.replace(microsecond=0)
    certificate = (
        x509.CertificateBuilder(issuer_name=name, subject_name=name, public_key=key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + lifetime)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return KeyMaterial(key, (certificate,))


def parse(data: bytes, password: bytes | None = None) -> KeyMaterial:
    """The key material in a PEM bundle, or in PKCS#12 (None: no password); raises `UnreadableKeyMaterialError`."""
    try:
        key, certificates = _from_pem(data) if PEM_BEGINS in data else _from_pkcs12(data, password)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise UnreadableKeyMaterialError("neither PEM nor PKCS#12 with a key and a certificate") from None
    if not isinstance(key, RSAPrivateKey):
        raise ForeignKeyKindError("the private key is not an RSA key")
    own = [certificate for certificate in certificates if certificate.public_key() == key.public_key()]
    if not own:
        raise UnreadableKeyMaterialError("no certificate belongs to the private key")
    return KeyMaterial(key, (*own, *(certificate for certificate in certificates if certificate not in own)))


def thumbprint(certificate: x509.Certificate) -> str:
    """SHA-1 of the certificate in upper-case hexadecimal: a name Entra ID gives it, not a protection."""
    return certificate.fingerprint(hashes.SHA1()).hex().upper()  # noqa: S303


def private_pem(key: PrivateKeyTypes) -> bytes:
    """The key as PKCS#8 in PEM, without a password."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def as_pkcs12(material: KeyMaterial) -> bytes:
    """The form that HashiCorp's providers take, with an empty password."""
    own, *others = material.chain
    return pkcs12.serialize_key_and_certificates(None, material.private_key, own, others, NoEncryption())


def _from_pem(data: bytes) -> tuple[object, Sequence[x509.Certificate]]:
    return load_pem_private_key(data, password=None), x509.load_pem_x509_certificates(data)


def _from_pkcs12(data: bytes, password: bytes | None) -> tuple[object, Sequence[x509.Certificate]]:
    # Writers disagree whether "no password" is absent or the empty string.
    for candidate in (password,) if password else (None, b""):
        try:
            key, certificate, others = pkcs12.load_key_and_certificates(data, candidate)
        except ValueError:
            continue
        return key, [*([certificate] if certificate else []), *others]
    raise ValueError("not PKCS#12 that opens with this password")
