"""Credential documents with one thing changed, and the key material inside them."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

from identity.credentials.certificate import IssuedCertificate
from identity.credentials.document import InvalidCredentialError, validate
from tests.unit.identity.credentials.world import document

DAY = timedelta(days=1)
PEM = serialization.Encoding.PEM
VECTORS = Path(__file__).parent / "vectors"
PFX = (VECTORS / "3des-sha1.p12").read_bytes()


def now() -> datetime:
    return datetime.now(UTC)


def problems(text: str, **options: Any) -> tuple[str, ...]:
    """Every problem `validate` finds."""
    with pytest.raises(InvalidCredentialError) as caught:
        validate(text, **{"now": now(), **options})
    return caught.value.problems


def changed(issued: IssuedCertificate, **fields: object) -> str:
    """A good document with some fields replaced; `None` drops one."""
    good = json.loads(document(issued))
    return json.dumps({key: value for key, value in {**good, **fields}.items() if value is not None})


def with_secret(issued: IssuedCertificate, bundle: bytes) -> str:
    return changed(issued, client_secret=base64.b64encode(bundle).decode())


def pem_of(key: Any, form: serialization.PrivateFormat = serialization.PrivateFormat.PKCS8) -> bytes:
    return bytes(key.private_bytes(PEM, form, serialization.NoEncryption()))


def key_of(issued: IssuedCertificate) -> rsa.RSAPrivateKey:
    key = serialization.load_pem_private_key(issued.private_key_pem.encode(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    return key


def certificate_of(issued: IssuedCertificate) -> x509.Certificate:
    return x509.load_pem_x509_certificate(issued.certificate_pem.encode())


def signed_by(key: Any, algorithm: Any, *, start: datetime | None = None, end: datetime | None = None) -> bytes:
    """A certificate for any kind of key."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "x")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(7).not_valid_before(start or now() - DAY).not_valid_after(end or now() + 90 * DAY)
    return builder.sign(key, algorithm).public_bytes(PEM)


def pfx(issued: IssuedCertificate, encryption: serialization.KeySerializationEncryption) -> bytes:
    return pkcs12.serialize_key_and_certificates(b"x", key_of(issued), certificate_of(issued), None, encryption)


def legacy_pfx(cipher: pkcs12.PBES) -> serialization.KeySerializationEncryption:
    builder = serialization.PrivateFormat.PKCS12.encryption_builder().key_cert_algorithm(cipher)
    return builder.hmac_hash(hashes.SHA1()).build(b"password")  # noqa: S303
