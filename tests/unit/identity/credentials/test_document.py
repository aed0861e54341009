"""The credential document is written and read as msi-dataplane does; what it may name, and what it may replace."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Never, Self

import pytest
from azure.core.exceptions import AzureError, ServiceRequestError
from cryptography.hazmat.primitives import hashes, serialization
from hypothesis import given
from hypothesis import strategies as st

from identity.credentials import sign_in
from identity.credentials.certificate import IssuedCertificate
from identity.credentials.document import InvalidCredentialError, StoredBefore, decode, validate
from tests.unit import cases
from tests.unit.identity.credentials.documents import (
    VECTORS,
    certificate_of,
    changed,
    key_of,
    now,
    pem_of,
    signed_by,
    with_secret,
)
from tests.unit.identity.credentials.world import ARM_SCOPE, CLIENT, TENANT, certificate, document


class TestEncode:
    def test_keys_are_sorted_without_spaces_and_absent_fields_dropped(self, issued: IssuedCertificate) -> None:
        moment = datetime(2026, 1, 31, 11, 30, tzinfo=UTC)
        text = document(issued, object_id="o-1", renew_after=moment)
        assert list(json.loads(text)) == [
            "authentication_endpoint",
            "cannot_renew_after",
            "client_id",
            "client_secret",
            "not_after",
            "not_before",
            "object_id",
            "renew_after",
            "tenant_id",
        ]
        assert text == json.dumps(json.loads(text), separators=(",", ":"))
        secret = base64.b64decode(json.loads(text)["client_secret"]).decode()
        assert secret == issued.private_key_pem + issued.certificate_pem
        assert json.loads(text)["renew_after"] == "2026-01-31T11:30:00Z"

    def test_what_it_writes_validates(self, issued: IssuedCertificate) -> None:
        text = document(issued, object_id="o-1")
        read = validate(text, now=now(), expected_tenant=TENANT, expected_client_id=CLIENT)
        assert (read.client_id, read.tenant_id) == (CLIENT, TENANT)
        assert (read.not_before, read.not_after) == (issued.not_before, issued.not_after)
        assert read.thumbprint == issued.thumbprint
        assert read.expires == issued.not_after

    @pytest.mark.parametrize("encoding", ["utf-8", "base64", "hex"])
    def test_it_is_stored_in_the_object_encoding(self, issued: IssuedCertificate, encoding: str) -> None:
        stored = document(issued, object_encoding=encoding)
        plain = document(issued).encode()
        assert (
            stored
            == {"utf-8": plain.decode(), "base64": base64.b64encode(plain).decode(), "hex": plain.hex()}[encoding]
        )
        assert decode(stored, object_encoding=encoding).client_id == CLIENT

    def test_an_unknown_object_encoding_is_refused(self, issued: IssuedCertificate) -> None:
        with pytest.raises(ValueError, match="'utf8': accepted are utf-8, base64, hex"):
            document(issued, object_encoding="utf8")


class TestDecode:
    def test_the_certificate_of_the_key_comes_first_in_the_chain(self, issued: IssuedCertificate) -> None:
        stranger = certificate()
        bundle = (stranger.certificate_pem + issued.private_key_pem + issued.certificate_pem).encode()
        read = decode(with_secret(issued, bundle))
        assert [c.fingerprint(hashes.SHA256()) for c in read.key_material.chain] == [
            certificate_of(own).fingerprint(hashes.SHA256()) for own in (issued, stranger)
        ]
        assert read.key_material.pem().decode() == (
            issued.private_key_pem + issued.certificate_pem + stranger.certificate_pem
        )

    def test_of_two_certificates_of_the_key_the_last_one_signs_as_upstream(self, issued: IssuedCertificate) -> None:
        earlier = signed_by(key_of(issued), hashes.SHA256())
        read = decode(with_secret(issued, earlier + (issued.private_key_pem + issued.certificate_pem).encode()))
        assert read.thumbprint == issued.thumbprint
        assert len(read.key_material.chain) == 2

    def test_a_pkcs1_key_may_be_called_private_key_as_upstream(self, issued: IssuedCertificate) -> None:
        bundle = pem_of(key_of(issued), serialization.PrivateFormat.TraditionalOpenSSL).replace(b"RSA ", b"")
        assert decode(with_secret(issued, bundle + issued.certificate_pem.encode())).thumbprint == issued.thumbprint

    @pytest.mark.parametrize(
        "form", [serialization.PrivateFormat.PKCS8, serialization.PrivateFormat.TraditionalOpenSSL]
    )
    @pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
    def test_pkcs8_and_pkcs1_keys_and_windows_line_ends_are_read(
        self, issued: IssuedCertificate, form: serialization.PrivateFormat, newline: bytes
    ) -> None:
        bundle = (pem_of(key_of(issued), form) + issued.certificate_pem.encode()).replace(b"\n", newline)
        assert decode(with_secret(issued, bundle)).thumbprint == issued.thumbprint

    def test_line_ends_inside_the_base64_are_ignored(self, issued: IssuedCertificate) -> None:
        secret = json.loads(document(issued))["client_secret"]
        broken = "\r\n".join(secret[i : i + 76] for i in range(0, len(secret), 76))
        assert decode(changed(issued, client_secret=broken)).thumbprint == issued.thumbprint

    def test_unknown_keys_and_a_path_of_the_authority_are_ignored(self, issued: IssuedCertificate) -> None:
        read = decode(changed(issued, extra=1, authentication_endpoint="https://login.example.com:8443/path/"))
        assert read.authority_host == "https://login.example.com:8443"

    def test_dates_with_offset_and_fraction_are_read(self, issued: IssuedCertificate) -> None:
        read = decode(changed(issued, not_before="2026-01-31T11:30:00.5+02:00"))
        assert read.not_before == datetime(2026, 1, 31, 9, 30, 0, 500_000, tzinfo=UTC)

    def test_the_optional_dates_may_be_absent_as_upstream(self, issued: IssuedCertificate) -> None:
        read = decode(changed(issued, not_after=None, renew_after=None, cannot_renew_after=None))
        assert read.not_after is None
        assert read.expires == issued.not_after

    @pytest.mark.parametrize("name", ["3des-sha1.p12", "rc2-sha1.p12"])
    def test_passwordless_pkcs12_with_a_sha1_mac_is_read(self, issued: IssuedCertificate, name: str) -> None:
        read = decode(with_secret(issued, (VECTORS / name).read_bytes()))
        assert read.certificate.subject.rfc4514_string() == "CN=vector"

    def test_repr_shows_no_key(self, issued: IssuedCertificate) -> None:
        assert "RSAPrivateKey" not in repr(decode(document(issued)))


AUTHORITIES = cases.read(Path(__file__).with_name("authorities.yaml"), {})
GOOD, BAD = AUTHORITIES["accepted"], AUTHORITIES["refused"]
hosts = st.one_of(
    st.sampled_from([url.partition("//")[2] for url in (*GOOD, *BAD)]),
    st.text(st.sampled_from("0123456789abcfx.:[]%-_@/"), max_size=40),
    st.ip_addresses(v=6).map("[{}]".format),
    st.ip_addresses(v=4).map(str),
    st.from_regex(r"\[[0-9a-f:.]{0,45}\]", fullmatch=True),
    st.from_regex(r"[a-z0-9._-]{1,80}", fullmatch=True),
    st.text(max_size=12),
)
ports = st.just("") | st.integers(-1, 70_000).map(":{}".format)
tenants = st.from_regex(r"[0-9A-Za-z.-]{1,12}", fullmatch=True) | st.text(max_size=6)


class Unreachable:
    """A network on which nothing answers, as a transport of azure-core."""

    def send(self, request: object, **_: object) -> Never:
        raise ServiceRequestError("nothing answers")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """There is nothing to close."""


@pytest.mark.parametrize("url", GOOD)
def test_a_host_or_an_address_is_accepted(issued: IssuedCertificate, url: str) -> None:
    validate(changed(issued, authentication_endpoint=url), now=now())


@pytest.mark.parametrize("url", BAD)
def test_what_no_client_can_ask_is_refused(issued: IssuedCertificate, url: str) -> None:
    with pytest.raises(InvalidCredentialError) as refused:
        decode(changed(issued, authentication_endpoint=url))
    (problem,) = refused.value.problems
    assert problem.startswith("authentication_endpoint: found ")
    assert "; accepted: an https URL of the authority, such as https://login.microsoftonline.com/" in problem


@given(host=hosts, port=ports, path=st.sampled_from(("", "/", "/common/v2.0")), tenant=tenants, client_id=st.text())
def test_a_client_can_be_made_and_asked_for_whatever_is_accepted(
    issued: IssuedCertificate, host: str, port: str, path: str, tenant: str, client_id: str
) -> None:
    text = changed(issued, authentication_endpoint=f"https://{host}{port}{path}", tenant_id=tenant, client_id=client_id)
    try:
        known = decode(json.dumps(json.loads(text)))
    except InvalidCredentialError:
        return
    with (
        sign_in.client(
            known.authority_host,
            known.tenant_id,
            known.client_id,
            known.key_material.pem(),
            transport=Unreachable(),
            retry_total=0,
        ) as client,
        pytest.raises(AzureError),
    ):
        client.get_token_info(ARM_SCOPE)


_MOMENT = datetime(2026, 11, 25, tzinfo=UTC)
_SECONDS = st.integers(-3, 3).map(lambda seconds: _MOMENT + timedelta(seconds=seconds))


@given(theirs=st.none() | st.sampled_from("AB"), stored=st.none() | _SECONDS, begins=_SECONDS)
def test_nothing_but_the_same_document_or_a_later_one_is_written(
    theirs: str | None, stored: datetime | None, begins: datetime
) -> None:
    before = StoredBefore("kv", "disk-hc1-json", theirs, stored)

    why = before.why_it_stays("A", begins)

    if stored is None or theirs == "A" or begins > stored:
        assert why is None
    elif begins < stored or theirs == "B":
        assert why is not None
        assert "the one in the secret disk-hc1-json at 2026-11-2" in why
    else:
        assert why is None, "it begins at the same second, and nobody knows another one"
