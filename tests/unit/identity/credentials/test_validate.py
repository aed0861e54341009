"""A document is validated before it is stored: one error lists every problem, and none shows the key."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from hypothesis import given
from hypothesis import strategies as st

from identity.credentials.certificate import IssuedCertificate
from identity.credentials.document import MAX_BYTES, InvalidCredentialError, decode, validate
from tests.unit import cases
from tests.unit.identity.credentials.documents import (
    DAY,
    PEM,
    PFX,
    certificate_of,
    changed,
    key_of,
    legacy_pfx,
    now,
    pem_of,
    pfx,
    problems,
    signed_by,
    with_secret,
)
from tests.unit.identity.credentials.world import CLIENT, TENANT, certificate, document

PKCS1 = serialization.PrivateFormat.TraditionalOpenSSL
ENTRY = "write the key (PKCS#8 PEM, no password) and its certificate (PEM) one after the other"


class TestProblems:
    """Each names the place, what was found, what is accepted and how to fix it."""

    @pytest.mark.parametrize(
        ("expected", "fields"),
        [
            (expected, fields)
            for expected, changes in cases.read(Path(__file__).with_name("refused-fields.yaml"), globals()).items()
            for fields in changes
        ],
    )
    def test_of_a_field(self, issued: IssuedCertificate, expected: str, fields: dict[str, object]) -> None:
        assert expected in "\n".join(problems(changed(issued, **fields)))

    @pytest.mark.parametrize(
        "text", ["", "null", "[]", "{", "\ufeff{}", '{"client_id": NaN}', "[" * 10_000, "9" * 5_000, "\ud800"]
    )
    def test_of_something_that_is_no_json_object(self, text: str) -> None:
        (problem,) = problems(text)
        assert problem.startswith("document: found ")
        assert "; accepted: the JSON" in problem

    def test_of_json_that_ends_early(self) -> None:
        assert problems('{"a": "b"') == (
            "document: found no JSON object (Expecting ',' delimiter at line 1, column 10; 9 characters); accepted: "
            "the JSON of UserAssignedIdentityCredentials in UTF-8 without a byte-order mark; store the document "
            "itself, wrapped exactly as objectEncoding states",
        )

    def test_of_bytes_that_are_not_utf8(self) -> None:
        with pytest.raises(
            InvalidCredentialError, match="document: found a value that is not utf-8; accepted: the JSON"
        ):
            decode(b"\xff")

    @pytest.mark.parametrize(
        ("encoding", "name"),
        [("utf-8-sig", "UTF-8 with a byte-order mark"), ("utf-16", "UTF-16"), ("utf-16-be", "UTF-16")],
    )
    @pytest.mark.parametrize("object_encoding", ["utf-8", "base64"])
    def test_of_an_encoding_of_windows(self, encoding: str, name: str, object_encoding: str) -> None:
        stored = "{}".encode(encoding)
        wrapped = base64.b64encode(stored) if object_encoding == "base64" else stored
        with pytest.raises(InvalidCredentialError, match=f"document: found {name}; accepted: the JSON"):
            decode(wrapped, object_encoding=object_encoding)

    @pytest.mark.parametrize("encoding", ["base64", "hex"])
    def test_of_plain_json_under_another_object_encoding(self, issued: IssuedCertificate, encoding: str) -> None:
        (problem,) = problems(document(issued), now=now(), object_encoding=encoding)
        assert problem.startswith(
            f"document: found a value that is not {encoding}; accepted: the JSON, stored as {encoding}"
        )

    def test_of_a_size_beyond_key_vaults(self, issued: IssuedCertificate) -> None:
        text = changed(issued, extra="x" * MAX_BYTES)
        assert problems(text) == (
            f"size: found {len(text)} bytes; accepted: at most 25600, Key Vault's limit; "
            "store the key with its own certificate only",
        )

    def test_of_another_tenant_and_client(self, issued: IssuedCertificate) -> None:
        other = "00000000-0000-4000-8000-000000000000"
        reported = problems(document(issued), now=now(), expected_tenant=other, expected_client_id=other)
        assert reported == tuple(
            f'{name}: found "{found}"; accepted: "{other}", as configured; '
            "take the credential of this identity, or correct the configuration"
            for name, found in (("tenant_id", TENANT), ("client_id", CLIENT))
        )

    def test_letter_case_of_tenant_and_client_does_not_matter(self, issued: IssuedCertificate) -> None:
        validate(document(issued), now=now(), expected_tenant=TENANT.upper(), expected_client_id=CLIENT.upper())

    def test_of_a_certificate_that_expired_though_the_document_says_otherwise(self) -> None:
        old = certificate(age=timedelta(days=2), lifetime=DAY)
        reported = "\n".join(problems(document(old, not_after=now() + DAY, renew_after=now())))
        assert "client_secret: found a certificate valid from" in reported
        assert "accepted: one that is valid now; issue the credential again" in reported

    def test_a_clock_that_is_a_little_slow_does_not_refuse_a_new_credential(self, issued: IssuedCertificate) -> None:
        validate(document(issued), now=issued.not_before - timedelta(minutes=4))
        reported = problems(document(issued), now=issued.not_before - timedelta(minutes=6))
        assert any(problem.startswith("not_before: ") for problem in reported)


class TestKeyMaterial:
    """The decoded `client_secret`."""

    @pytest.mark.parametrize(
        ("bundle", "expected"),
        [
            (lambda own: own.private_key_pem.encode(), f"found PEM without a certificate; {ENTRY}"),
            (lambda own: own.certificate_pem.encode(), "found PEM without a private key"),
            (
                lambda own: (own.private_key_pem + own.certificate_pem.rstrip() + "x").encode(),
                "found PEM without a certificate",
            ),
            (
                lambda own: own.certificate_pem.encode() + pem_of(ec.generate_private_key(ec.SECP256R1()), PKCS1),
                "found PEM without a private key that the loader in the pods reads (there is EC PRIVATE KEY)",
            ),
            (
                lambda own: (
                    own.private_key_pem.replace("PRIVATE", "RSA PRIVATE").encode() + own.certificate_pem.encode()
                ),
                "found a PEM private key that cannot be read",
            ),
            (lambda own: PFX + b"x", f"found {len(PFX) + 1} bytes that are neither PEM nor PKCS#12"),
            (
                lambda own: (own.private_key_pem * 2 + own.certificate_pem).encode(),
                "found 2 private keys; accepted: one",
            ),
            (
                lambda own: (certificate().private_key_pem + own.certificate_pem).encode(),
                "found a private key that belongs to none of the 1 certificate(s); store the certificate that was "
                "issued for this key",
            ),
            (
                lambda own: (
                    own.certificate_pem.encode()
                    + key_of(own).private_bytes(
                        PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
                    )
                ),
                "found a private key with a password, which nobody can enter in a pod",
            ),
            (
                lambda own: (own.private_key_pem.replace("M", "A") + own.certificate_pem).encode(),
                f"found a PEM private key that cannot be read; {ENTRY}",
            ),
            (
                lambda own: (own.private_key_pem + own.certificate_pem.replace("M", "A")).encode(),
                "found a PEM certificate that cannot be read",
            ),
            (
                lambda own: pfx(own, serialization.NoEncryption()),
                "found PKCS#12 with modern algorithms, which the loader in the pods cannot read; accepted: SHA-1 MAC "
                f"and 3DES encryption (`openssl pkcs12 -export -legacy`); better: {ENTRY}",
            ),
            (
                lambda own: pfx(own, legacy_pfx(pkcs12.PBES.PBESv2SHA256AndAES256CBC)),
                "found PKCS#12 with modern algorithms, which the loader in the pods cannot read",
            ),
            (
                lambda own: pfx(own, legacy_pfx(pkcs12.PBES.PBESv1SHA1And3KeyTripleDESCBC)),
                "found PKCS#12 that does not open with an empty password",
            ),
        ],
    )
    def test_that_is_refused(
        self, issued: IssuedCertificate, bundle: Callable[[IssuedCertificate], bytes], expected: str
    ) -> None:
        (problem,) = problems(with_secret(issued, bundle(issued)))
        assert problem.startswith(f"client_secret: {expected}")

    @pytest.mark.parametrize(
        ("key", "algorithm", "kind"),
        [
            (ec.generate_private_key(ec.SECP256R1()), hashes.SHA256(), "EC"),
            (ed25519.Ed25519PrivateKey.generate(), None, "Ed25519"),
        ],
    )
    def test_every_key_but_rsa_is_refused(self, issued: IssuedCertificate, key: Any, algorithm: Any, kind: str) -> None:
        (problem,) = problems(with_secret(issued, pem_of(key) + signed_by(key, algorithm)))
        assert problem == (
            f"client_secret: found a private key of type {kind}; accepted: RSA; issue the certificate with an RSA key"
        )

    def test_a_short_rsa_key_is_refused_but_loads_as_upstream(self, issued: IssuedCertificate) -> None:
        key = rsa.generate_private_key(65537, 1024)  # noqa: S505
        bundle = pem_of(key) + signed_by(key, hashes.SHA256(), start=issued.not_before, end=issued.not_after)
        assert problems(with_secret(issued, bundle)) == (
            "client_secret: found an RSA key of 1024 bits; accepted: 2048 or more; issue a new certificate",
        )
        decode(with_secret(issued, bundle))


@pytest.mark.parametrize(
    ("found", "damaged"),
    [
        (b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x5d"),  # the version
        (b"\x0c\x09unit-test", b"\x0c\x09\xffnit-test"),  # a name that is not UTF-8
        (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b\x05\x00\x30", b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0c\x05\x00\x30"),
        (b"\x06\x03\x55\x1d\x13", b"\x06\x03\x55\x1d\x0f"),  # basic constraints, called key usage
    ],
    ids=["version", "name", "signature algorithm", "extension"],
)
def test_a_damaged_certificate_is_refused_as_upstream_does(
    issued: IssuedCertificate, found: bytes, damaged: bytes
) -> None:
    der = certificate_of(issued).public_bytes(serialization.Encoding.DER)
    assert found in der
    body = base64.encodebytes(der.replace(found, damaged, 1)).decode()
    pem = f"-----BEGIN CERTIFICATE-----\n{body}-----END CERTIFICATE-----\n"
    (problem,) = problems(with_secret(issued, (issued.private_key_pem + pem).encode()))
    assert problem.startswith("client_secret: found a PEM certificate that cannot be read; ")


class TestOneErrorTellsAll:
    MARKER = "MARKERMARKERMARKER"

    def test_every_problem_is_in_it(self, issued: IssuedCertificate) -> None:
        reported = problems(
            changed(
                issued, client_id=None, tenant_id="?", authentication_endpoint="x", not_before=None, client_secret="%"
            )
        )
        assert [problem.partition(":")[0] for problem in reported] == [
            "client_id",
            "not_before",
            "authentication_endpoint",
            "tenant_id",
            "client_secret",
        ]

    def test_the_message_lists_them_line_by_line(self, issued: IssuedCertificate) -> None:
        with pytest.raises(InvalidCredentialError) as caught:
            validate(changed(issued, client_id=None, tenant_id=None), now=now())
        lines = str(caught.value).splitlines()
        assert lines[0] == "credential document: 2 problems"
        assert lines[1:] == [f"- {problem}" for problem in caught.value.problems]

    @pytest.mark.parametrize(
        "name", ["client_secret", "client_id", "tenant_id", "authentication_endpoint", "not_before"]
    )
    @pytest.mark.parametrize("wrap", [str, lambda marker: f"-----BEGIN PRIVATE KEY-----\n{marker}", lambda m: [m]])
    def test_none_shows_what_stands_where_a_key_may_stand(
        self, issued: IssuedCertificate, name: str, wrap: Callable[[str], object]
    ) -> None:
        with pytest.raises(InvalidCredentialError) as caught:
            validate(
                changed(issued, **{name: wrap(self.MARKER)}), now=now(), expected_tenant="t", expected_client_id="c"
            )
        assert self.MARKER not in shown_by(caught.value)

    @pytest.mark.parametrize("encoding", ["utf-8", "base64", "hex"])
    def test_none_shows_a_document_that_is_no_json(self, encoding: str) -> None:
        with pytest.raises(InvalidCredentialError) as caught:
            validate(f'{{"client_secret": "{self.MARKER}"', now=now(), object_encoding=encoding)
        assert self.MARKER not in shown_by(caught.value)

    def test_a_key_that_is_not_the_certificates_is_not_shown(self, issued: IssuedCertificate) -> None:
        with pytest.raises(InvalidCredentialError) as caught:
            validate(with_secret(issued, (certificate().private_key_pem + issued.certificate_pem).encode()), now=now())
        body = issued.private_key_pem.splitlines()[1:-1]
        assert not any(line in shown_by(caught.value) for line in body)


def shown_by(error: BaseException) -> str:
    """Everything a log or a debugger's summary would show of an error: text, arguments, and the errors behind it."""
    shown = []
    link: BaseException | None = error
    while link is not None:
        shown.append(f"{link!s} {link!r} {vars(link)}")
        link = link.__cause__ or link.__context__
    return "\n".join(shown)


@given(start=st.datetimes(), end=st.datetimes())
def test_dates_of_any_year_are_no_crash(issued: IssuedCertificate, start: datetime, end: datetime) -> None:
    dates = {"not_before": f"{start.isoformat()}-23:59", "not_after": f"{end.isoformat()}+23:59"}
    assert problems(changed(issued, **dates, client_secret=None))
