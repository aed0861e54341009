"""`CertificateResource`: what is issued, what is secret, and when it is replaced."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import NameOID

from plugin import UNKNOWN, PluginError, PropertyChange, Props, Secret
from provider.certificate import CertificateResource

URN = "urn:pulumi:dev::idstack::idstack:index:Certificate::hc1-ingress-certificate-a"
INPUTS = {
    "commonName": "hc1-ingress",
    "keySize": 2048,
    "lifetimeDays": 90,
    "generation": 1,
    "notBefore": "2026-01-31T09:25:15Z",
}

resource = CertificateResource()


def issued(**changes: Any) -> Props:
    """The state after `create`."""
    return resource.create(URN, {**INPUTS, **changes}, preview=False).state


def failures(**changes: Any) -> list[tuple[str, str]]:
    return [(each.property, each.reason) for each in resource.check(URN, None, {**INPUTS, **changes}).failures]


def test_the_certificate_is_valid_from_not_before_for_its_lifetime() -> None:
    state = issued()
    certificate = x509.load_pem_x509_certificate(state["certificatePem"].encode())
    assert certificate.not_valid_before_utc == datetime(2026, 1, 31, 9, 25, 15, tzinfo=UTC), "the skew is in notBefore"
    assert certificate.not_valid_after_utc == datetime(2026, 5, 1, 9, 25, 15, tzinfo=UTC)
    assert state["notAfter"] == "2026-05-01T09:25:15Z"
    assert certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "hc1-ingress"


@pytest.mark.parametrize("size", [2048, 3072, 4096])
def test_rsa_keys_of_2048_3072_and_4096_bits_are_accepted(size: int) -> None:
    assert failures(keySize=size) == []
    state = issued(keySize=size)
    key = load_pem_private_key(state["privateKeyPem"].value.encode(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    assert key.key_size == size
    assert key.public_key() == x509.load_pem_x509_certificate(state["certificatePem"].encode()).public_key()


def test_its_id_is_the_thumbprint() -> None:
    created = resource.create(URN, INPUTS, preview=False)
    certificate = x509.load_pem_x509_certificate(created.state["certificatePem"].encode())
    thumbprint = certificate.fingerprint(hashes.SHA1()).hex().upper()  # noqa: S303
    assert created.id == created.state["thumbprint"] == thumbprint


def test_the_private_key_alone_is_secret() -> None:
    state = issued()
    assert {name for name, value in state.items() if isinstance(value, Secret)} == {"privateKeyPem"}
    assert {**state, **INPUTS} == state, "the inputs are outputs, too"


def test_a_refresh_marks_a_key_whose_mark_was_lost() -> None:
    state = issued()
    bare = {**state, "privateKeyPem": state["privateKeyPem"].value}
    refreshed = resource.read(URN, state["thumbprint"], INPUTS, bare)
    assert refreshed is not None
    assert refreshed.state == state


def test_a_preview_knows_the_end_and_keeps_the_unknown_key_secret() -> None:
    assert resource.create(URN, INPUTS, preview=True).state == {
        **INPUTS,
        "certificatePem": UNKNOWN,
        "privateKeyPem": Secret(UNKNOWN),
        "thumbprint": UNKNOWN,
        "notAfter": "2026-05-01T09:25:15Z",
    }


def test_a_preview_of_unknown_dates_knows_no_end() -> None:
    unknown = {**INPUTS, "notBefore": UNKNOWN, "generation": UNKNOWN}
    assert not resource.check(URN, None, unknown).failures
    assert resource.create(URN, unknown, preview=True).state["notAfter"] is UNKNOWN


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("commonName", "other"),
        ("keySize", 4096),
        ("lifetimeDays", 30),
        ("generation", 2),
        ("notBefore", "2026-03-18T09:25:15Z"),
        ("notBefore", UNKNOWN),
    ],
)
def test_every_change_replaces_by_create_before_delete(name: str, value: Any) -> None:
    diff = resource.diff(URN, "id", INPUTS, INPUTS, {**INPUTS, name: value})
    assert diff.changes == {name: PropertyChange("update", replace=True)}
    assert not diff.delete_before_replace


def test_other_settings_wait_for_the_next_issue() -> None:
    settings = {"commonName": "hc1-ingress-2", "keySize": 4096, "lifetimeDays": 30}
    assert resource.check(URN, INPUTS, {**INPUTS, **settings}).inputs == INPUTS, "the one in use keeps its registration"

    next_issue = {**INPUTS, **settings, "generation": 2, "notBefore": "2026-03-18T09:25:15Z"}
    assert resource.check(URN, INPUTS, next_issue).inputs == next_issue


def test_wrong_settings_are_refused_even_while_they_wait() -> None:
    assert resource.check(URN, INPUTS, {**INPUTS, "keySize": 1024}).failures


@pytest.mark.parametrize(
    ("change", "failure"),
    [
        ({"keySize": 1024}, ("keySize", "found 1024; accepted: 2048, 3072, 4096")),
        ({"keySize": None}, ("keySize", "found nothing; accepted: 2048, 3072, 4096")),
        ({"commonName": ""}, ("commonName", "found a string; accepted: a string that is not empty")),
        ({"commonName": "x" * 65}, ("commonName", "found a string; accepted: at most 64 characters (RFC 5280)")),
        ({"lifetimeDays": 0}, ("lifetimeDays", "found 0; accepted: an integer, 1 at least")),
        ({"generation": 0}, ("generation", "found 0; accepted: an integer, 1 at least")),
        ({"notBefore": "today"}, ("notBefore", "found a string; accepted: RFC 3339 such as 2026-01-31T09:30:00Z")),
    ],
)
def test_wrong_inputs_are_refused_by_name(change: Props, failure: tuple[str, str]) -> None:
    assert failures(**change) == [failure]


@pytest.mark.parametrize("days", [3_000_000, 10**10])
def test_a_lifetime_beyond_the_year_9999_is_refused_by_check(days: int) -> None:
    accepted = "days after 2026-01-31T09:25:15Z that end before the year 10000"
    assert failures(lifetimeDays=days) == [("lifetimeDays", f"found {days}; accepted: {accepted}")]


def test_a_certificate_is_never_updated_in_place() -> None:
    with pytest.raises(PluginError, match="replaced, not updated"):
        resource.update(URN, "id", INPUTS, INPUTS, INPUTS, preview=False)
