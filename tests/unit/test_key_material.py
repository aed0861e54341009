"""The search for key material finds a planted key, in whatever form somebody may write one."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from typing import Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from identity.credentials.certificate import IssuedCertificate, issue
from identity.credentials.service_account_key import ETCD_KEY_BYTES
from localcloud.testing.running import clock
from tests.engine.key_material import KeySearch
from tests.unit.identity.credentials.world import document

Write = Callable[[IssuedCertificate], bytes]

_OBJECT_ENCODINGS: Final = ("utf-8", "hex", "base64")


@cache
def issued() -> IssuedCertificate:
    return issue("test", not_before=clock.now(), lifetime=timedelta(days=1))


def key(of: IssuedCertificate) -> RSAPrivateKey:
    loaded = load_pem_private_key(of.private_key_pem.encode(), None)
    assert isinstance(loaded, RSAPrivateKey)
    return loaded


@pytest.fixture(scope="module")
def search() -> KeySearch:
    return KeySearch({"one": key(issued())})


def _pem(of: IssuedCertificate) -> bytes:
    return of.private_key_pem.encode()


def _pkcs1(of: IssuedCertificate, encoding: Encoding = Encoding.PEM) -> bytes:
    return key(of).private_bytes(encoding, PrivateFormat.TraditionalOpenSSL, NoEncryption())


def _der(of: IssuedCertificate) -> bytes:
    return key(of).private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())


def _bundle(of: IssuedCertificate) -> bytes:
    return base64.b64encode(f"{of.private_key_pem}{of.certificate_pem}".encode())


def _jwk(of: IssuedCertificate) -> bytes:
    exponent = key(of).private_numbers().d.to_bytes(256, "big")
    return json.dumps({"kty": "RSA", "d": base64.urlsafe_b64encode(exponent).decode().rstrip("=")}).encode()


def _number(of: IssuedCertificate, name: str, form: str) -> bytes:
    return f"{getattr(key(of).private_numbers(), name):{form}}".encode()


def _openssl_text(of: IssuedCertificate) -> bytes:
    """As `openssl rsa -text` prints a number: fifteen bytes a line, with colons."""
    digits = key(of).private_numbers().p.to_bytes(128, "big").hex(":")
    return b"prime1:\n" + b"\n".join(b"    " + digits[at : at + 45].encode() for at in range(0, len(digits), 45))


def _document(of: IssuedCertificate, object_encoding: str) -> bytes:
    return document(of, object_encoding=object_encoding).encode()


def _in_state(of: IssuedCertificate) -> bytes:
    return json.dumps({"outputs": {"document": json.dumps(json.dumps(of.private_key_pem))}}).encode()


_FORMS: Final[dict[str, Write]] = {
    "PEM": _pem,
    "PEM of PKCS#1": _pkcs1,
    "PEM in nested JSON": _in_state,
    "lines of PEM in another order": lambda of: b"\n".join(reversed(_pem(of).splitlines())),
    "DER": _der,
    "DER of PKCS#1": lambda of: _pkcs1(of, Encoding.DER),
    "DER in base64": lambda of: base64.b64encode(_der(of)),
    "DER in URL-safe base64": lambda of: base64.urlsafe_b64encode(_der(of)),
    "DER in lines of base64": lambda of: base64.encodebytes(_der(of)),
    "DER in hexadecimal": lambda of: _der(of).hex().upper().encode(),
    "base64 of base64": lambda of: base64.b64encode(base64.b64encode(_der(of))),
    "client_secret": _bundle,
    "client_secret behind one byte": lambda of: base64.b64encode(b"x" + _bundle(of)),
    "JSON Web Key": _jwk,
    "text of OpenSSL": _openssl_text,
    "compressed": lambda of: gzip.compress(_pem(of)),
    "compressed in two parts": lambda of: gzip.compress(b"first") + gzip.compress(_pem(of)),
    "compressed and cut short": lambda of: gzip.compress(_pem(of))[:-8],
    **{
        f"{name} {form}": lambda of, name=name, form=form: _number(of, name, form)  # type: ignore[misc]
        for name in ("d", "p", "q", "dmp1", "dmq1", "iqmp")
        for form in ("d", "x", "X")
    },
    **{
        f"document in {object_encoding}": lambda of, object_encoding=object_encoding: _document(of, object_encoding)  # type: ignore[misc]
        for object_encoding in _OBJECT_ENCODINGS
    },
}


@pytest.mark.parametrize("write", _FORMS.values(), ids=_FORMS)
def test_a_planted_key_is_found_in_every_form(search: KeySearch, write: Write) -> None:
    written = write(issued())
    planted = written if written.startswith(b"\x1f\x8b") else b"before " + written + b" behind"

    assert search.names_in(planted) == {"one"}


def test_one_line_of_the_private_part_is_enough(search: KeySearch) -> None:
    lines = _pem(issued()).splitlines()

    assert search.names_in(b'{"error": "' + lines[len(lines) // 2] + b'"}') == {"one"}


def test_what_is_public_of_a_key_is_not_found(search: KeySearch) -> None:
    of = issued()
    certificate = x509.load_pem_x509_certificate(of.certificate_pem.encode())
    public = key(of).public_key()
    written = [
        of.certificate_pem.encode(),
        certificate.public_bytes(Encoding.DER),
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        str(public.public_numbers().n).encode(),
        f"{public.public_numbers().n:x}".encode(),
        base64.b64encode(of.certificate_pem.encode()),
        of.thumbprint.encode(),
    ]
    assert [content for content in written if search.names_in(content)] == []


def test_another_key_is_not_found() -> None:
    other = issue("other", not_before=clock.now(), lifetime=timedelta(days=1))

    assert KeySearch({"other": key(other)}).names_in(_pem(issued())) == set()


def test_only_places_with_keys_are_named(search: KeySearch) -> None:
    assert search.places_in([("clean", b"nothing"), ("state", _pem(issued()))]) == {"state": {"one"}}


_SHORT: Final = bytes(range(7, 7 + ETCD_KEY_BYTES))


@pytest.mark.parametrize(
    "written",
    [
        _SHORT,
        base64.b64encode(_SHORT),
        base64.b64encode(b"x" + _SHORT),
        base64.urlsafe_b64encode(_SHORT),
        base64.b64encode(base64.b64encode(_SHORT)),
        _SHORT.hex().encode(),
        _SHORT.hex(":").encode(),
        json.dumps({"data": {"key": base64.b64encode(_SHORT).decode()}}).encode(),
    ],
    ids=[
        "bytes",
        "base64",
        "behind one byte",
        "URL-safe",
        "base64 of base64",
        "hexadecimal",
        "with colons",
        "a Secret",
    ],
)
def test_a_key_of_a_few_bytes_is_found_whole(written: bytes) -> None:
    search = KeySearch({"etcd": _SHORT})

    assert search.names_in(b"before " + written + b" behind") == {"etcd"}
    assert search.names_in(written[: len(written) // 2]) == set()
