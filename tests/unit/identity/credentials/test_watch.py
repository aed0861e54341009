"""A mounted credential follows the file that the CSI driver swaps, and no bad file takes it off its course."""

from __future__ import annotations

import logging
import os
from datetime import timedelta
from pathlib import Path

import pytest

from identity.credentials import mounted_file
from identity.credentials.certificate import IssuedCertificate
from identity.credentials.events import EventKind
from identity.credentials.mounted_file import BACKSTOP
from identity.credentials.token_credential import MountedCredential
from tests.unit.identity.credentials.watching import Events, FakeClock, Renew, x5t
from tests.unit.identity.credentials.world import ARM_SCOPE, CsiMount, Entra, document


@pytest.fixture
def looking_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found without the watch is found soon."""
    for pause in ("_CHECK_EVERY", "_CHECK_OFTEN"):
        monkeypatch.setattr(mounted_file, pause, timedelta(milliseconds=10))


def overwrite_unseen(path: Path, content: str) -> None:
    """Write in place so that size, inode and time of change stay as they are, in a directory that is not watched."""
    status = path.stat()
    assert len(content.encode()) == status.st_size
    path.write_text(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_a_link_swap_is_seen_and_the_new_certificate_signs_in(
    served: MountedCredential, entra: Entra, following: IssuedCertificate, events: Events, renew: Renew
) -> None:
    served.get_token(ARM_SCOPE)
    renew()
    events.until(EventKind.SERVED)
    assert served.credential.thumbprint == following.thumbprint
    served.get_token(ARM_SCOPE)
    assert entra.assertions[-1]["header"]["x5t"] == x5t(following)
    assert entra.attempts == 2


def test_the_watch_alone_sees_one_link_swap_after_the_other(
    mount: CsiMount, known: Entra, issued: IssuedCertificate, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mounted_file, "_CHECK_EVERY", timedelta(hours=1))
    with MountedCredential(mount.path, on_event=events):
        events.until(EventKind.SERVED)

        def is_seen() -> bool:
            mount.write("{")
            return events.comes(within=1)  # longer than a watch that sees it waits for more changes

        assert any(is_seen() for _ in range(100)), "the first may be missed: nothing shows when the watch has begun"
        for later in (1, 2):
            mount.write(document(issued, known.url, not_before=issued.not_before + timedelta(seconds=later)))
            events.until(EventKind.SERVED)


@pytest.mark.usefixtures("looking_often")
def test_a_candidate_is_tried_again_until_entra_knows_it(
    mount: CsiMount,
    entra: Entra,
    issued: IssuedCertificate,
    following: IssuedCertificate,
    events: Events,
    clock: FakeClock,
) -> None:
    mount.write(document(issued, entra.url))
    with MountedCredential(mount.path, clock=clock, on_event=events, retry_total=0) as credential:
        mount.write(document(following, entra.url))
        events.until(EventKind.UNPROVEN)
        for _ in range(2):
            clock.advance(60)
            events.until(EventKind.UNPROVEN)
        entra.registered.append(following.certificate_pem)
        clock.advance(60)
        events.until(EventKind.SERVED)
        assert credential.credential.thumbprint == following.thumbprint


@pytest.mark.parametrize("later", [0, -1])
def test_a_document_that_is_not_later_is_ignored(
    served: MountedCredential,
    mount: CsiMount,
    entra: Entra,
    issued: IssuedCertificate,
    third: IssuedCertificate,
    events: Events,
    later: int,
) -> None:
    mount.write(document(third, entra.url, not_before=issued.not_before + timedelta(seconds=later)))
    assert events.next().kind is EventKind.UNCHANGED
    assert served.credential.thumbprint == issued.thumbprint


@pytest.mark.parametrize("content", ["", "{", '{"client_id": "x"}', "garbage \0"])
def test_a_bad_file_never_replaces_a_good_one_and_is_reported_once(
    served: MountedCredential,
    mount: CsiMount,
    issued: IssuedCertificate,
    events: Events,
    caplog: pytest.LogCaptureFixture,
    content: str,
) -> None:
    caplog.set_level(logging.INFO, "identity.credentials")
    for _ in range(2):
        mount.write(content)
        event = events.next()
        assert (event.kind, event.is_pending) == (EventKind.REFUSED, False)
        assert event.problem
    assert served.credential.thumbprint == issued.thumbprint
    assert served.get_token(ARM_SCOPE).token.startswith("token-")
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        f"credential file {mount.path} refused, {issued.thumbprint} goes on"
    ]


def test_an_expired_file_never_replaces_a_good_one(
    served: MountedCredential, mount: CsiMount, entra: Entra, issued: IssuedCertificate, events: Events
) -> None:
    start = issued.not_before + timedelta(seconds=1)
    mount.write(document(issued, entra.url, not_before=start, not_after=start + timedelta(seconds=1)))
    event = events.next()
    assert event.kind is EventKind.REFUSED
    assert "found a credential that expired at" in str(event.problem)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_half_written_file_is_refused_and_taken_once_it_is_whole(
    served: MountedCredential,
    mount: CsiMount,
    entra: Entra,
    following: IssuedCertificate,
    events: Events,
    caplog: pytest.LogCaptureFixture,
    share: float,
) -> None:
    entra.registered.append(following.certificate_pem)
    text = document(following, entra.url)
    mount.write(text[: int(len(text) * share)])
    assert events.next().kind is EventKind.REFUSED
    mount.write(text)
    events.until(EventKind.SERVED)
    assert served.credential.thumbprint == following.thumbprint
    assert "LS0tLS1CRUdJTi" not in caplog.text, "that is BEGIN in base64"


def test_a_file_that_is_gone_leaves_the_loaded_one(
    served: MountedCredential, mount: CsiMount, issued: IssuedCertificate, events: Events
) -> None:
    (mount.directory / "..data").unlink()
    problem = events.next().problem
    assert problem is not None
    assert problem.startswith(f"credential file {mount.path}: found no readable file")
    assert served.credential.thumbprint == issued.thumbprint


def test_a_plain_file_written_in_place_is_seen_too(
    tmp_path: Path, entra: Entra, issued: IssuedCertificate, events: Events
) -> None:
    path = tmp_path / "plain.json"
    path.write_text(document(issued, entra.url))
    os.utime(path, (0, 0))  # many kernels give the same time to all writes within some milliseconds
    entra.registered.append(issued.certificate_pem)
    with MountedCredential(path, on_event=events):
        events.until(EventKind.SERVED)
        path.write_text(document(issued, entra.url, not_before=issued.not_before + timedelta(seconds=1)))
        events.until(EventKind.SERVED)


@pytest.mark.usefixtures("looking_often")
def test_a_swap_is_seen_where_the_directory_cannot_be_watched(
    mount: CsiMount,
    known: Entra,
    issued: IssuedCertificate,
    events: Events,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "inotify watch limit reached")

    monkeypatch.setattr("identity.credentials.mounted_file.Observer", refuse)
    with MountedCredential(mount.path, on_event=events):
        events.until(EventKind.SERVED)
        mount.write(document(issued, known.url, not_before=issued.not_before + timedelta(seconds=1)))
        events.until(EventKind.SERVED)
    assert caplog.text.count("cannot be watched") == 1


@pytest.mark.usefixtures("looking_often")
def test_after_six_hours_the_file_is_read_without_a_change_event(
    mount: CsiMount, known: Entra, issued: IssuedCertificate, events: Events, clock: FakeClock
) -> None:
    with MountedCredential(mount.path, clock=clock, on_event=events) as credential:
        events.until(EventKind.SERVED)
        later = issued.not_before + timedelta(seconds=1)
        overwrite_unseen(mount.path, document(issued, known.url, not_before=later))
        clock.now += BACKSTOP
        events.until(EventKind.SERVED)
        assert credential.credential.not_before == later


def test_what_is_logged_holds_no_key(
    served: MountedCredential,
    mount: CsiMount,
    entra: Entra,
    following: IssuedCertificate,
    events: Events,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    mount.write(document(following, entra.url))
    events.until(EventKind.UNPROVEN)
    mount.write(document(following, entra.url, client_id=following.private_key_pem))
    events.until(EventKind.UNPROVEN)
    mount.write(document(following, entra.url, tenant_id=following.private_key_pem))
    events.until(EventKind.REFUSED)
    served.get_token(ARM_SCOPE)
    key = following.private_key_pem.splitlines()[1:-1]
    assert following.thumbprint in caplog.text
    assert not any(line in caplog.text for line in key)
    assert "token-" not in caplog.text
