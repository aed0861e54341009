"""The key that signs the tokens of a cluster's service accounts.

What HyperShift and kube-apiserver read (openshift/hypershift at 3ee9615): one PEM block that holds a PKCS#1 RSA key
(support/certs/tls.go:250), tokens whose `kid` is the hash of the public key (kubernetes pkg/serviceaccount/jwt.go,
keyIDFromPublicKey).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

# openshift/cloud-credential-operator pkg/cmd/provisioning/keypair.go, createKeys.
KEY_BITS: Final = 4096
_LEAST_BITS: Final = 2048
_BLOCK: Final = re.compile(r"-----BEGIN [^-]+-----([^-]+)-----END [^-]+-----")


class UnusableKeyError(ValueError):
    """A key that cannot sign service-account tokens; the message never shows any of it."""


@dataclass(frozen=True)
class PublicKey:
    """The public half: `key_id` is the `kid` of its tokens, `pem` its SubjectPublicKeyInfo, `jwk` its RFC 7517 form."""

    key_id: str
    pem: str
    jwk: Mapping[str, str]


def make(bits: int = KEY_BITS) -> str:
    """A new private key as HyperShift reads it: PKCS#1, PEM, no password."""
    return _encode(rsa.generate_private_key(public_exponent=65537, key_size=bits))


def normalize(pem: str) -> str:
    """A private key in the form that HyperShift reads, whatever its form was; raises UnusableKeyError."""
    return _encode(_private_key(pem))


def is_read_by_hypershift(pem: str) -> bool:
    """Whether the first block of a private key in PEM is in PKCS#1; raises UnusableKeyError if it is not an RSA key.

    OpenSSL 3 writes PKCS#8 by default.
    """
    key, block = _private_key(pem), _BLOCK.search(pem)
    form = serialization.PrivateFormat.TraditionalOpenSSL
    der = key.private_bytes(serialization.Encoding.DER, form, serialization.NoEncryption())
    return block is not None and base64.b64decode(block[1]) == der


def public_half(pem: str) -> PublicKey:
    """The public half of a private key in PEM; raises UnusableKeyError."""
    return _public(_private_key(pem).public_key())


def _private_key(pem: str) -> rsa.RSAPrivateKey:
    try:
        key = serialization.load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise UnusableKeyError("no private key in PEM without a password") from None
    if not isinstance(key, rsa.RSAPrivateKey):
        raise UnusableKeyError("a private key that is not RSA")
    if key.key_size < _LEAST_BITS:
        raise UnusableKeyError(f"an RSA key of {key.key_size} bits; at least {_LEAST_BITS} are required")
    return key


def _encode(key: rsa.RSAPrivateKey) -> str:
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


def _public(key: rsa.RSAPublicKey) -> PublicKey:
    info = serialization.PublicFormat.SubjectPublicKeyInfo
    key_id = _base64url(hashlib.sha256(key.public_bytes(serialization.Encoding.DER, info)).digest())
    numbers = key.public_numbers()
    jwk = {
        "use": "sig",
        "kty": "RSA",
        "kid": key_id,
        "alg": "RS256",
        "n": _base64url(_bytes(numbers.n)),
        "e": _base64url(_bytes(numbers.e)),
    }
    return PublicKey(key_id, key.public_bytes(serialization.Encoding.PEM, info).decode(), jwk)


def _bytes(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


ETCD_KEY_BYTES: Final = 32


def make_etcd_key() -> str:
    """A new key in base64."""
    return base64.b64encode(secrets.token_bytes(ETCD_KEY_BYTES)).decode()


def etcd_key_id(key: str) -> str:
    """An id that tells nothing of the key: its SHA-256 hash in hexadecimal. Raises UnusableKeyError."""
    try:
        raw = base64.b64decode(key, validate=True)
    except (binascii.Error, ValueError):
        raise UnusableKeyError("no key in base64") from None
    if len(raw) != ETCD_KEY_BYTES:
        raise UnusableKeyError(f"a key of {len(raw)} bytes; it has {ETCD_KEY_BYTES}")
    return hashlib.sha256(raw).hexdigest()
