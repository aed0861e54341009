"""The real msi-dataplane beside ours: what it does with a swap of the CSI driver's link."""

from __future__ import annotations

from identity.credentials.events import EventKind
from identity.credentials.token_credential import MountedCredential
from tests.msi_dataplane import SigningIn
from tests.unit.identity.credentials.watching import Scene
from tests.unit.identity.credentials.world import Entra


def test_it_misses_the_swap_of_the_link_that_ours_sees(known: Entra, scene: Scene) -> None:
    with (
        SigningIn(scene.mount.path, str(known.ca_file)) as upstream,
        MountedCredential(scene.mount.path, on_event=scene.events) as ours,
    ):
        assert upstream.next().thumbprint == scene.issued.thumbprint
        scene.renew()

        scene.events.until(EventKind.SERVED)
        while scene.events.until(EventKind.SERVED).credential != ours.credential:
            pass
        assert ours.credential.thumbprint == scene.following.thumbprint
        # What was under way, and a few sign-ins more.
        assert {upstream.next().thumbprint for _ in range(50)} == {scene.issued.thumbprint}


def test_its_backstop_sees_the_swap(known: Entra, scene: Scene) -> None:
    with SigningIn(scene.mount.path, str(known.ca_file), backstop="100ms") as upstream:
        assert upstream.next().thumbprint == scene.issued.thumbprint
        scene.renew()

        seen = scene.issued.thumbprint
        while seen == scene.issued.thumbprint:
            seen = upstream.next().thumbprint
    assert seen == scene.following.thumbprint


def test_it_takes_a_credential_that_entra_does_not_know_yet_and_fails(known: Entra, scene: Scene) -> None:
    with SigningIn(scene.mount.path, str(known.ca_file), backstop="100ms") as upstream:
        scene.deliver(scene.following)

        while not (signed_in := upstream.next()).error:
            pass
    assert "AADSTS700027" in signed_in.error
