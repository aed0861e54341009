"""Watching a mounted credential: its events to wait for, a clock that only a test moves, its clients to look at."""

from __future__ import annotations

import base64
import queue
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.identity import CertificateCredential

from identity.credentials import sign_in
from identity.credentials.certificate import IssuedCertificate
from identity.credentials.document import Credential
from identity.credentials.events import Event, EventKind
from identity.credentials.probe.prober import Prober
from identity.credentials.rotation import Rotation, TokenRequest
from tests.unit.identity.credentials.world import ARM_SCOPE, CsiMount, Entra, document

PATIENCE = 120  # seconds until a missing event is a failure; no test waits for it otherwise
ARM = TokenRequest((ARM_SCOPE,))
Renew = Callable[[], None]


class Events:
    """The events a credential reported, to be waited for."""

    def __init__(self) -> None:
        self._events: queue.Queue[Event] = queue.Queue()

    def __call__(self, event: Event) -> None:
        self._events.put(event)

    def next(self) -> Event:
        return self._events.get(timeout=PATIENCE)

    def comes(self, *, within: float) -> bool:
        """Whether there is another one, after so many seconds at most."""
        try:
            self._events.get(timeout=within)
        except queue.Empty:
            return False
        return True

    def until(self, kind: EventKind) -> Event:
        """The next event of that kind; others before it are dropped."""
        while (event := self.next()).kind is not kind:
            pass
        return event

    def rest(self) -> list[EventKind]:
        """The kinds of all that came and was not taken yet."""
        return [self._events.get_nowait().kind for _ in range(self._events.qsize())]


class Scene:
    """What surrounds a credential, each part as its fixture makes it when it is first used."""

    clients: Clients
    clock: FakeClock
    entra: Entra
    events: Events
    following: IssuedCertificate
    issued: IssuedCertificate
    mount: CsiMount
    renew: Renew
    third: IssuedCertificate

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request

    def __getattr__(self, name: str) -> Any:
        return self._request.getfixturevalue(name)

    def deliver(self, issued: IssuedCertificate, **fields: Any) -> None:
        """Mount the certificate's document; `fields` replace arguments of `encode`."""
        self.mount.write(document(issued, self.entra.url, **fields))

    def tries(self, rotation: Rotation, *, seconds: float) -> list[float]:
        """When a candidate was tried, if one looks twice a second: seconds from now on."""
        seen = []
        for half_seconds in range(1, int(seconds * 2) + 1):
            before = self.entra.attempts
            self.clock.advance(0.5)
            rotation.poll()
            seen += [half_seconds / 2] * (self.entra.attempts - before)
        return seen


class FakeClock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class TrackedClient(CertificateCredential):
    """azure-identity's client, which remembers whether it was closed."""

    is_closed = False

    def close(self) -> None:
        super().close()
        self.is_closed = True


class Clients:
    """Every client that was made."""

    def __init__(self) -> None:
        self.made: list[TrackedClient] = []

    def __call__(self, *args: Any, **options: Any) -> TrackedClient:
        self.made.append(TrackedClient(*args, **options))
        return self.made[-1]

    @property
    def open(self) -> int:
        """How many of them are not closed."""
        return sum(not client.is_closed for client in self.made)


class WaitableProber(Prober):
    """A prober whose reports can be waited for."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._reports: queue.Queue[dict[str, Any]] = queue.Queue()

    def prove(self) -> Any:
        report = super().prove()
        self._reports.put(self.to_json())
        return report

    def next(self) -> dict[str, Any]:
        return self._reports.get(timeout=PATIENCE)

    def until(self, wanted: Any) -> dict[str, Any]:
        while not wanted(report := self.next()):
            pass
        return report


def connect(credential: Credential) -> CertificateCredential:
    return sign_in.client(
        credential.authority_host,
        credential.tenant_id,
        credential.client_id,
        credential.key_material.pem(),
        retry_total=0,
    )


def x5t(issued: IssuedCertificate) -> str:
    """How an assertion names the certificate that signs it."""
    return base64.urlsafe_b64encode(bytes.fromhex(issued.thumbprint)).decode()
