"""A service principal's certificate from a file, whatever form it has: credential document, PEM or PKCS#12.

The content decides, not the file's name, and everything ends as a PKCS#8 key with its chain. So PKCS#1 keys, encrypted
keys, `.p12` and PKCS#12 with modern algorithms, at which kubelogin fails, all sign in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import pkcs12

from identity.azure.errors import LoginRefusedError
from identity.credentials import document, rfc3339
from identity.credentials.certificate import thumbprint
from identity.credentials.certificate_rules import CLOCK_SKEW
from identity.credentials.key_material import KeyMaterial

_BASE64 = re.compile(rb"MI[A-Za-z0-9+/\s]+=*")  # of DER
_ACCEPTED = "a credential document (JSON), PEM with key and certificate, or PKCS#12"
# Where a stack has the ids that a login has as options.
_OF_A_DEPLOYER: Final = {"tenant": "idstack:tenantId", "client": "ARM_CLIENT_ID"}


@dataclass(frozen=True, kw_only=True)
class CertificateFile:
    """What a file holds. A credential document also has tenant and client id."""

    pem: bytes = field(repr=False)
    certificate: x509.Certificate
    tenant_id: str | None = None
    client_id: str | None = None

    @property
    def thumbprint(self) -> str:
        """SHA-1, upper-case hexadecimal, as Entra ID shows it."""
        return thumbprint(self.certificate)


def agreed(what: str, path: str, configured: str | None, in_file: str | None) -> str:
    """The id (`what` is `tenant` or `client`) that is configured or in the file of that path.

    Raises LoginRefusedError if the two differ, or if there is neither.
    """
    if configured is not None and in_file is not None and configured.lower() != in_file.lower():
        raise LoginRefusedError(
            f"{path} is of the {what} {in_file}, but --{what}-id is {configured} (of a stack's deployer, "
            f"{_OF_A_DEPLOYER[what]}); correct one of them"
        )
    if (known := configured or in_file) is None:
        raise LoginRefusedError(f"--{what}-id is missing: {path} is not a credential document, which would have it")
    return known


def parse(path: str, data: bytes, password: bytes | None, now: datetime) -> CertificateFile:
    """The valid certificate in a file of that path, or a variable of that name; raises LoginRefusedError."""
    bundle = _document(path, data) if data.lstrip().startswith(b"{") else _bundle(path, data, password or None)
    start, end = bundle.certificate.not_valid_before_utc, bundle.certificate.not_valid_after_utc
    if end <= now:
        raise LoginRefusedError(
            f"{path}: the certificate {bundle.thumbprint} expired at {rfc3339.render(end)}; sign in with its "
            "successor: `.venv/bin/idstack status` shows when each was renewed"
        )
    if start > now + CLOCK_SKEW:
        raise LoginRefusedError(
            f"{path}: the certificate {bundle.thumbprint} is valid from {rfc3339.render(start)} on only; "
            "check this machine's clock"
        )
    return bundle


def _document(path: str, data: bytes) -> CertificateFile:
    try:
        credential = document.decode(data)
    except document.InvalidCredentialError as error:
        raise LoginRefusedError(f"{path}: {error}") from None
    return CertificateFile(
        pem=credential.key_material.pem(),
        certificate=credential.certificate,
        tenant_id=credential.tenant_id,
        client_id=credential.client_id,
    )


def _bundle(path: str, data: bytes, password: bytes | None) -> CertificateFile:
    is_pem = b"-----BEGIN " in data
    try:
        material = _pem(data, password) if is_pem else _pkcs12(data, password)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        if _BASE64.fullmatch(data.strip()):
            raise LoginRefusedError(f"{path} is PKCS#12 in base64, as Key Vault has it: `base64 --decode` it") from None
        secured = "with its password in --certificate-password-file" if password is None else "and its own password"
        raise LoginRefusedError(f"{path} cannot be read; accepted is {_ACCEPTED}, {secured} if it has one") from None
    if material is None:
        raise LoginRefusedError(
            f"{path}: there is no RSA key with its certificate in it; accepted is {_ACCEPTED}, RSA only"
        )
    return CertificateFile(pem=material.pem(), certificate=material.chain[0])


def _pem(data: bytes, password: bytes | None) -> KeyMaterial | None:
    encrypted = b"ENCRYPTED" in data
    key = serialization.load_pem_private_key(data, password if encrypted else None)
    return _material(key, x509.load_pem_x509_certificates(data))


def _pkcs12(data: bytes, password: bytes | None) -> KeyMaterial | None:
    key, certificate, others = pkcs12.load_key_and_certificates(data, password)
    return _material(key, [*([certificate] if certificate else []), *others])


def _material(key: object, certificates: list[x509.Certificate]) -> KeyMaterial | None:
    if not isinstance(key, RSAPrivateKey):
        return None
    own = [certificate for certificate in certificates if certificate.public_key() == key.public_key()]
    return (
        KeyMaterial(key, (own[0], *(certificate for certificate in certificates if certificate is not own[0])))
        if own
        else None
    )
