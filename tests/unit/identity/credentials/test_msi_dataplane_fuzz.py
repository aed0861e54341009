"""Hundreds of documents, read by ours and by the real msi-dataplane.

What ours accepts the real one loads and signs in with in the same way; what the real one takes beyond that is a
strictness that docs/reference/loader.md lists.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from hypothesis import given, settings
from hypothesis import strategies as st

from identity.credentials.certificate import IssuedCertificate, thumbprint
from identity.credentials.document import Credential, InvalidCredentialError, decode
from tests.msi_dataplane import Loader, Verdict
from tests.unit.identity.credentials.documents import DAY, PFX, VECTORS, certificate_of, key_of, now, pem_of, signed_by
from tests.unit.identity.credentials.world import certificate, document

DER: Final = serialization.Encoding.DER
RC2: Final = (VECTORS / "rc2-sha1.p12").read_bytes()
Fields: TypeAlias = list[tuple[str, Any]]

# Where ours is stricter (docs/reference/loader.md): the beginnings of the problems for which it refuses what
# msi-dataplane loads.
_STRICTER: Final = (
    "document: found a value that is not utf-8",
    "document: found no JSON object (a value JSON does not have, or one too large",
    "authentication_endpoint: found ",
    "client_id: found an empty string",
    "client_secret: found a PEM private key that cannot be read",
    "client_secret: found a PEM certificate that cannot be read",
    *(f"{date}: found " for date in ("not_before", "not_after", "renew_after", "cannot_renew_after")),
)
_TEXTS: Final = (
    *("authentication_endpoint", "client_id", "client_secret", "tenant_id", "not_before", "not_after", "renew_after"),
    *("cannot_renew_after", "object_id", "resource_id", "client_secret_url", "mtls_authentication_endpoint"),
)
# The same documents in each run; to search for others, take more examples without `derandomize`.
by_hypothesis = settings(derandomize=True)

json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
claims = st.fixed_dictionaries(
    {}, optional={"xms_az_nwperimid": json_values | st.lists(st.text(max_size=4)), "xms_az_tm": json_values}
)
authorities = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(("https://", "HTTPS://", "http://", "https:/", "https:", "", "ftp://", " https://")),
        st.sampled_from(
            (
                "login.microsoftonline.com",
                "LOGIN.example",
                "127.0.0.1:8443",
                "[::1]",
                "[::1]:443",
                "host:0",
                "host:65536",
            )
        )
        | st.text(max_size=6),
        st.sampled_from(("", "/", "/common/v2", "?a=b", "#c", ":443", ":", "//", "/%zz", "/%41", "\n"))
        | st.text(max_size=3),
    ),
)
tenants = st.sampled_from(("contoso.onmicrosoft.com", "-", ".", "..", "common", "adfs", "a/b", "a b", "ä")) | st.text(
    max_size=6
)
dates = st.builds(
    "".join,
    st.tuples(
        st.datetimes().map(datetime.isoformat),
        st.sampled_from(("Z", "z", "+00:00", "-23:59", "+24:00", "+0000", "", " Z", ".Z", "Zulu")),
    ),
) | st.text(max_size=12)


@pytest.fixture(scope="module")
def upstream() -> Iterator[Loader]:
    with Loader() as loader:
        yield loader


def assert_same_verdict(upstream: Loader, text: bytes) -> None:
    """Both accept `text` and mean the same; or ours refuses it with reasons, and upstream does, too, or is laxer."""
    ours, problems = _ours(text)
    theirs = upstream.load(text)
    if ours is not None:
        assert theirs == Verdict(
            authority=ours.authority_host,
            tenant=ours.tenant_id,
            client_id=ours.client_id,
            chain=tuple(thumbprint(cert) for cert in ours.key_material.chain),
        ), text
        return
    assert problems
    assert all("found" in problem for problem in problems)
    if not theirs.error:
        assert all(problem.startswith(_STRICTER) for problem in problems), (problems, text)


def _ours(text: bytes) -> tuple[Credential | None, Sequence[str]]:
    try:
        return decode(text), ()
    except InvalidCredentialError as error:
        return None, error.problems


def good(issued: IssuedCertificate) -> Fields:
    return list(json.loads(document(issued)).items())


def written(fields: Fields, *, ascii_only: bool = True) -> bytes:
    """As JSON, in which a key may stand twice."""
    members = (f"{json.dumps(name)}:{json.dumps(value, ensure_ascii=ascii_only)}" for name, value in fields)
    return f"{{{','.join(members)}}}".encode("utf-8", "surrogatepass")


def altered(data: bytes, drawn: st.DataObject) -> bytes:
    """The data with some bytes of another kind, or none, in one place."""
    place = drawn.draw(st.integers(0, len(data)))
    added = drawn.draw(st.binary(max_size=3) | st.sampled_from((b"\n", b" ", b"\r", b"-", b"=")))
    return data[:place] + added + data[place + drawn.draw(st.integers(0, 3)) :]


class TestDocuments:
    """Around a key and certificate that are good."""

    @given(
        values=st.lists(
            st.tuples(st.sampled_from(_TEXTS), json_values)
            | st.tuples(st.sampled_from(("authentication_endpoint",)), authorities)
            | st.tuples(st.just("tenant_id"), tenants)
            | st.tuples(st.sampled_from(("not_before", "not_after", "renew_after", "cannot_renew_after")), dates)
            | st.tuples(st.just("custom_claims"), claims | json_values)
            | st.tuples(st.sampled_from(("CLIENT_ID", "clientId", "", "\x00")), json_values),
            min_size=1,
            max_size=3,
        ),
        ascii_only=st.booleans(),
    )
    @by_hypothesis
    def test_fields_of_any_kind_once_or_twice(
        self, upstream: Loader, issued: IssuedCertificate, values: Fields, ascii_only: bool
    ) -> None:
        replaced = {name for name, _ in values}
        assert_same_verdict(upstream, written([*good(issued), *values], ascii_only=ascii_only))
        kept = [(name, value) for name, value in good(issued) if name not in replaced]
        assert_same_verdict(upstream, written([*kept, *values], ascii_only=ascii_only))
        assert_same_verdict(upstream, written(kept))

    @given(data=st.data())
    @by_hypothesis
    def test_bytes_cut_or_altered_anywhere(
        self, upstream: Loader, issued: IssuedCertificate, data: st.DataObject
    ) -> None:
        text = written(good(issued))
        assert_same_verdict(upstream, text[: data.draw(st.integers(0, len(text)))])
        assert_same_verdict(upstream, altered(text, data))

    @given(
        before=st.sampled_from((b"", b" ", b"\n\t", b"\xef\xbb\xbf", b"\x0c", b"\x00", b"null", b"//\n")),
        after=st.sampled_from((b"", b" ", b"\r\n", b"\x00", b"{}", b",", b"x")),
        extra=st.sampled_from(
            (
                *("null", "1e999", "-0", "01", "1.", ".5", "NaN", "Infinity", "9" * 5000),
                *('"\\ud800"', '"\\x41"', '"\t"'),
                *("[" * depth + "]" * depth for depth in (500, 5_000, 20_000)),
                f'"{"x" * 100_000}"',
            )
        ),
    )
    @by_hypothesis
    def test_oddities_of_json(
        self, upstream: Loader, issued: IssuedCertificate, before: bytes, after: bytes, extra: str
    ) -> None:
        body = written(good(issued))[:-1] + f',"extra":{extra}}}'.encode()
        assert_same_verdict(upstream, before + body + after)


def _blocks(issued: IssuedCertificate) -> list[bytes]:
    """PEM of every kind that may stand in a bundle."""
    stranger, key = certificate(), key_of(issued)
    elliptic, edwards = ec.generate_private_key(ec.SECP256R1()), ed25519.Ed25519PrivateKey.generate()
    short = rsa.generate_private_key(65537, 1024)  # noqa: S505
    locked = serialization.BestAvailableEncryption(b"x")
    expired = signed_by(key, hashes.SHA256(), start=now() - 2 * DAY, end=now() - DAY)
    traditional = serialization.PrivateFormat.TraditionalOpenSSL
    return [
        *(issued.private_key_pem.encode(), issued.certificate_pem.encode(), expired, pem_of(key, traditional)),
        *(stranger.private_key_pem.encode(), stranger.certificate_pem.encode()),
        *(pem_of(elliptic), pem_of(elliptic, traditional), signed_by(elliptic, hashes.SHA256())),
        *(pem_of(edwards), signed_by(edwards, None), pem_of(short), signed_by(short, hashes.SHA256())),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked),
        key.private_bytes(serialization.Encoding.PEM, traditional, locked),
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
        b"-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n",
        *(b"subject=CN = x\n", b"\n", b"-----BEGIN CERTIFICATE-----\n", b"\x00\xff"),
    ]


@pytest.fixture(scope="module")
def blocks(issued: IssuedCertificate) -> list[bytes]:
    return _blocks(issued)


class TestSecrets:
    """Around fields that are good."""

    @given(data=st.data())
    @by_hypothesis
    def test_bundles_of_any_blocks(
        self, upstream: Loader, issued: IssuedCertificate, blocks: list[bytes], data: st.DataObject
    ) -> None:
        chosen = data.draw(st.lists(st.sampled_from(blocks), min_size=1, max_size=4))
        bundle = b"".join(chosen)
        assert_same_verdict(upstream, with_bundle(issued, bundle))
        assert_same_verdict(upstream, with_bundle(issued, bundle.replace(b"\n", b"\r\n")))
        assert_same_verdict(upstream, with_bundle(issued, bundle.rstrip()))

    @given(data=st.data())
    @by_hypothesis
    def test_bundles_cut_or_altered_anywhere(
        self, upstream: Loader, issued: IssuedCertificate, data: st.DataObject
    ) -> None:
        bundles = ((issued.private_key_pem + issued.certificate_pem).encode(), PFX, RC2, None)
        bundle = data.draw(st.sampled_from(bundles))
        if bundle is None:
            der = altered(certificate_of(issued).public_bytes(DER), data)
            assert_same_verdict(upstream, with_bundle(issued, issued.private_key_pem.encode() + in_pem(der)))
        else:
            assert_same_verdict(upstream, with_bundle(issued, altered(bundle, data)))

    @given(data=st.data())
    @by_hypothesis
    def test_base64_cut_or_altered_anywhere(
        self, upstream: Loader, issued: IssuedCertificate, data: st.DataObject
    ) -> None:
        secret = json.loads(document(issued))["client_secret"]
        place = data.draw(st.integers(0, len(secret)) | st.integers(len(secret) - 4, len(secret)))
        added = data.draw(st.text("\r\n\t =-_+/Aé", max_size=3))
        assert_same_verdict(
            upstream,
            with_secret_text(issued, secret[:place] + added + secret[place + data.draw(st.integers(0, 3)) :]),
        )

    @pytest.mark.parametrize("padding", ["=", "==", "===", "===="])
    def test_padding_behind_what_needs_none(self, upstream: Loader, issued: IssuedCertificate, padding: str) -> None:
        bundle = (issued.private_key_pem + issued.certificate_pem).encode()
        whole = base64.b64encode(bundle + b"\n" * (-len(bundle) % 3)).decode()
        assert_same_verdict(upstream, with_secret_text(issued, whole + padding))


def in_pem(der: bytes) -> bytes:
    return b"-----BEGIN CERTIFICATE-----\n" + base64.encodebytes(der) + b"-----END CERTIFICATE-----\n"


def with_bundle(issued: IssuedCertificate, bundle: bytes) -> bytes:
    return with_secret_text(issued, base64.b64encode(bundle).decode())


def with_secret_text(issued: IssuedCertificate, secret: str) -> bytes:
    return written([(name, secret if name == "client_secret" else value) for name, value in good(issued)])
