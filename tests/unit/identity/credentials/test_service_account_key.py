"""The signing key in the form that HyperShift reads, the documents of its issuer, and the order of its rotation."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat

from identity.credentials import openid_documents, service_account_key
from identity.credentials.openid_documents import UnusableIssuerError
from identity.credentials.service_account_key import UnusableKeyError, public_half
from identity.credentials.signing_key_rotation import (
    KEPT_AFTER,
    PUBLISHED_BEFORE,
    Publication,
    TooEarlyError,
    changed,
    first,
)

ISSUER = "https://hc1oidc.blob.core.windows.net/hc1oidc"
PUBLIC_KEY = public_half(service_account_key.make(2048)).pem


def encoded(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, password: bytes | None = None) -> str:
    encryption = BestAvailableEncryption(password) if password else NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()


def test_a_key_is_made_as_hypershift_reads_it_and_another_form_is_the_same_key() -> None:
    made, other = service_account_key.make(2048), encoded(rsa.generate_private_key(65537, 2048))

    assert service_account_key.normalize(made) == made
    assert public_half(service_account_key.normalize(other)) == public_half(other)
    for pem in (made, service_account_key.normalize(other)):
        assert pem.startswith("-----BEGIN RSA PRIVATE KEY-----")
    assert service_account_key.KEY_BITS == 4096


@pytest.mark.parametrize(
    ("pem", "what"),
    [
        ("nothing", "no private key in PEM without a password"),
        (PUBLIC_KEY, "no private key in PEM without a password"),
        (encoded(ec.generate_private_key(ec.SECP256R1())), "a private key that is not RSA"),
        (encoded(rsa.generate_private_key(65537, 1024)), "an RSA key of 1024 bits; at least 2048 are required"),  # noqa: S505
        (encoded(rsa.generate_private_key(65537, 2048), b"x"), "no private key in PEM without a password"),
    ],
    ids=["text", "public", "elliptic", "short", "encrypted"],
)
def test_what_cannot_sign_is_refused_without_showing_it(pem: str, what: str) -> None:
    with pytest.raises(UnusableKeyError) as refused:
        public_half(pem)

    assert str(refused.value) == what


def test_a_token_is_verified_with_the_published_key_that_it_names() -> None:
    pem = service_account_key.make(2048)
    key = public_half(pem)
    token = jwt.encode({"iss": ISSUER}, pem, algorithm="RS256", headers={"kid": key.key_id})

    published = jwt.PyJWKSet.from_dict(json.loads(openid_documents.jwks_document([key.jwk])))
    assert jwt.decode(token, published[jwt.get_unverified_header(token)["kid"]], ["RS256"]) == {"iss": ISSUER}


def test_the_discovery_document_is_that_of_ccoctl() -> None:
    assert json.loads(openid_documents.discovery_document(ISSUER)) == {
        "issuer": ISSUER,
        "jwks_uri": f"{ISSUER}/openid/v1/jwks",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    }
    discovery = openid_documents.discovery_document(ISSUER)
    assert openid_documents.jwks_address(discovery, ISSUER) == f"{ISSUER}/openid/v1/jwks"


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (b"<html>", "one of its documents is not JSON"),
        (b"[]", "one of its documents is not a JSON object"),
        (b'{"issuer": "https://other"}', 'its discovery document names the issuer "https://other"'),
        (
            json.dumps({"issuer": ISSUER, "jwks_uri": "http://x"}).encode(),
            "its discovery document names no jwks_uri that begins with https://",
        ),
    ],
)
def test_a_discovery_document_that_entra_could_not_use_is_refused(document: bytes, why: str) -> None:
    with pytest.raises(UnusableIssuerError) as refused:
        openid_documents.jwks_address(document, ISSUER)

    assert str(refused.value) == why


def test_only_rsa_keys_of_a_jwks_count() -> None:
    keys = [{"kty": "RSA", "kid": "a", "n": "1", "e": "2"}, {"kty": "EC", "kid": "b"}, "x"]

    assert openid_documents.published_keys(json.dumps({"keys": keys}).encode()) == {"a": ("1", "2")}
    with pytest.raises(UnusableIssuerError, match="no list of keys"):
        openid_documents.published_keys(b"{}")


START = datetime(2026, 1, 1, tzinfo=UTC)


def at(hours: float) -> datetime:
    return START + timedelta(hours=hours)


def step(before: Publication, published: list[int], signing: int, hours: float, *leaked: int) -> Publication:
    return changed(before, published, signing, at(hours), leaked=leaked)


def refusal(before: Publication, published: list[int], signing: int, hours: float) -> str:
    with pytest.raises(TooEarlyError) as refused:
        step(before, published, signing, hours)
    return str(refused.value)


def test_a_new_issuers_key_signs_at_once() -> None:
    assert first([1], 1, START) == Publication({1: START}, 1, START)
    assert first([1, 2], 2, START).signing == 2
    assert step(first([1, 2], 1, START), [1, 2], 1, 100) == first([1, 2], 1, START), "nothing changes without a step"


def test_a_rotation_has_three_steps() -> None:
    published = step(first([1], 1, START), [1, 2], 1, 10)
    assert published == Publication({1: START, 2: at(10)}, 1, START)

    switched = step(published, [1, 2], 2, 34)
    assert switched == Publication({1: START, 2: at(10)}, 2, at(34))

    assert step(switched, [2], 2, 58) == Publication({2: at(10)}, 2, at(34))
    assert step(published, [1], 1, 10.1) == first([1], 1, START), "a key that never signed may go at once"


def test_a_key_signs_a_day_after_it_was_published() -> None:
    assert timedelta(hours=24) == PUBLISHED_BEFORE
    published = step(first([1], 1, START), [1, 2], 1, 10)

    assert refusal(published, [1, 2], 2, 33.9) == (
        "key 2 has been published since 2026-01-01T10:00:00Z, and Entra ID may not know it yet; let it sign after "
        "2026-01-02T10:00:00Z"
    )
    assert refusal(first([1], 1, START), [1, 2], 2, 100) == (
        "key 2 is not published yet; publish it first, with key 1 still signing, and let it sign 24 hours later"
    )


def test_a_key_is_kept_a_day_after_it_signed() -> None:
    assert timedelta(hours=24) == KEPT_AFTER
    published = step(first([1], 1, START), [1, 2], 1, 0)
    switched = step(published, [1, 2], 2, 34)

    assert refusal(published, [2], 2, 34) == (
        "tokens of key 1 are still in use; keep it published until 24 hours after key 2 has begun to sign"
    )
    assert refusal(switched, [2], 2, 57.9) == (
        "tokens of key 1 are in use until 2026-01-03T10:00:00Z; keep it published until then"
    )


def test_a_key_that_was_switched_back_is_kept_a_day_as_well() -> None:
    published = step(first([1], 1, START), [1, 2], 1, 1)
    back = step(step(published, [1, 2], 2, 30), [1, 2], 1, 60)

    assert refusal(back, [1], 1, 83) == (
        "tokens of key 2 are in use until 2026-01-04T12:00:00Z; keep it published until then"
    )
    assert step(back, [1], 1, 84).since == {1: START}


def test_a_leak_does_not_wait_and_lets_no_other_key_go_before_its_time() -> None:
    before = first([1], 1, START)
    switched = step(step(before, [1, 2], 1, 1), [1, 2], 2, 30)

    assert step(before, [2], 2, 1, 1) == Publication({2: at(1)}, 2, at(1))
    with pytest.raises(TooEarlyError, match="key 2 is not published yet"):
        step(before, [1, 2], 2, 1, 7)
    with pytest.raises(TooEarlyError, match="tokens of key 1 are in use"):
        step(switched, [3], 3, 31, 2)
    assert step(switched, [1, 3], 3, 31, 2).signing == 3
