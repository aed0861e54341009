"""What nobody foresaw is reported, and neither ends the watch nor takes the served credential away."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
from azure.identity import CertificateCredential

from identity.credentials import document as documents
from identity.credentials.document import Credential
from identity.credentials.events import Event, EventKind
from identity.credentials.mounted_file import DirectoryWatch, MountedFile
from identity.credentials.probe.__main__ import app
from identity.credentials.probe.metrics import Metrics
from identity.credentials.probe.prober import Prober
from identity.credentials.rotation import Rotation
from identity.credentials.token_credential import MountedCredential
from localcloud.testing.hosts import Serve
from tests.unit.identity.credentials.watching import PATIENCE, Clients, Events, Scene, connect
from tests.unit.identity.credentials.world import ARM_SCOPE, CsiMount

SECRET = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"


def raise_the_secret(*_: object, **__: object) -> Any:
    raise KeyError(SECRET)


def test_a_file_whose_reading_fails_in_an_unforeseen_way_is_refused(
    served: MountedCredential, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, scene: Scene
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(documents, "decode", raise_the_secret)
        scene.renew()
        refused = scene.events.until(EventKind.REFUSED)
    assert "found something that this version of the loader did not foresee (KeyError in " in str(refused.problem)
    assert SECRET not in str(refused.problem) + caplog.text
    assert served.credential.thumbprint == scene.issued.thumbprint
    scene.renew()
    scene.events.until(EventKind.SERVED)
    assert served.is_watching


@pytest.mark.usefixtures("known")
def test_so_is_a_credential_that_no_client_takes_until_one_does(clients: Clients, scene: Scene) -> None:
    connects: list[Callable[[Credential], CertificateCredential]] = [raise_the_secret, connect, connect]
    rotation = Rotation(
        MountedFile(scene.mount.path, scene.clock),
        lambda credential: connects.pop()(credential),
        scope=ARM_SCOPE,
        clock=scene.clock,
        on_event=scene.events,
    )
    connects.reverse()
    scene.renew()
    rotation.poll()
    assert scene.events.rest() == [EventKind.ACCEPTED, EventKind.SERVED, EventKind.ACCEPTED, EventKind.REFUSED]
    scene.clock.advance(0.5)
    rotation.poll()
    assert scene.events.rest() == [EventKind.SERVED]
    assert rotation.served.thumbprint == scene.following.thumbprint
    rotation.close()
    assert clients.open == 0


@pytest.mark.parametrize("failing", ["get_token_info", "close"])
def test_a_client_that_raises_neither_stops_the_rotation_nor_stays_open(
    rotation: Rotation, monkeypatch: pytest.MonkeyPatch, failing: str, scene: Scene
) -> None:
    scene.renew()
    with monkeypatch.context() as broken:
        broken.setattr(CertificateCredential, failing, raise_the_secret)
        rotation.poll()
    scene.clock.advance(0.5)
    rotation.poll()
    assert rotation.served.thumbprint == scene.following.thumbprint
    if failing == "get_token_info":
        assert scene.events.rest() == [EventKind.ACCEPTED, EventKind.REFUSED, EventKind.SERVED]
        assert scene.clients.open == 1
    else:
        assert scene.events.rest() == [EventKind.ACCEPTED, EventKind.SERVED]
        scene.clients.made[0].close()


def test_a_clock_that_fails_is_reported_and_looked_at_again(
    rotation: Rotation, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(MountedFile, "is_due", property(raise_the_secret))
        rotation.poll()
    rotation.poll()
    assert events.rest() == [EventKind.REFUSED]


@pytest.mark.usefixtures("known")
def test_a_callback_that_raises_has_no_effect_and_is_logged(caplog: pytest.LogCaptureFixture, scene: Scene) -> None:
    def fail(event: Event) -> None:
        scene.events(event)
        raise_the_secret()

    with MountedCredential(scene.mount.path, on_event=fail) as credential:
        assert scene.events.rest() == [EventKind.ACCEPTED, EventKind.SERVED]
        assert credential.reload() is False
        scene.mount.write("{")
        scene.events.until(EventKind.REFUSED)
        scene.renew()
        scene.events.until(EventKind.SERVED)
        assert credential.credential.thumbprint == scene.following.thumbprint
        assert credential.is_watching
    logged = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert logged[0].startswith("on_event failed for accepted: KeyError in test_unforeseen.py, line ")
    assert SECRET not in caplog.text


def test_a_log_handler_that_raises_does_not_end_the_watch(served: MountedCredential, scene: Scene) -> None:
    class BrokenError(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise_the_secret()

    handler, log = BrokenError(), logging.getLogger("identity.credentials")
    log.addHandler(handler)
    try:
        scene.mount.write("{")
        scene.events.until(EventKind.REFUSED)
        scene.mount.write("[")
        scene.events.until(EventKind.REFUSED)
    finally:
        log.removeHandler(handler)
    scene.renew()
    scene.events.until(EventKind.SERVED)
    assert served.is_watching


class TestHealth:
    """`/healthz` shows whether the probe's loop runs and whether the file is watched."""

    @pytest.mark.usefixtures("known")
    def test_it_is_bad_with_the_reason_once_nothing_watches_the_file(
        self, prober: Prober, mount: CsiMount, serve_plain: Serve, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ended = threading.Event()

        def changes_until_ended(*_: object) -> Iterator[None]:
            ended.wait()
            yield from ()

        monkeypatch.setattr(DirectoryWatch, "changes", changes_until_ended)
        url = f"{serve_plain(app(prober, Metrics(), lambda: True))}/healthz"
        prober.prove()
        assert health(url) == (200, {"alive": True, "reason": None})
        (watcher,) = (thread for thread in threading.enumerate() if thread.name == f"watch {mount.path.name}")
        ended.set()
        watcher.join(PATIENCE)
        reason = f"the thread that watches {mount.path} has ended: later credentials are not seen"
        assert health(url) == (503, {"alive": False, "reason": reason})

    def test_it_is_bad_with_the_reason_once_the_loop_has_ended(self, prober: Prober, serve_plain: Serve) -> None:
        url = f"{serve_plain(app(prober, Metrics(), lambda: False))}/healthz"
        assert health(url) == (503, {"alive": False, "reason": "the thread that proves the credential has ended"})


def health(url: str) -> tuple[int, object]:
    answer = requests.get(url, timeout=PATIENCE)
    return answer.status_code, answer.json()
