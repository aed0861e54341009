"""Held faults on a running stack: each is about one identity, or about all, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from azure.core.exceptions import ClientAuthenticationError

from identity.credentials.certificate import IssuedCertificate
from identity.credentials.sign_in import prove, sign_in
from tests.engine.clients import bare_sign_in, read
from tests.engine.fresh_certificate import fresh_certificate
from tests.engine.held_faults import gate_refuses, held, registration_fails, vault_write_fails
from tests.engine.out_of_band import OutOfBand, registration
from tests.harness import LocalStack

_IDENTITY: Final = "hc1-cloud-provider"
_OTHER: Final = "hc1-node-pool-management"
_API: Final = "2023-07-01"


@pytest.fixture(autouse=True)
def trusted(small: LocalStack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients in this process trust the local cloud."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", small.environment.ca_file)


@pytest.fixture
def out_of_band(small: LocalStack) -> OutOfBand:
    """Signed in before anything is held."""
    made = OutOfBand(small)
    made.graph("GET", "/applications")
    made.arm("GET", small.resource("vault-vault")["id"], _API)
    return made


@dataclass(frozen=True)
class Written:
    """The secret of an identity, whose content type a test writes through ARM."""

    stack: LocalStack
    out_of_band: OutOfBand
    identity: str

    @property
    def id(self) -> str:
        """Its ARM id."""
        found: str = self.stack.resource(f"{self.identity}-credential-secret")["id"]
        return found

    def put(self, content_type: str) -> None:
        """One write; a refusal is an AssertionError."""
        self.out_of_band.arm("PATCH", self.id, _API, {"properties": {"contentType": content_type}})

    def get(self) -> str:
        """What was written last."""
        with self.out_of_band.secrets() as secrets:
            return secrets.get_secret(self.id.rpartition("/")[2]).properties.content_type or ""


@pytest.fixture
def written(small: LocalStack, out_of_band: OutOfBand) -> Iterator[Callable[[str], Written]]:
    """An identity's secret, which afterwards is as it was."""
    before: list[tuple[Written, str]] = []

    def of(identity: str) -> Written:
        made = Written(small, out_of_band, identity)
        before.append((made, made.get()))
        return made

    yield of
    for secret, content_type in before:
        secret.put(content_type)


@contextmanager
def registered(stack: LocalStack, out_of_band: OutOfBand, identity: str) -> Iterator[IssuedCertificate]:
    """One certificate more on the application, beside those that are there."""
    application = stack.resource(f"{identity}-entra-application")["id"]
    before = out_of_band.graph("GET", application)["keyCredentials"]
    issued = fresh_certificate()
    out_of_band.graph("PATCH", application, {"keyCredentials": [*before, registration(issued.certificate_pem)]})
    yield issued
    out_of_band.graph("PATCH", application, {"keyCredentials": before})


def signs_in(stack: LocalStack, identity: str, issued: IssuedCertificate) -> None:
    """Sign in with a certificate as an identity's application."""
    client_id = stack.resource(f"{identity}-entra-application")["outputs"]["clientId"]
    pem = (issued.private_key_pem + issued.certificate_pem).encode()
    local = stack.environment
    sign_in(local.authority_host, local.tenant_id, client_id, pem, "https://management.azure.com/.default")


def delivered(stack: LocalStack, identity: str) -> dict[str, Any]:
    """The credential document that a pod of the identity has."""
    client_id = stack.resource(f"{identity}-entra-application")["outputs"]["clientId"]
    files = Path(stack.environment.mounts_dir).glob("clusters-hc1/*/mnt/certs/*-json")
    return next(document for document in map(read, files) if document["client_id"] == client_id)


def test_a_write_to_the_vault_fails_for_one_identity_or_all(
    small: LocalStack, written: Callable[[str], Written]
) -> None:
    first, second = written(_IDENTITY), written(_OTHER)
    before = first.get()

    with held(small, vault_write_fails(small, _IDENTITY)):
        with pytest.raises(AssertionError, match="AuthorizationFailed"):
            first.put("text/held")
        second.put("text/other")
        with held(small, vault_write_fails(small, status=500)), pytest.raises(AssertionError, match="InternalServer"):
            second.put("text/held")
    assert (first.get(), second.get()) == (before, "text/other")
    first.put("text/free")


@pytest.mark.parametrize("after", [False, True])
def test_a_registration_fails_before_or_after_its_effect(
    small: LocalStack, out_of_band: OutOfBand, after: bool
) -> None:
    application = small.resource(f"{_IDENTITY}-entra-application")["id"]
    before = out_of_band.graph("GET", application)["keyCredentials"]

    try:
        with (
            held(small, registration_fails(small, _IDENTITY, after=after)),
            pytest.raises(AssertionError, match="Authorization_RequestDenied"),
            registered(small, out_of_band, _IDENTITY),
        ):
            pass
        assert len(out_of_band.graph("GET", application)["keyCredentials"]) == len(before) + after
        with held(small, registration_fails(small, _IDENTITY)), registered(small, out_of_band, _OTHER):
            pass
    finally:
        out_of_band.graph("PATCH", application, {"keyCredentials": before})


def test_a_refusing_gate_leaves_delivered_credentials_alone(small: LocalStack, out_of_band: OutOfBand) -> None:
    with held(small, gate_refuses(small, _IDENTITY)):
        with registered(small, out_of_band, _IDENTITY) as issued:
            with pytest.raises(ClientAuthenticationError, match="AADSTS700027"):
                signs_in(small, _IDENTITY, issued)
            assert bare_sign_in(delivered(small, _IDENTITY))
        with registered(small, out_of_band, _OTHER) as issued:
            _await_replicas(small, _OTHER, issued)


def _await_replicas(stack: LocalStack, identity: str, issued: IssuedCertificate) -> None:
    """Sign in until every replica of Entra ID knows the certificate; raises if one never does."""
    local = stack.environment
    prove(
        local.authority_host,
        local.tenant_id,
        stack.resource(f"{identity}-entra-application")["outputs"]["clientId"],
        issued.certificate_pem,
        issued.private_key_pem,
        "https://management.azure.com/.default",
        successes=3,
        settle=timedelta(0),
        timeout=timedelta(seconds=60),
    )
