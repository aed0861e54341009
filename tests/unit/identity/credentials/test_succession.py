"""What becomes of a candidate when the file changes again, or time passes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from identity.credentials.certificate import IssuedCertificate
from identity.credentials.events import EventKind
from identity.credentials.rotation import Rotation
from tests.unit.identity.credentials.watching import Events, FakeClock, tries
from tests.unit.identity.credentials.world import CsiMount, Entra, document


def test_a_still_newer_file_is_tried_at_once_and_supersedes_for_good(
    pending: Rotation,
    mount: CsiMount,
    entra: Entra,
    clock: FakeClock,
    following: IssuedCertificate,
    third: IssuedCertificate,
) -> None:
    tries(pending, entra, clock, seconds=60)
    before = entra.attempts
    entra.registered.append(third.certificate_pem)
    mount.write(document(third, entra.url, not_before=following.not_before + timedelta(seconds=1)))
    pending.poll()
    assert (entra.attempts, pending.served.thumbprint) == (before + 1, third.thumbprint)
    entra.registered.append(following.certificate_pem)
    assert tries(pending, entra, clock, seconds=120) == []


def test_a_candidate_that_the_file_takes_back_is_not_tried_again(
    pending: Rotation,
    mount: CsiMount,
    entra: Entra,
    clock: FakeClock,
    issued: IssuedCertificate,
    following: IssuedCertificate,
    events: Events,
) -> None:
    mount.write(document(issued, entra.url))
    pending.poll()
    assert not events.until(EventKind.UNCHANGED).is_pending
    entra.registered.append(following.certificate_pem)
    assert tries(pending, entra, clock, seconds=120) == []
    assert pending.served.thumbprint == issued.thumbprint


@pytest.mark.parametrize("content", ["", "{", '{"client_id": "x"}', "garbage \0"])
def test_a_bad_file_does_not_take_a_candidate_back(
    pending: Rotation,
    mount: CsiMount,
    entra: Entra,
    clock: FakeClock,
    following: IssuedCertificate,
    events: Events,
    content: str,
) -> None:
    mount.write(content)
    pending.poll()
    assert events.until(EventKind.REFUSED).is_pending
    entra.registered.append(following.certificate_pem)
    clock.advance(0.5)
    pending.poll()
    assert pending.served.thumbprint == following.thumbprint


def test_a_candidate_that_expires_is_given_up(
    pending: Rotation, entra: Entra, clock: FakeClock, following: IssuedCertificate, events: Events
) -> None:
    entra.registered.append(following.certificate_pem)
    clock.now = following.not_after
    pending.poll()
    again, given_up = events.next(), events.next()
    assert [again.kind, given_up.kind] == [EventKind.REFUSED, EventKind.REFUSED]
    assert f"certificate {following.thumbprint}" in str(given_up.problem)
    assert not given_up.is_pending
    assert pending.served.thumbprint != following.thumbprint


def test_a_reload_does_not_wait_for_the_pause(pending: Rotation, entra: Entra, following: IssuedCertificate) -> None:
    assert not pending.reload()
    entra.registered.append(following.certificate_pem)
    assert pending.reload()
    assert not pending.reload()
    assert pending.served.thumbprint == following.thumbprint
