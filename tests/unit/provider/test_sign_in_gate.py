"""`SignInGateResource` against the local Entra: real sign-ins, in a time that passes only while the gate sleeps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from cryptography import x509
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import Response

from identity.credentials import rfc3339
from identity.credentials.certificate import IssuedCertificate, issue
from identity.credentials.sign_in import prove
from localcloud.testing.arm import VAULT, ArmWorld
from localcloud.testing.azure import KeyCredential, LocalAzure
from localcloud.testing.azure import entra_app as app
from localcloud.testing.hosts import Certificates, Serve
from localcloud.testing.running import clock
from plugin import UNKNOWN, PluginError, Props
from provider import keys
from provider.sign_in_gate import SignInGateResource
from tests.unit.provider.conftest import ADDRESS, SECRET, refused_inputs

URN = "urn:pulumi:dev::idstack::idstack:index:SignInGate::hc1-ingress-gate-a"

resource = SignInGateResource()


def certificate(age: timedelta = timedelta(minutes=5)) -> IssuedCertificate:
    """A certificate whose key the plugin has in memory; it began so long ago."""
    made = issue("gate", not_before=datetime.now(UTC) - age, lifetime=timedelta(days=90))
    keys.remember(made)
    return made


class Time:
    """Time for the gate and for Entra, which stands still between the gate's pauses."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)
        self.pauses: list[float] = []
        self._ahead = ExitStack()

    def clock(self) -> datetime:
        return self.now

    def monotonic(self) -> float:
        return self.now.timestamp()

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.pass_by(timedelta(seconds=seconds))

    def pass_by(self, span: timedelta) -> None:
        self.now += span
        self._ahead.enter_context(clock.moved_ahead(span))

    def end(self) -> None:
        """Entra's clock is the real one again."""
        self._ahead.close()


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Iterator[Time]:
    time = Time()
    monkeypatch.setattr("provider.sign_in_gate.prove", partial(prove, clock=time.clock, monotonic=time.monotonic))
    monkeypatch.setattr("provider.sign_in_gate.pause", time.sleep)
    yield time
    time.end()


@dataclass(frozen=True)
class GateTenant:
    """An application of the local Entra, and the statuses of the token requests so far."""

    azure: LocalAzure
    authority: str
    app_id: str
    object_id: str
    answers: list[int]

    @classmethod
    def served(cls, azure: LocalAzure, serve: Serve) -> GateTenant:
        answers: list[int] = []

        async def note(request: Request, answer: RequestResponseEndpoint) -> Response:
            response = await answer(request)
            if request.method == "POST":
                answers.append(response.status_code)
            return response

        entra = app(azure)
        entra.add_middleware(BaseHTTPMiddleware, dispatch=note)
        application = azure.directory.create_application("hc1-ingress")
        azure.directory.create_service_principal(application.app_id)
        return cls(azure, f"{serve(entra)}/", application.app_id, application.object_id, answers)

    def register(self, issued: IssuedCertificate) -> str:
        """Add the certificate to the application; returns the registration's id."""
        key = KeyCredential.of(x509.load_pem_x509_certificate(issued.certificate_pem.encode()))
        self.azure.directory.set_key_credentials(self.object_id, [key])
        return key.key_id

    def inputs(self, issued: IssuedCertificate, registration: str, **changes: Any) -> Props:
        """The gate's inputs after Check: five sign-ins over eight seconds within a minute."""
        program = {
            "authorityHost": self.authority,
            **ADDRESS,
            "clientId": self.app_id,
            "thumbprint": issued.thumbprint,
            "registration": registration,
            "scope": "https://management.core.windows.net//.default",
            "successes": 5,
            "settleSeconds": 8,
            "timeoutSeconds": 60,
            **changes,
        }
        checked = resource.check(URN, None, program)
        assert not checked.failures
        return checked.inputs


@pytest.fixture(autouse=True)
def trusted(certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate trusts the local Entra as it does in the engine: by the environment."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificates.ca_file))


@pytest.fixture
def tenant(azure: LocalAzure, serve: Serve) -> GateTenant:
    return GateTenant.served(azure, serve)


def test_sign_ins_spread_over_the_settle_time_prove_a_certificate(tenant: GateTenant, time: Time) -> None:
    issued = certificate()
    inputs = tenant.inputs(issued, tenant.register(issued))

    created = resource.create(URN, inputs, preview=False)

    assert created.id == "hc1-ingress-gate-a"
    assert created.state == {**inputs, "provenAt": rfc3339.render(time.now)}
    assert tenant.answers == [200] * 5, "none may come from a cache"
    assert time.pauses == [2.0] * 4


def test_a_certificate_that_entra_never_learns_of_fails_at_the_timeout(tenant: GateTenant, time: Time) -> None:
    tenant.register(certificate())
    stranger = certificate()

    with pytest.raises(PluginError) as caught:
        resource.create(URN, tenant.inputs(stranger, "missing", timeoutSeconds=15), preview=False)

    assert f"with certificate {stranger.thumbprint}: found " in str(caught.value)
    assert "at best 0 in a row, last failure AADSTS700027: " in str(caught.value)
    assert sum(time.pauses) <= 15
    link: BaseException | None = caught.value
    while link is not None:
        assert not any(line in f"{link!s}{vars(link)}" for line in stranger.private_key_pem.splitlines()[1:-1])
        link = link.__cause__ or link.__context__


def test_a_key_that_is_gone_is_an_error_unless_the_vault_has_what_was_proven(
    tenant: GateTenant, in_azure: ArmWorld
) -> None:
    issued = certificate()
    keys.forget(issued.thumbprint)
    with pytest.raises(PluginError, match=rf"certificate {issued.thumbprint} is gone.* Run the command again"):
        resource.create(URN, tenant.inputs(issued, "some id"), preview=False)
    body = {"tags": {"thumbprint": issued.thumbprint}, "properties": {"value": "document"}}
    in_azure.call("PUT", f"{VAULT}/secrets/{SECRET}", body)
    assert rfc3339.parse(resource.create(URN, tenant.inputs(issued, "some id"), preview=False).state["provenAt"])
    assert tenant.answers == []


@pytest.mark.parametrize(
    ("age", "wrong"),
    [
        (timedelta(minutes=-6), "begins at {0.not_before:%Y-%m-%dT%H:%M:%SZ}"),
        (timedelta(days=90), "ended at {0.not_after:%Y-%m-%dT%H:%M:%SZ}"),
    ],
    ids=["not yet", "no longer"],
)
def test_a_certificate_that_is_not_valid_now_is_refused_before_entra_is_asked(
    tenant: GateTenant, age: timedelta, wrong: str
) -> None:
    issued = certificate(age)
    with pytest.raises(PluginError, match=rf"{issued.thumbprint} {wrong.format(issued)}, and it is .* `nbf`"):
        resource.create(URN, tenant.inputs(issued, "some id"), preview=False)
    assert tenant.answers == []


def test_a_clock_within_the_tolerance_is_good_enough(tenant: GateTenant, time: Time) -> None:
    time.pass_by(timedelta(minutes=5))
    issued = certificate(timedelta(minutes=-4))
    assert resource.create(URN, tenant.inputs(issued, tenant.register(issued)), preview=False).id


def test_another_way_of_proving_is_taken_over_without_a_sign_in(tenant: GateTenant, time: Time) -> None:
    issued = certificate()
    inputs = tenant.inputs(issued, tenant.register(issued))
    state = {**inputs, "provenAt": "2026-01-31T09:30:00Z"}
    new = {
        **inputs,
        "vaultId": "another",
        "successes": 9,
        "settleSeconds": 30,
        "timeoutSeconds": 600,
        "scope": "https://vault/.default",
    }

    assert set(resource.diff(URN, "id", inputs, state, new).changes) == {
        "successes",
        "settleSeconds",
        "timeoutSeconds",
        "scope",
    }
    for preview in (True, False):
        assert resource.update(URN, "id", inputs, state, new, preview=preview) == {**state, **new}
    assert tenant.answers == []


@pytest.mark.parametrize("name", ["clientId", "thumbprint"])
def test_another_owner_or_certificate_alone_needs_a_new_proof(tenant: GateTenant, name: str) -> None:
    inputs = tenant.inputs(certificate(), "some id")
    state = {**inputs, "provenAt": "2026-01-31T09:30:00Z"}
    old_inputs = {**inputs, name: "another"}
    assert resource.update(URN, "id", old_inputs, state, inputs, preview=True)["provenAt"] is UNKNOWN


def test_a_proven_certificate_that_is_registered_once_more_needs_no_key(tenant: GateTenant) -> None:
    issued = certificate()
    keys.forget(issued.thumbprint)
    old_inputs = tenant.inputs(issued, "deleted by somebody")
    state = {**old_inputs, "provenAt": "2026-01-31T09:30:00Z"}
    inputs = tenant.inputs(issued, "registered again")
    assert resource.update(URN, "id", old_inputs, state, inputs, preview=False) == {**state, **inputs}


def test_a_new_certificate_is_proven_in_place(tenant: GateTenant, time: Time) -> None:
    old, new = certificate(), certificate()
    old_inputs = tenant.inputs(old, "old")
    state = {**old_inputs, "provenAt": "2026-01-31T09:30:00Z"}
    inputs = tenant.inputs(new, tenant.register(new))

    diff = resource.diff(URN, "id", old_inputs, state, inputs)
    assert set(diff.changes) == {"thumbprint", "registration"}
    assert not any(change.replace for change in diff.changes.values())

    planned = resource.update(URN, "id", old_inputs, state, inputs, preview=True)
    assert planned["provenAt"] is UNKNOWN
    assert tenant.answers == [], "a preview signs in nowhere"

    updated = resource.update(URN, "id", old_inputs, state, inputs, preview=False)
    assert updated == {**inputs, "provenAt": rfc3339.render(time.now)}
    assert tenant.answers == [200] * 5


@refused_inputs("SignInGate")
def test_wrong_inputs_are_refused_by_name(tenant: GateTenant, name: str, reason: str, value: Any) -> None:
    refused = resource.check(URN, None, {**tenant.inputs(certificate(), "some id"), name: value})
    assert [(failure.property, failure.reason) for failure in refused.failures] == [(name, reason)]


def test_a_preview_knows_no_proof_and_a_timeout_that_is_too_short_is_refused(tenant: GateTenant) -> None:
    issued = certificate()
    unknown = dict.fromkeys(("thumbprint", "registration", "clientId"), UNKNOWN)
    inputs = resource.check(URN, None, {**tenant.inputs(issued, "some id"), **unknown}).inputs
    assert resource.create(URN, inputs, preview=True).state == {**inputs, "provenAt": UNKNOWN}
    with pytest.raises(PluginError, match="settle <= timeout"):
        resource.create(URN, tenant.inputs(issued, tenant.register(issued), settleSeconds=61), preview=False)
    assert tenant.answers == []
