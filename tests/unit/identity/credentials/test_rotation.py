"""A later credential is served once it got a token; until then the served one goes on."""

from __future__ import annotations

import logging

import pytest
from azure.core.exceptions import ClientAuthenticationError

from identity.credentials.certificate import IssuedCertificate
from identity.credentials.events import EventKind
from identity.credentials.rotation import Rotation, TokenRequest
from tests.unit.identity.credentials.watching import ARM, Clients, Events, FakeClock, Renew, tries, x5t
from tests.unit.identity.credentials.world import ARM_SCOPE, Entra

VAULT = TokenRequest(("https://vault.azure.net/.default",))
HOUR = 3600.0


class TestKnown:
    def test_it_is_served_and_its_first_token_is_in_the_cache(
        self,
        rotation: Rotation,
        entra: Entra,
        issued: IssuedCertificate,
        following: IssuedCertificate,
        events: Events,
        clients: Clients,
        renew: Renew,
    ) -> None:
        assert (rotation.served.thumbprint, entra.attempts) == (issued.thumbprint, 0), "the first needs no proof"
        renew()
        rotation.poll()
        assert events.rest() == [EventKind.ACCEPTED, EventKind.SERVED]
        assert rotation.served.thumbprint == following.thumbprint
        assert [client.is_closed for client in clients.made] == [True, False]
        rotation.token(ARM)
        assert [seen["header"]["x5t"] for seen in entra.assertions] == [x5t(following)]

    @pytest.mark.parametrize("enable_cae", [False, True])
    def test_it_is_proven_for_what_was_granted_last(
        self, rotation: Rotation, entra: Entra, enable_cae: bool, renew: Renew
    ) -> None:
        request = TokenRequest(VAULT.scopes, enable_cae=enable_cae)
        rotation.token(ARM)
        rotation.token(request)
        renew()
        rotation.poll()
        assert VAULT.scopes[0] in entra.assertions[-1]["scope"].split()
        before = entra.attempts
        rotation.token(request)
        assert entra.attempts == before, "its token was not in the cache"

    def test_it_is_not_proven_for_what_nobody_is_granted(self, rotation: Rotation, entra: Entra, renew: Renew) -> None:
        entra.refusals.append("AADSTS500011: The resource principal was not found in the tenant.")
        with pytest.raises(ClientAuthenticationError, match="AADSTS500011"):
            rotation.token(VAULT)
        renew()
        rotation.poll()
        assert ARM_SCOPE in entra.assertions[-1]["scope"].split()

    def test_the_claims_of_a_challenge_are_not_asked_for_again(
        self, rotation: Rotation, entra: Entra, renew: Renew
    ) -> None:
        rotation.token(TokenRequest(ARM.scopes, claims='{"access_token": {"nbf": {"value": "1"}}}'))
        renew()
        rotation.poll()
        assert [seen["claims_challenge"] is None for seen in entra.assertions] == [False, True]


class TestUnknown:
    def test_the_served_one_goes_on_until_entra_knows_it(
        self,
        pending: Rotation,
        entra: Entra,
        clock: FakeClock,
        issued: IssuedCertificate,
        following: IssuedCertificate,
        events: Events,
    ) -> None:
        assert pending.served.thumbprint == issued.thumbprint
        assert pending.token(ARM).token.startswith("token-")
        for _ in range(3):
            clock.advance(HOUR)
            pending.poll()
            event = events.next()
            assert (event.kind, event.is_pending) == (EventKind.UNPROVEN, True)
            assert event.problem == "AADSTS700027: The certificate is not registered on application."
            assert pending.served.thumbprint == issued.thumbprint
        entra.registered.append(following.certificate_pem)
        clock.advance(HOUR)
        pending.poll()
        assert (event := events.next()).kind is EventKind.SERVED
        assert not event.is_pending
        assert pending.served.thumbprint == following.thumbprint

    def test_pauses_between_the_tries_double_up_to_a_minute(
        self, pending: Rotation, entra: Entra, clock: FakeClock
    ) -> None:
        assert tries(pending, entra, clock, seconds=190) == [0.5, 1.5, 3.5, 7.5, 15.5, 31.5, 63.5, 123.5, 183.5]

    def test_pauses_stay_short_while_the_served_one_is_expired(
        self, pending: Rotation, entra: Entra, clock: FakeClock, issued: IssuedCertificate
    ) -> None:
        clock.now = issued.not_after
        pending.poll()
        assert tries(pending, entra, clock, seconds=20) == [0.5, 1.5, 3.5, 7.5, 12.5, 17.5]

    def test_pauses_are_cut_short_when_entra_refuses_the_served_one(
        self, pending: Rotation, entra: Entra, clock: FakeClock
    ) -> None:
        assert tries(pending, entra, clock, seconds=32)[-1] == 31.5
        entra.registered.clear()
        with pytest.raises(ClientAuthenticationError, match="AADSTS700027"):
            pending.token(ARM)
        assert tries(pending, entra, clock, seconds=12) == [4.5, 9.5]

    @pytest.mark.parametrize(
        "refusal",
        [
            "AADSTS700016: Application with identifier was not found in the directory.",
            "AADSTS7000229: The client application is missing service principal in the tenant.",
            "AADSTS90033: A transient error has occurred.",
        ],
    )
    def test_another_refusal_is_as_good_a_reason_to_try_again(
        self,
        rotation: Rotation,
        entra: Entra,
        clock: FakeClock,
        following: IssuedCertificate,
        refusal: str,
        renew: Renew,
    ) -> None:
        entra.refusals.append(refusal)
        renew()
        rotation.poll()
        assert rotation.served.thumbprint != following.thumbprint
        clock.advance(0.5)
        rotation.poll()
        assert rotation.served.thumbprint == following.thumbprint

    def test_so_is_a_network_that_fails(
        self,
        rotation: Rotation,
        entra: Entra,
        clock: FakeClock,
        following: IssuedCertificate,
        events: Events,
        renew: Renew,
    ) -> None:
        rotation.token(ARM)
        entra.drops = True
        renew()
        rotation.poll()
        assert events.until(EventKind.UNPROVEN).problem
        assert rotation.token(ARM).token.startswith("token-")
        entra.drops = False
        clock.advance(0.5)
        rotation.poll()
        assert rotation.served.thumbprint == following.thumbprint

    def test_a_failed_try_closes_its_client_and_each_reason_is_logged_once(
        self,
        pending: Rotation,
        entra: Entra,
        clock: FakeClock,
        clients: Clients,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        caplog.set_level(logging.INFO, "identity.credentials")
        tries(pending, entra, clock, seconds=4)
        assert [client.is_closed for client in clients.made] == [False, True, True, True, True]
        entra.drops = True
        tries(pending, entra, clock, seconds=30)
        reported = [record.message for record in caplog.records if record.name == "identity.credentials.events"]
        assert len(reported) == 1
        assert "gets no token yet" in reported[0]
        assert "AADSTS" not in reported[0]
