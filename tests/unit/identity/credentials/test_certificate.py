"""An issued certificate is what Entra ID and MSAL accept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from identity.credentials.certificate import IssuedCertificate, issue
from identity.credentials.certificate_rules import KEY_SIZES

START = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


def parsed(issued: IssuedCertificate) -> x509.Certificate:
    return x509.load_pem_x509_certificate(issued.certificate_pem.encode())


def test_the_certificate_is_self_signed_and_has_the_given_lifetime() -> None:
    issued = issue("hc1-ingress", not_before=START, lifetime=timedelta(days=90))
    own = parsed(issued)
    key = own.public_key()
    assert isinstance(key, rsa.RSAPublicKey)
    key.verify(own.signature, own.tbs_certificate_bytes, padding.PKCS1v15(), hashes.SHA256())
    assert own.subject == own.issuer
    assert own.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "hc1-ingress"
    assert (own.not_valid_before_utc, own.not_valid_after_utc) == (START, START + timedelta(days=90))
    assert (issued.not_before, issued.not_after) == (START, START + timedelta(days=90))


def test_it_is_for_client_authentication_only_and_shows_no_key() -> None:
    issued = issue("x", not_before=START, lifetime=timedelta(days=1))
    extensions = parsed(issued).extensions
    assert list(extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert not extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert extensions.get_extension_for_class(x509.KeyUsage).value.digital_signature
    assert issued.thumbprint == parsed(issued).fingerprint(hashes.SHA1()).hex().upper()  # noqa: S303
    assert "PRIVATE KEY" not in repr(issued)
    assert issued.thumbprint in repr(issued)


@pytest.mark.parametrize("size", KEY_SIZES)
def test_the_key_is_pkcs8_of_the_given_size_and_fits_the_certificate(size: int) -> None:
    issued = issue("x", key_size=size, not_before=START, lifetime=timedelta(days=1))
    assert issued.private_key_pem.startswith("-----BEGIN PRIVATE KEY-----\n")
    key = serialization.load_pem_private_key(issued.private_key_pem.encode(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    assert key.key_size == size
    assert key.public_key() == parsed(issued).public_key()


def test_every_issue_makes_a_new_key_and_serial_number() -> None:
    one, other = (issue("x", not_before=START, lifetime=timedelta(days=1)) for _ in range(2))
    assert one.private_key_pem != other.private_key_pem
    assert parsed(one).serial_number != parsed(other).serial_number


def test_the_start_is_cut_to_the_second_and_kept_in_utc() -> None:
    elsewhere = START.astimezone(timezone(timedelta(hours=2))).replace(microsecond=999_999)
    issued = issue("x", not_before=elsewhere, lifetime=timedelta(days=1))
    assert issued.not_before == parsed(issued).not_valid_before_utc == START


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"key_size": 1024}, "key size 1024: accepted are 2048, 3072, 4096 bits"),
        ({"common_name": ""}, "accepted are 1 to 64 characters"),
        ({"common_name": "x" * 65}, "accepted are 1 to 64 characters"),
        ({"not_before": START.replace(tzinfo=None)}, "a time zone is required"),
        ({"lifetime": timedelta(0)}, "lives at least one second"),
    ],
)
def test_what_no_certificate_can_be_is_refused(change: dict[str, object], message: str) -> None:
    arguments = {"common_name": "x", "not_before": START, "lifetime": timedelta(days=1), **change}
    with pytest.raises(ValueError, match=message):
        issue(**arguments)  # type: ignore[arg-type]
