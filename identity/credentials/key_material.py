"""Reads the decoded `client_secret` of a credential document: a PEM bundle, or PKCS#12 without a password.

What is accepted is what azure-sdk-for-go accepts (`azidentity.ParseCertificates` with an empty password, then MSAL),
because the loader in every control-plane pod uses it. Problems are reported without the string they were found in.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat import asn1
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import pkcs12

_BEGIN: Final = b"-----BEGIN "
_END: Final = b"\n-----END "
_DASHES: Final = b"-----"
_QUANTUM: Final = 4


@dataclass(frozen=True)
class Block:
    """What stands between a BEGIN and its END line; `repr` hides it. `is_locked`: its headers ask for a password."""

    label: str
    content: bytes = field(repr=False)
    is_locked: bool

    def text(self, label: str) -> bytes:
        """The block in PEM under this label."""
        return f"-----BEGIN {label}-----\n{base64.encodebytes(self.content).decode()}-----END {label}-----\n".encode()


def standard_base64(data: bytes) -> bytes:
    """Go's base64.StdEncoding: padded, line ends ignored. Raises binascii.Error."""
    digits = data.translate(None, b"\r\n")
    # Python's strict mode takes one padding character too many, and whole quanta of them behind the last full one.
    if len(digits) % _QUANTUM or digits.endswith(b"==="):
        raise binascii.Error("incorrect padding")
    return binascii.a2b_base64(digits, strict_mode=True)


def pem_blocks(text: bytes) -> list[Block]:
    """Every PEM block that Go's pem.Decode finds; malformed text is skipped, as there."""
    parsed, position = [], 0
    while (end := text.find(_END, position)) >= 0:
        begin, position = text.rfind(_BEGIN, position, end), end + len(_END)
        if begin < 0 or text[begin - 1 : begin] not in (b"", b"\n"):
            continue
        block = _block(text[begin + len(_BEGIN) : end + 1], _line(text, position))
        if block is not None:
            parsed.append(block)
            position = text.find(b"\n", position) + 1 or len(text)
    return parsed


def _block(opened: bytes, closing: bytes) -> Block | None:
    """The block of what follows `-----BEGIN ` and the rest of its END line; None if they do not fit."""
    title = _line(opened, 0)
    if not title.endswith(_DASHES) or closing != title:
        return None
    headers, body = _headers(opened.partition(b"\n")[2])
    try:
        content = standard_base64(body.translate(None, b" \t"))
        label = title.removesuffix(_DASHES).decode("ascii")
    except ValueError:  # binascii.Error and UnicodeDecodeError are kinds of it
        return None
    return Block(label, content, is_locked=any(b"ENCRYPTED" in header for header in headers))


def _headers(body: bytes) -> tuple[list[bytes], bytes]:
    headers = []
    while b":" in (line := _line(body, 0)):
        headers.append(line)
        body = body.partition(b"\n")[2]
    return headers, body


def _line(text: bytes, start: int) -> bytes:
    """The line that begins at `start`, without its end and the blanks before that."""
    end = text.find(b"\n", start)
    line = text[start:] if end < 0 else text[start:end].removesuffix(b"\r")
    return line.rstrip(b" \t")


# The loader's labels of a private key: PKCS#8 (or PKCS#1 under that name), and PKCS#1.
_KEYS: Final = ("PRIVATE KEY", "RSA PRIVATE KEY")

_SHA1: Final = x509.ObjectIdentifier("1.3.14.3.2.26")
_PBES2: Final = asn1.encode_der(x509.ObjectIdentifier("1.2.840.113549.1.5.13"))

_FIX_PEM: Final = "write the key (PKCS#8 PEM, no password) and its certificate (PEM) one after the other"


class UnreadableKeyMaterialError(ValueError):
    """`problems`: what is wrong and how to fix it, one sentence each."""

    def __init__(self, *problems: str) -> None:
        super().__init__(*problems)
        self.problems = problems


@dataclass(frozen=True)
class KeyMaterial:
    """An RSA private key and its certificates, the key's own one first. `repr` hides the key."""

    private_key: RSAPrivateKey = field(repr=False)
    chain: tuple[x509.Certificate, ...]

    def pem(self) -> bytes:
        """Key (PKCS#8) and chain as one PEM bundle, the form azure-identity takes."""
        key = self.private_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return key + b"".join(certificate.public_bytes(serialization.Encoding.PEM) for certificate in self.chain)


# Tag of a certificate's version; version 1 has none.
_VERSION_TAG: Final = b"\xa0"


@asn1.sequence
class _Signed:
    """A certificate, as far as its signature (RFC 5280, 4.1)."""

    content: list[asn1.TLV]
    algorithm: asn1.TLV
    signature: asn1.BitString


@asn1.sequence
class _DigestInfo:
    """Hash algorithm with its parameters, and a hash (RFC 8017, A.2.4)."""

    algorithm: list[asn1.TLV]
    digest: bytes


@asn1.sequence
class _MacData:
    mac: _DigestInfo
    salt: bytes
    iterations: int | None


@asn1.sequence
class _Pfx:
    """A PKCS#12 file with a MAC (RFC 7292, section 4)."""

    version: int
    content: asn1.TLV
    mac_data: _MacData


def parse(data: bytes) -> KeyMaterial:
    """The key material in `data`; raises `UnreadableKeyMaterialError`."""
    blocks = pem_blocks(data)
    key, certificates = _from_pem(blocks) if blocks else _from_pkcs12(data)
    if not isinstance(key, RSAPrivateKey):
        kind = type(key).__name__.removesuffix("PrivateKey")
        raise UnreadableKeyMaterialError(
            f"found a private key of type {kind}; accepted: RSA; issue the certificate with an RSA key"
        )
    own = [certificate for certificate in certificates if _belongs_to(certificate, key)]
    if not own:
        raise UnreadableKeyMaterialError(
            f"found a private key that belongs to none of the {len(certificates)} certificate(s); "
            "store the certificate that was issued for this key"
        )
    # MSAL for Go signs with the last certificate of the key.
    return KeyMaterial(key, (*reversed(own), *(certificate for certificate in certificates if certificate not in own)))


def _from_pem(blocks: Sequence[Block]) -> tuple[PrivateKeyTypes, Sequence[x509.Certificate]]:
    keys = [block for block in blocks if block.label in _KEYS]
    others = [block for block in blocks if block.label.endswith("PRIVATE KEY") and block not in keys]
    certificates = [block for block in blocks if block.label == "CERTIFICATE"]
    problems = []
    if not certificates:
        problems.append(f"found PEM without a certificate; {_FIX_PEM}")
    if len(keys) > 1:
        problems.append(f"found {len(keys)} private keys; accepted: one; keep the key of the certificate")
    elif any(block.is_locked or block.label.startswith("ENCRYPTED") for block in keys or others):
        problems.append(f"found a private key with a password, which nobody can enter in a pod; {_FIX_PEM}")
    elif not keys:
        other = f" that the loader in the pods reads (there is {others[0].label})" if others else ""
        problems.append(f"found PEM without a private key{other}; {_FIX_PEM}")
    if problems:
        raise UnreadableKeyMaterialError(*problems)
    key = _private_key(keys[0])
    if key is None:
        problems.append(f"found a PEM private key that cannot be read; {_FIX_PEM}")
    parsed = [_certificate(block) for block in certificates]
    if None in parsed:
        problems.append(f"found a PEM certificate that cannot be read; {_FIX_PEM}")
    if key is None or problems:
        raise UnreadableKeyMaterialError(*problems)
    return key, [certificate for certificate in parsed if certificate]


def _private_key(block: Block) -> PrivateKeyTypes | None:
    # A PKCS#1 key may be called PRIVATE KEY, but no PKCS#8 key RSA PRIVATE KEY.
    for label in dict.fromkeys((block.label, "RSA PRIVATE KEY")):
        try:
            return serialization.load_pem_private_key(block.text(label), password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            continue
    return None


def _certificate(block: Block) -> x509.Certificate | None:
    try:
        certificate = x509.load_der_x509_certificate(block.content)
    except (ValueError, x509.InvalidVersion):
        return None
    return certificate if _is_sound(certificate) else None


def _is_sound(certificate: x509.Certificate) -> bool:
    """Whether all of it can be read: Go reads at once what `cryptography` reads on demand."""
    try:
        for name in ("subject", "issuer", "extensions", "not_valid_before_utc", "not_valid_after_utc"):
            getattr(certificate, name)
        return certificate.serial_number >= 0 and _names_one_algorithm(certificate)
    except x509.UnsupportedGeneralNameType:  # names that Go passes over
        return True
    except (ValueError, IndexError, x509.DuplicateExtension):
        return False


def _names_one_algorithm(certificate: x509.Certificate) -> bool:
    """Whether its algorithm is the one inside of what was signed (RFC 5280, 4.1.1.2)."""
    signed = asn1.decode_der(_Signed, certificate.public_bytes(serialization.Encoding.DER))
    has_version = signed.content[0].tag_bytes == _VERSION_TAG
    inner = signed.content[2 if has_version else 1]
    return (inner.tag_bytes, inner.data) == (signed.algorithm.tag_bytes, signed.algorithm.data)


def _from_pkcs12(data: bytes) -> tuple[PrivateKeyTypes, Sequence[x509.Certificate]]:
    digest = _mac_digest(data)
    if digest is None:
        raise UnreadableKeyMaterialError(
            f"found {len(data)} bytes that are neither PEM nor PKCS#12; accepted: a PEM bundle of key and certificate, "
            f"or PKCS#12 without a password; {_FIX_PEM}"
        )
    if digest != _SHA1 or _PBES2 in data:
        raise UnreadableKeyMaterialError(
            "found PKCS#12 with modern algorithms, which the loader in the pods cannot read; "
            f"accepted: SHA-1 MAC and 3DES encryption (`openssl pkcs12 -export -legacy`); better: {_FIX_PEM}"
        )
    bundle = _load_pkcs12(data)
    if bundle is None:
        raise UnreadableKeyMaterialError(f"found PKCS#12 that does not open with an empty password; {_FIX_PEM}")
    key, certificate, others = bundle
    if key is None:
        raise UnreadableKeyMaterialError(f"found PKCS#12 without a private key; {_FIX_PEM}")
    certificates = [*([certificate] if certificate else []), *others]
    if not certificates:
        raise UnreadableKeyMaterialError(f"found PKCS#12 without a certificate; {_FIX_PEM}")
    if not all(map(_is_sound, certificates)):
        raise UnreadableKeyMaterialError(f"found PKCS#12 with a certificate that cannot be read; {_FIX_PEM}")
    return key, certificates


def _load_pkcs12(data: bytes) -> tuple[PrivateKeyTypes | None, x509.Certificate | None, list[x509.Certificate]] | None:
    # Writers disagree on what "no password" means in PKCS#12: absent, or the empty string.
    for password in (None, b""):
        try:
            return pkcs12.load_key_and_certificates(data, password)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            continue
    return None


def _mac_digest(pfx: bytes) -> x509.ObjectIdentifier | None:
    """The MAC's hash; None if `pfx` is not a PKCS#12 file with a MAC."""
    try:
        algorithm, *_ = asn1.decode_der(_Pfx, pfx).mac_data.mac.algorithm
        digest: x509.ObjectIdentifier = algorithm.parse(x509.ObjectIdentifier)
    except ValueError:  # also without an algorithm
        return None
    return digest


def _belongs_to(certificate: x509.Certificate, key: RSAPrivateKey) -> bool:
    try:
        return certificate.public_key() == key.public_key()
    except (ValueError, UnsupportedAlgorithm):  # read on demand only, and nobody asks for the rest of a chain
        return False
