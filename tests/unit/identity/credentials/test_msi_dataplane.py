"""The real msi-dataplane beside ours: what it does with a swap of the CSI driver's link."""

from __future__ import annotations

from identity.credentials.certificate import IssuedCertificate
from identity.credentials.events import EventKind
from identity.credentials.token_credential import MountedCredential
from tests.msi_dataplane import SigningIn
from tests.unit.identity.credentials.watching import Events, Renew
from tests.unit.identity.credentials.world import CsiMount, Entra, document


def test_it_misses_the_swap_of_the_link_that_ours_sees(
    known: Entra, mount: CsiMount, events: Events, issued: IssuedCertificate, following: IssuedCertificate, renew: Renew
) -> None:
    with (
        SigningIn(mount.path, str(known.ca_file)) as upstream,
        MountedCredential(mount.path, on_event=events) as ours,
    ):
        assert upstream.next().thumbprint == issued.thumbprint
        renew()

        events.until(EventKind.SERVED)
        while events.until(EventKind.SERVED).credential != ours.credential:
            pass
        assert ours.credential.thumbprint == following.thumbprint
        # What was under way, and a few sign-ins more.
        assert {upstream.next().thumbprint for _ in range(50)} == {issued.thumbprint}


def test_its_backstop_sees_the_swap(
    known: Entra, mount: CsiMount, issued: IssuedCertificate, following: IssuedCertificate, renew: Renew
) -> None:
    with SigningIn(mount.path, str(known.ca_file), backstop="100ms") as upstream:
        assert upstream.next().thumbprint == issued.thumbprint
        renew()

        seen = issued.thumbprint
        while seen == issued.thumbprint:
            seen = upstream.next().thumbprint
    assert seen == following.thumbprint


def test_it_takes_a_credential_that_entra_does_not_know_yet_and_fails(
    known: Entra, mount: CsiMount, following: IssuedCertificate
) -> None:
    with SigningIn(mount.path, str(known.ca_file), backstop="100ms") as upstream:
        mount.write(document(following, known.url))

        while not (signed_in := upstream.next()).error:
            pass
    assert "AADSTS700027" in signed_in.error
