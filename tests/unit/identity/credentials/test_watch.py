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
from tests.unit.identity.credentials.watching import Events, Scene, x5t
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


def test_a_link_swap_is_seen_and_the_new_certificate_signs_in(served: MountedCredential, scene: Scene) -> None:
    served.get_token(ARM_SCOPE)
    scene.renew()
    scene.events.until(EventKind.SERVED)
    assert served.credential.thumbprint == scene.following.thumbprint
    served.get_token(ARM_SCOPE)
    assert scene.entra.assertions[-1]["header"]["x5t"] == x5t(scene.following)
    assert scene.entra.attempts == 2


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
def test_a_candidate_is_tried_again_until_entra_knows_it(scene: Scene) -> None:
    scene.deliver(scene.issued)
    with MountedCredential(scene.mount.path, clock=scene.clock, on_event=scene.events, retry_total=0) as credential:
        scene.deliver(scene.following)
        scene.events.until(EventKind.UNPROVEN)
        for _ in range(2):
            scene.clock.advance(60)
            scene.events.until(EventKind.UNPROVEN)
        scene.entra.registered.append(scene.following.certificate_pem)
        scene.clock.advance(60)
        scene.events.until(EventKind.SERVED)
        assert credential.credential.thumbprint == scene.following.thumbprint


@pytest.mark.parametrize("content", ["", "{", '{"client_id": "x"}', "garbage \0"])
def test_a_bad_file_never_replaces_a_good_one_and_is_reported_once(
    served: MountedCredential, caplog: pytest.LogCaptureFixture, content: str, scene: Scene
) -> None:
    caplog.set_level(logging.INFO, "identity.credentials")
    for _ in range(2):
        scene.mount.write(content)
        event = scene.events.next()
        assert (event.kind, event.is_pending) == (EventKind.REFUSED, False)
        assert event.problem
    assert served.credential.thumbprint == scene.issued.thumbprint
    assert served.get_token(ARM_SCOPE).token.startswith("token-")
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        f"credential file {scene.mount.path} refused, {scene.issued.thumbprint} goes on"
    ]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_half_written_file_is_refused_and_taken_once_it_is_whole(
    served: MountedCredential, caplog: pytest.LogCaptureFixture, share: float, scene: Scene
) -> None:
    scene.entra.registered.append(scene.following.certificate_pem)
    text = document(scene.following, scene.entra.url)
    scene.mount.write(text[: int(len(text) * share)])
    assert scene.events.next().kind is EventKind.REFUSED
    scene.mount.write(text)
    scene.events.until(EventKind.SERVED)
    assert served.credential.thumbprint == scene.following.thumbprint
    assert "LS0tLS1CRUdJTi" not in caplog.text, "that is BEGIN in base64"


def test_a_file_that_is_gone_leaves_the_loaded_one(served: MountedCredential, scene: Scene) -> None:
    (scene.mount.directory / "..data").unlink()
    problem = scene.events.next().problem
    assert problem is not None
    assert problem.startswith(f"credential file {scene.mount.path}: found no readable file")
    assert served.credential.thumbprint == scene.issued.thumbprint


def test_a_plain_file_written_in_place_is_seen_too(tmp_path: Path, scene: Scene) -> None:
    path = tmp_path / "plain.json"
    path.write_text(document(scene.issued, scene.entra.url))
    os.utime(path, (0, 0))  # many kernels give the same time to all writes within some milliseconds
    scene.entra.registered.append(scene.issued.certificate_pem)
    with MountedCredential(path, on_event=scene.events):
        scene.events.until(EventKind.SERVED)
        path.write_text(
            document(scene.issued, scene.entra.url, not_before=scene.issued.not_before + timedelta(seconds=1))
        )
        scene.events.until(EventKind.SERVED)


@pytest.mark.parametrize("error", [OSError(28, "inotify watch limit reached"), KeyError("unforeseen")])
@pytest.mark.usefixtures("looking_often", "known")
def test_a_swap_is_seen_where_the_directory_cannot_be_watched(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, scene: Scene
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("identity.credentials.mounted_file.Observer", refuse)
    with MountedCredential(scene.mount.path, on_event=scene.events) as credential:
        scene.events.until(EventKind.SERVED)
        scene.deliver(scene.issued, not_before=scene.issued.not_before + timedelta(seconds=1))
        scene.events.until(EventKind.SERVED)
        assert credential.is_watching
    assert caplog.text.count("cannot be watched") == 1


@pytest.mark.usefixtures("looking_often")
def test_after_six_hours_the_file_is_read_without_a_change_event(known: Entra, scene: Scene) -> None:
    with MountedCredential(scene.mount.path, clock=scene.clock, on_event=scene.events) as credential:
        scene.events.until(EventKind.SERVED)
        later = scene.issued.not_before + timedelta(seconds=1)
        overwrite_unseen(scene.mount.path, document(scene.issued, known.url, not_before=later))
        scene.clock.now += BACKSTOP
        scene.events.until(EventKind.SERVED)
        assert credential.credential.not_before == later


def test_what_is_logged_holds_no_key(served: MountedCredential, caplog: pytest.LogCaptureFixture, scene: Scene) -> None:
    caplog.set_level(logging.DEBUG)
    scene.deliver(scene.following)
    scene.events.until(EventKind.UNPROVEN)
    scene.deliver(scene.following, client_id=scene.following.private_key_pem)
    scene.events.until(EventKind.UNPROVEN)
    scene.deliver(scene.following, tenant_id=scene.following.private_key_pem)
    scene.events.until(EventKind.REFUSED)
    served.get_token(ARM_SCOPE)
    key = scene.following.private_key_pem.splitlines()[1:-1]
    assert scene.following.thumbprint in caplog.text
    assert not any(line in caplog.text for line in key)
    assert "token-" not in caplog.text
