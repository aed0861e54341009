"""What is sent for each kind of login, which files are taken, and when a kept token is not good enough."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12

from identity.aks import tokens
from identity.aks.login import Login
from identity.aks.tokens import TokenCache
from identity.azure import certificate_file
from identity.azure.certificate_file import CertificateFile
from identity.azure.errors import LoginRefusedError
from identity.credentials.certificate import IssuedCertificate
from identity.login_kinds import LoginKind
from localcloud.testing.hosts import Serve
from tests.unit.identity.aks.world import STRANGER, TENANT, Principal, RecordingTokenEndpoint
from tests.unit.identity.credentials.documents import PEM, VECTORS, key_of, pem_of, pfx, signed_by
from tests.unit.identity.credentials.world import certificate

CLIENT = "6f2c1e7a-0000-4000-8000-00000000bbbb"
AKS_SCOPE = "6dae42f8-4368-4678-94ff-3960e28e3630/.default"


@pytest.fixture
def recorder() -> RecordingTokenEndpoint:
    return RecordingTokenEndpoint()


@pytest.fixture
def authority(recorder: RecordingTokenEndpoint, serve: Serve, trusts_authority: None) -> str:
    return f"{serve(recorder.app())}/"


@pytest.fixture
def cache(tmp_path: Path) -> TokenCache:
    return TokenCache(tmp_path / "tokens")


def parsed(file: Path, password: bytes | None = None) -> CertificateFile:
    return certificate_file.parse(str(file), file.read_bytes(), password, datetime.now(UTC))


def secret_login(authority: str, file: Path, client_id: str = CLIENT) -> Login:
    login = Login(kind=LoginKind.SECRET, tenant_id=TENANT, client_id=client_id, client_secret_file=file)
    return replace(login, authority_host=authority)


def federated(subject: str, issued_at: int = 1) -> str:
    return jwt.encode({"iss": "https://issuer", "sub": subject, "aud": "a", "iat": issued_at}, "k" * 32)


def test_a_secret_is_sent_and_another_one_or_identity_finds_no_kept_token(
    authority: str, recorder: RecordingTokenEndpoint, cache: TokenCache, tmp_path: Path
) -> None:
    file = tmp_path / "secret"
    login = secret_login(authority, file)
    for secret in ("first\n", "first\n", "second\n"):
        file.write_text(secret)
        tokens.token(login, cache, {})
    tokens.token(secret_login(authority, file, STRANGER), cache, {})
    assert [(form["client_id"], form["client_secret"]) for form in recorder.forms] == [
        *((CLIENT, secret) for secret in ("first", "second")),
        (STRANGER, "second"),
    ]
    assert {form["scope"] for form in recorder.forms} == {AKS_SCOPE}


def test_a_federated_token_is_read_again_and_cached_by_subject(
    authority: str, recorder: RecordingTokenEndpoint, cache: TokenCache, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    login = Login(
        kind=LoginKind.WORKLOAD_IDENTITY,
        tenant_id=TENANT,
        client_id=CLIENT,
        federated_token_file=file,
        authority_host=authority,
    )
    for token in (federated("pod"), federated("pod", issued_at=2), federated("another pod")):
        file.write_text(token)
        tokens.token(login, cache, {})
    assert [form["client_assertion"] for form in recorder.forms] == [federated("pod"), federated("another pod")]


def test_a_token_near_its_end_is_renewed_and_half_a_file_is_no_token(
    authority: str, recorder: RecordingTokenEndpoint, cache: TokenCache, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("secret")
    login = secret_login(authority, tmp_path / "secret")
    now = datetime.now(UTC)
    first = tokens.token(login, cache, {}, clock=lambda: now)
    assert first.expires - first.renew_at == timedelta(minutes=5)
    assert tokens.token(login, cache, {}, clock=lambda: now + timedelta(minutes=54)).value == first.value
    assert tokens.token(login, cache, {}, clock=lambda: now + timedelta(minutes=56)).value != first.value
    [kept] = (tmp_path / "tokens").glob("*.token")
    kept.write_text(kept.read_text()[:20])
    assert tokens.token(login, cache, {}).value == "token-3"


@pytest.mark.parametrize(
    "variables",
    [
        {"ARM_CLIENT_SECRET": "s"},
        {"ARM_USE_OIDC": "true", "ARM_OIDC_TOKEN": "t"},
    ],
)
def test_the_deployers_own_way_to_sign_in_is_taken(
    authority: str, recorder: RecordingTokenEndpoint, cache: TokenCache, variables: dict[str, str]
) -> None:
    login = Login(kind=LoginKind.ARM, tenant_id=TENANT, authority_host=authority)
    tokens.token(login, cache, {"ARM_CLIENT_ID": CLIENT, **variables})
    [form] = recorder.forms
    assert form["client_id"] == CLIENT
    assert {"client_secret", "client_assertion"} & set(form)
    with pytest.raises(LoginRefusedError, match="ARM_CLIENT_ID is not set"):
        tokens.token(login, cache, variables)


def _pem(issued: IssuedCertificate, form: serialization.PrivateFormat = serialization.PrivateFormat.PKCS8) -> bytes:
    return pem_of(key_of(issued), form) + issued.certificate_pem.encode()


@pytest.mark.parametrize("name", ["deployer.pem", "deployer.p12", "deployer.PFX"])
@pytest.mark.parametrize("form", ["PKCS#8", "PKCS#1", "encrypted PEM", "PKCS#12", "modern PKCS#12"])
def test_every_form_of_a_certificate_is_taken_whatever_the_files_name(
    issued: IssuedCertificate, tmp_path: Path, form: str, name: str
) -> None:
    password = b"open sesame" if form in {"encrypted PEM", "modern PKCS#12"} else None
    encryption = serialization.BestAvailableEncryption(b"open sesame")
    pkcs8 = serialization.PrivateFormat.PKCS8
    data = {
        "PKCS#8": lambda: _pem(issued),
        "PKCS#1": lambda: _pem(issued, serialization.PrivateFormat.TraditionalOpenSSL),
        "encrypted PEM": lambda: key_of(issued).private_bytes(PEM, pkcs8, encryption) + issued.certificate_pem.encode(),
        "PKCS#12": lambda: pfx(issued, serialization.NoEncryption()),
        "modern PKCS#12": lambda: pfx(issued, encryption),
    }[form]()
    (tmp_path / name).write_bytes(data)

    found = parsed(tmp_path / name, password)
    if form == "PKCS#8":
        assert parsed(tmp_path / name, b"x") == found, "a password that no key has does no harm"

    assert found.thumbprint == issued.thumbprint
    assert b"-----BEGIN PRIVATE KEY-----" in found.pem


def test_an_old_pkcs12_file_is_taken() -> None:
    data = (VECTORS / "3des-sha1.p12").read_bytes()
    _, own, _ = pkcs12.load_key_and_certificates(data, None)
    assert own is not None
    found = certificate_file.parse("old.p12", data, None, own.not_valid_before_utc + timedelta(hours=1))
    assert found.certificate == own
    with pytest.raises(LoginRefusedError, match="is PKCS#12 in base64, as Key Vault has it"):
        certificate_file.parse("old.p12", base64.encodebytes(data), None, own.not_valid_before_utc)


@pytest.mark.parametrize(
    ("age", "lifetime", "message"),
    [
        (timedelta(days=91), timedelta(days=90), "expired at .* `.venv/bin/idstack status` shows"),
        (-timedelta(days=1), timedelta(days=90), "valid from .* check this machine's clock"),
    ],
)
def test_a_certificate_out_of_its_time_is_refused_before_anybody_is_asked(
    tmp_path: Path, age: timedelta, lifetime: timedelta, message: str
) -> None:
    file = tmp_path / "deployer.pem"
    outside = certificate(age=age, lifetime=lifetime)
    file.write_bytes(_pem(outside))
    with pytest.raises(LoginRefusedError, match=f"{outside.thumbprint}.*{message}"):
        parsed(file)


def test_files_that_hold_no_rsa_key_with_its_certificate_are_refused(issued: IssuedCertificate, tmp_path: Path) -> None:
    curve = ec.generate_private_key(ec.SECP256R1())
    elliptic = pem_of(curve) + signed_by(curve, hashes.SHA256())
    for number, data in enumerate((b"nonsense", issued.private_key_pem.encode(), elliptic, b"{}")):
        file = tmp_path / str(number)
        file.write_bytes(data)
        with pytest.raises(LoginRefusedError, match=str(file)):
            parsed(file)


def test_ids_that_contradict_the_credential_document_are_refused(somebody: Principal, cache: TokenCache) -> None:
    own = Login(kind=LoginKind.CERTIFICATE, certificate=somebody.document, authority_host=somebody.wire.authority)
    with pytest.raises(LoginRefusedError, match=f"but --tenant-id is {STRANGER}"):
        tokens.token(replace(own, tenant_id=STRANGER), cache, {})
    with pytest.raises(LoginRefusedError, match=f"but --client-id is {STRANGER}"):
        tokens.token(replace(own, client_id=STRANGER), cache, {})


def test_a_wrong_tenant_is_reported_with_what_to_correct(
    somebody: Principal, cache: TokenCache, issued: IssuedCertificate, tmp_path: Path
) -> None:
    file = tmp_path / "deployer.pem"
    file.write_bytes(_pem(issued))
    login = Login(
        kind=LoginKind.CERTIFICATE,
        tenant_id=STRANGER,
        client_id=somebody.client_id,
        certificate=file,
        authority_host=somebody.wire.authority,
    )
    with pytest.raises(Exception, match=r"AADSTS90002: Tenant .* not found.*correct the tenant"):
        tokens.token(login, cache, {})
