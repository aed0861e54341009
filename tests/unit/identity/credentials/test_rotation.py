"""The rotation of a mounted credential, by hand and in every sequence."""

from __future__ import annotations

import logging
import tempfile
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import cast

import pytest
from azure.core.credentials import AccessTokenInfo
from azure.core.exceptions import ClientAuthenticationError
from azure.identity import CertificateCredential
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given
from hypothesis import strategies as st

from identity.credentials.certificate import IssuedCertificate
from identity.credentials.document import Credential
from identity.credentials.events import EventKind
from identity.credentials.mounted_file import MountedFile
from identity.credentials.rotation import Rotation, TokenRequest
from tests.unit.identity.credentials.documents import DAY, now, pem_of, signed_by
from tests.unit.identity.credentials.watching import ARM, FakeClock, Renew, Scene, x5t
from tests.unit.identity.credentials.world import ARM_SCOPE, CsiMount, Entra, document

VAULT = TokenRequest(("https://vault.azure.net/.default",))
HOUR = 3600.0


class TestKnown:
    def test_it_is_served_and_its_first_token_is_in_the_cache(self, rotation: Rotation, scene: Scene) -> None:
        assert (rotation.served.thumbprint, scene.entra.attempts) == (scene.issued.thumbprint, 0), (
            "the first needs no proof"
        )
        scene.renew()
        rotation.poll()
        assert scene.events.rest() == [EventKind.ACCEPTED, EventKind.SERVED]
        assert rotation.served.thumbprint == scene.following.thumbprint
        assert [client.is_closed for client in scene.clients.made] == [True, False]
        rotation.token(ARM)
        assert [seen["header"]["x5t"] for seen in scene.entra.assertions] == [x5t(scene.following)]

    @pytest.mark.parametrize("enable_cae", [False, True])
    def test_it_is_proven_for_what_was_granted_last(self, rotation: Rotation, enable_cae: bool, scene: Scene) -> None:
        request = TokenRequest(VAULT.scopes, enable_cae=enable_cae)
        rotation.token(ARM)
        rotation.token(request)
        scene.renew()
        rotation.poll()
        assert VAULT.scopes[0] in scene.entra.assertions[-1]["scope"].split()
        before = scene.entra.attempts
        rotation.token(request)
        assert scene.entra.attempts == before, "its token was not in the cache"

    def test_it_is_not_proven_for_what_nobody_is_granted(self, rotation: Rotation, entra: Entra, renew: Renew) -> None:
        entra.refusals.append("AADSTS500011: The resource principal was not found in the tenant.")
        with pytest.raises(ClientAuthenticationError, match="AADSTS500011"):
            rotation.token(VAULT)
        renew()
        rotation.poll()
        assert ARM_SCOPE in entra.assertions[-1]["scope"].split()

    def test_the_claims_of_a_challenge_are_not_asked_for_again(self, rotation: Rotation, scene: Scene) -> None:
        rotation.token(TokenRequest(ARM.scopes, claims='{"access_token": {"nbf": {"value": "1"}}}'))
        scene.renew()
        rotation.poll()
        assert [seen["claims_challenge"] is None for seen in scene.entra.assertions] == [False, True]


class TestUnknown:
    def test_the_served_one_goes_on_until_entra_knows_it(self, pending: Rotation, scene: Scene) -> None:
        assert pending.served.thumbprint == scene.issued.thumbprint
        assert pending.token(ARM).token.startswith("token-")
        for _ in range(3):
            scene.clock.advance(HOUR)
            pending.poll()
            event = scene.events.next()
            assert (event.kind, event.is_pending) == (EventKind.UNPROVEN, True)
            assert event.problem == "AADSTS700027: The certificate is not registered on application."
            assert pending.served.thumbprint == scene.issued.thumbprint
        scene.entra.registered.append(scene.following.certificate_pem)
        scene.clock.advance(HOUR)
        pending.poll()
        assert (event := scene.events.next()).kind is EventKind.SERVED
        assert not event.is_pending
        assert pending.served.thumbprint == scene.following.thumbprint

    def test_pauses_between_the_tries_double_up_to_a_minute(self, pending: Rotation, scene: Scene) -> None:
        assert scene.tries(pending, seconds=190) == [0.5, 1.5, 3.5, 7.5, 15.5, 31.5, 63.5, 123.5, 183.5]

    def test_pauses_stay_short_while_the_served_one_is_expired(self, pending: Rotation, scene: Scene) -> None:
        scene.clock.now = scene.issued.not_after
        pending.poll()
        assert scene.tries(pending, seconds=20) == [0.5, 1.5, 3.5, 7.5, 12.5, 17.5]

    def test_pauses_are_cut_short_when_entra_refuses_the_served_one(self, pending: Rotation, scene: Scene) -> None:
        assert scene.tries(pending, seconds=32)[-1] == 31.5
        scene.entra.registered.clear()
        with pytest.raises(ClientAuthenticationError, match="AADSTS700027"):
            pending.token(ARM)
        assert scene.tries(pending, seconds=12) == [4.5, 9.5]

    @pytest.mark.parametrize(
        "refusal",
        [
            "AADSTS700016: Application with identifier was not found in the directory.",
            "AADSTS7000229: The client application is missing service principal in the tenant.",
            "AADSTS90033: A transient error has occurred.",
            None,
        ],
    )
    def test_another_refusal_or_no_answer_is_as_good_a_reason_to_try_again(
        self, rotation: Rotation, refusal: str | None, scene: Scene
    ) -> None:
        rotation.token(ARM)
        scene.entra.refusals += filter(None, [refusal])
        scene.entra.drops = refusal is None
        scene.renew()
        rotation.poll()
        assert scene.events.until(EventKind.UNPROVEN).problem
        assert rotation.token(ARM).token.startswith("token-")
        assert rotation.served.thumbprint != scene.following.thumbprint
        scene.entra.drops = False
        scene.clock.advance(0.5)
        rotation.poll()
        assert rotation.served.thumbprint == scene.following.thumbprint

    def test_a_failed_try_closes_its_client_and_each_reason_is_logged_once(
        self, pending: Rotation, caplog: pytest.LogCaptureFixture, scene: Scene
    ) -> None:
        caplog.set_level(logging.INFO, "identity.credentials")
        scene.tries(pending, seconds=4)
        assert [client.is_closed for client in scene.clients.made] == [False, True, True, True, True]
        scene.entra.drops = True
        scene.tries(pending, seconds=30)
        reported = [record.message for record in caplog.records if record.name == "identity.credentials.events"]
        assert len(reported) == 1
        assert "gets no token yet" in reported[0]
        assert "AADSTS" not in reported[0]


START = now().replace(microsecond=0)
CLIENTS = ("ada", "bob", "cyd")
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Good:
    """Mount the document of `client` that is `later` seconds later than the first one."""

    client: str
    later: int

    def text(self) -> str:
        start = START + timedelta(seconds=self.later)
        return document(small_certificate(), client_id=self.client, not_before=start, not_after=START + 30 * DAY)


@dataclass(frozen=True)
class Bad:
    """Mount something that no credential is to be taken from."""

    kind: str
    later: int

    def text(self) -> str:
        good = Good(CLIENTS[0], self.later)
        match self.kind:
            case "truncated":
                return good.text()[:-40]
            case "expired":
                start = START + timedelta(seconds=self.later)
                return document(small_certificate(), client_id=good.client, not_before=start, not_after=START)
        return "" if self.kind == "empty" else "garbage \0"


@dataclass(frozen=True)
class Learn:
    """Entra ID comes to know `client`, or knows it no longer."""

    client: str
    knows: bool


steps = st.lists(
    st.one_of(
        st.builds(Good, st.sampled_from(CLIENTS), st.integers(-2, 9)),
        st.builds(Bad, st.sampled_from(("empty", "truncated", "garbage", "expired")), st.integers(-2, 9)),
        st.builds(Learn, st.sampled_from(CLIENTS), st.booleans()),
    ),
    max_size=12,
)


@dataclass
class FakeEntra:
    """Grants a token to the clients it knows, and counts the connections."""

    known: set[str] = field(default_factory=set)
    connections: int = 0

    def connect(self, credential: Credential) -> CertificateCredential:
        self.connections += 1
        return cast(CertificateCredential, FakeClient(self, credential.client_id))


@dataclass
class FakeClient:
    """As much of azure-identity's client as is used; its token is its name."""

    entra: FakeEntra
    name: str

    def get_token_info(self, *scopes: str, options: object) -> AccessTokenInfo:
        if self.name not in self.entra.known:
            raise ClientAuthenticationError("AADSTS700027: The certificate is not registered on application.")
        return AccessTokenInfo(self.name, 0)

    def close(self) -> None:
        self.entra.connections -= 1


@given(steps)
def test_the_newest_good_credential_that_entra_knows_is_served(steps: list[Good | Bad | Learn]) -> None:
    served = mounted = Good(CLIENTS[0], 0)
    entra, clock = FakeEntra({CLIENTS[0]}), FakeClock()
    with tempfile.TemporaryDirectory() as directory:
        mount = CsiMount(Path(directory, "certs"))
        mount.write(served.text())
        file = MountedFile(mount.path, clock)
        rotation = Rotation(file, entra.connect, scope=ARM_SCOPE, clock=clock, on_event=lambda event: None)
        for step in steps:
            match step:
                case Good():
                    mounted = step
                    mount.write(step.text())
                case Bad():
                    mount.write(step.text())
                case Learn(client, knows):
                    (entra.known.add if knows else entra.known.discard)(client)
            clock.now += MINUTE
            rotation.poll()
            if mounted.later > served.later and mounted.client in entra.known:
                served = mounted
            assert rotation.served.not_before == START + timedelta(seconds=served.later)
            assert rotation.served.client_id == served.client
            assert entra.connections == 1
            if served.client in entra.known:
                assert rotation.token(ARM).token == served.client


@cache
def small_certificate() -> IssuedCertificate:
    """A certificate whose key is read quickly: each example reads it some ten times."""
    key = rsa.generate_private_key(65537, 1024)  # noqa: S505
    start, end = START - DAY, START + 60 * DAY
    certificate = signed_by(key, hashes.SHA256(), start=start, end=end)
    return IssuedCertificate(certificate.decode(), pem_of(key).decode(), "", start, end)
