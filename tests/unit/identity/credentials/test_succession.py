"""What becomes of a candidate when the file changes again, or time passes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from identity.credentials.certificate import IssuedCertificate
from identity.credentials.events import EventKind
from identity.credentials.rotation import Rotation
from tests.unit.identity.credentials.watching import Scene
from tests.unit.identity.credentials.world import Entra


def test_a_still_newer_file_is_tried_at_once_and_supersedes_for_good(pending: Rotation, scene: Scene) -> None:
    scene.tries(pending, seconds=60)
    before = scene.entra.attempts
    scene.entra.registered.append(scene.third.certificate_pem)
    scene.deliver(scene.third, not_before=scene.following.not_before + timedelta(seconds=1))
    pending.poll()
    assert (scene.entra.attempts, pending.served.thumbprint) == (before + 1, scene.third.thumbprint)
    scene.entra.registered.append(scene.following.certificate_pem)
    assert scene.tries(pending, seconds=120) == []


def test_a_candidate_that_the_file_takes_back_is_not_tried_again(pending: Rotation, scene: Scene) -> None:
    scene.deliver(scene.issued)
    pending.poll()
    assert not scene.events.until(EventKind.UNCHANGED).is_pending
    scene.entra.registered.append(scene.following.certificate_pem)
    assert scene.tries(pending, seconds=120) == []
    assert pending.served.thumbprint == scene.issued.thumbprint


@pytest.mark.parametrize("content", ["", "{", '{"client_id": "x"}', "garbage \0"])
def test_a_bad_file_does_not_take_a_candidate_back(pending: Rotation, content: str, scene: Scene) -> None:
    scene.mount.write(content)
    pending.poll()
    assert scene.events.until(EventKind.REFUSED).is_pending
    scene.entra.registered.append(scene.following.certificate_pem)
    scene.clock.advance(0.5)
    pending.poll()
    assert pending.served.thumbprint == scene.following.thumbprint


def test_a_candidate_that_expires_is_given_up(pending: Rotation, scene: Scene) -> None:
    scene.entra.registered.append(scene.following.certificate_pem)
    scene.clock.now = scene.following.not_after
    pending.poll()
    again, given_up = scene.events.next(), scene.events.next()
    assert [again.kind, given_up.kind] == [EventKind.REFUSED, EventKind.REFUSED]
    assert f"certificate {scene.following.thumbprint}" in str(given_up.problem)
    assert not given_up.is_pending
    assert pending.served.thumbprint != scene.following.thumbprint


def test_a_reload_does_not_wait_for_the_pause(pending: Rotation, entra: Entra, following: IssuedCertificate) -> None:
    assert not pending.reload()
    entra.registered.append(following.certificate_pem)
    assert pending.reload()
    assert not pending.reload()
    assert pending.served.thumbprint == following.thumbprint
