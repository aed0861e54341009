"""The signing key of an existing issuer, compared with what the issuer publishes, before anything is registered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulumi
import pytest

from components.preflight.imported_documents import read_existing_keys
from identity.azure.errors import AzureRefusedError
from identity.credentials.openid_documents import discovery_document, jwks_document
from identity.credentials.service_account_key import make, public_half
from tests.unit.components.program import Program
from tests.unit.components.refusals import refused
from tests.unit.components.world import VAULT, hosted_cluster, settings
from tests.unit.golden_report import reviewed

ISSUER = "https://hc1oidc.blob.core.windows.net/hc1oidc"
KEY = "hostedClusters[0].serviceAccountSigningKey"
PEM, OTHER = make(2048), make(2048)


@dataclass
class FakeAzure:
    """What the vault and the issuer answer; None is a 404, an exception is raised."""

    secret: str | Exception | None = PEM
    documents: dict[str, Any] = field(
        default_factory=lambda: {
            f"{ISSUER}/.well-known/openid-configuration": discovery_document(ISSUER),
            f"{ISSUER}/openid/v1/jwks": jwks_document([public_half(OTHER).jwk, public_half(PEM).jwk]),
        }
    )

    def vault(self, *_: str) -> Mapping[str, str] | None:
        if isinstance(self.secret, Exception):
            raise self.secret
        return None if self.secret is None else {"value": self.secret}

    def public_document(self, url: str) -> Any:
        found = self.documents.get(url)
        if isinstance(found, Exception):
            raise found
        return found


@pytest.fixture
def azure(monkeypatch: pytest.MonkeyPatch) -> FakeAzure:
    fake = FakeAzure()
    monkeypatch.setattr("identity.azure.connection.connected", lambda *_: fake)
    return fake


def refusals(**key: str) -> list[tuple[str, str]]:
    found = read_existing_keys(settings(hostedClusters=[hosted_cluster(serviceAccountSigningKey=key)]), VAULT)
    return reviewed(found.problems)


def test_a_key_that_the_issuer_publishes_is_accepted(azure: FakeAzure, tmp_path: Path) -> None:
    file = tmp_path / "sa.pem"
    file.write_text(PEM)
    configured = settings(hostedClusters=[hosted_cluster(serviceAccountSigningKey={"file": str(file)})])

    assert refusals(vaultSecretName="sa") == []
    assert read_existing_keys(configured, VAULT).of_files == {"hc1": public_half(PEM).key_id}


def test_nothing_is_asked_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("identity.azure.connection.connected")

    assert read_existing_keys(settings(), VAULT).problems == []


def test_a_key_that_is_not_published_is_refused(azure: FakeAzure, monkeypatch: pytest.MonkeyPatch) -> None:
    named = {**public_half(OTHER).jwk, "kid": "published"}
    azure.documents[f"{ISSUER}/openid/v1/jwks"] = jwks_document([named])
    mine = public_half(PEM)
    monkeypatch.setattr(
        "components.preflight.imported_documents.public_half", lambda _: type(mine)("mine", mine.pem, mine.jwk)
    )

    assert refusals(vaultSecretName="sa") == [(KEY, "signing-key-not-in-issuer")]


def test_another_key_under_the_same_id_is_refused(azure: FakeAzure, monkeypatch: pytest.MonkeyPatch) -> None:
    azure.documents[f"{ISSUER}/openid/v1/jwks"] = jwks_document([{**public_half(OTHER).jwk, "kid": "mine"}])
    mine = public_half(PEM)
    monkeypatch.setattr(
        "components.preflight.imported_documents.public_half", lambda _: type(mine)("mine", mine.pem, mine.jwk)
    )

    assert refusals(vaultSecretName="sa") == [(KEY, "signing-key-not-in-issuer")]


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/.well-known/openid-configuration", None),
        ("/openid/v1/jwks", None),
        ("/openid/v1/jwks", b"{}"),
        ("/.well-known/openid-configuration", discovery_document("https://other.example.com")),
        ("/.well-known/openid-configuration", AzureRefusedError(f"{ISSUER} does not answer: no route")),
    ],
    ids=["no discovery", "no keys", "no JWKS", "another issuer", "silent"],
)
def test_an_issuer_that_entra_could_not_read_is_refused(azure: FakeAzure, path: str, answer: Any) -> None:
    azure.documents[f"{ISSUER}{path}"] = answer

    assert refusals(vaultSecretName="sa") == [("hostedClusters[0].issuerURL", "issuer-unusable")]


def test_a_secret_that_does_not_exist_is_refused(azure: FakeAzure) -> None:
    azure.secret = None

    assert refusals(vaultSecretName="sa") == [(f"{KEY}.vaultSecretName", "signing-key-secret-missing")]


def test_a_secret_that_holds_no_key_is_refused_without_showing_it(azure: FakeAzure) -> None:
    azure.secret = "MARKER"

    assert refusals(vaultSecretName="sa") == [(f"{KEY}.vaultSecretName", "signing-key-unusable")]


def test_a_reader_leaves_the_comparison_out(azure: FakeAzure, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(pulumi.log, "info", said.append)
    azure.secret = AzureRefusedError("reading it: 403", 403)

    assert refusals(vaultSecretName="sa") == []
    assert said == ["the signing key sa is not compared with its issuer: it cannot be read here"]


def test_a_file_that_cannot_be_read_or_holds_no_key_is_refused(azure: FakeAzure, tmp_path: Path) -> None:
    (tmp_path / "sa.pem").write_text("MARKER")

    assert refusals(file="missing.pem") == [(f"{KEY}.file", "signing-key-file-unreadable")]
    assert refusals(file=str(tmp_path / "sa.pem")) == [(f"{KEY}.file", "signing-key-unusable")]


def test_the_run_ends_with_all_problems_before_anything_is_registered(program: Program, azure: FakeAzure) -> None:
    azure.documents.clear()
    clusters = [hosted_cluster(serviceAccountSigningKey={"vaultSecretName": "sa"})]

    assert refused(program, hostedClusters=clusters) == [("hostedClusters[0].issuerURL", "issuer-unusable")]
