"""A loader that hundreds ask for hours leaks nothing, and asks Entra ID once for all who want the same token."""

from __future__ import annotations

import gc
import itertools
import json
import logging
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from azure.core.exceptions import ClientAuthenticationError

from identity.credentials import mounted_file
from identity.credentials.certificate import IssuedCertificate
from identity.credentials.events import EventKind
from identity.credentials.token_credential import MountedCredential
from tests.load.callers import Callers, Hours, calling, failures
from tests.load.entra import EntraProcess
from tests.unit.identity.credentials.watching import Events
from tests.unit.identity.credentials.world import ARM_SCOPE, CsiMount

VAULT_SCOPE = "https://vault.azure.net/.default"
HALF_HOUR = 1800.0
# Seconds of it that pass with requests under way: an assertion is good for ten minutes.
MEANWHILE = 300.0


@dataclass(frozen=True)
class Load:
    """Callers, for how many half-hours they ask, and the rotations in each."""

    threads: int
    tasks: int
    half_hours: int
    rotations: int
    warm_up: int
    """Half-hours after which nothing may grow any more."""


LOADS = [
    pytest.param(Load(16, 32, half_hours=4, rotations=4, warm_up=2), id="short"),
    # 5,120 sign-ins by callers and 512 rotations in eight hours.
    pytest.param(Load(64, 256, half_hours=16, rotations=32, warm_up=4), id="whole", marks=pytest.mark.nightly),
]
# Memory that may come with a half-hour after the warm-up, in bytes. One client that is not closed has more.
_ALLOWED = 30_000
# Bytes of a block from which on it is a table that doubled, and not what the loader holds, which is in blocks of a few
# kilobytes. The interpreter's own table of interned strings takes 4 MB at once after many other tests.
_TABLE = 250_000


def rotations(mount: CsiMount, entra: EntraProcess, issued: IssuedCertificate, events: Events) -> Iterator[int]:
    """Replace the mounted credential again and again; each is served before the iteration goes on."""
    for rotation in itertools.count(1):
        mount.write(entra.document(issued, cut=rotation))
        events.until(EventKind.SERVED)
        yield rotation


@pytest.fixture
def hours(entra: EntraProcess, monkeypatch: pytest.MonkeyPatch) -> Hours:
    return Hours(entra, monkeypatch)


@pytest.fixture
def swaps_seen_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    """A swap is taken as over sooner, for there are hundreds."""
    monkeypatch.setattr(mounted_file, "_SETTLE", timedelta(milliseconds=10))
    monkeypatch.setattr(mounted_file, "_CHECK_EVERY", timedelta(milliseconds=50))


@pytest.fixture
def unlogged() -> Iterator[None]:
    """Nothing is logged: pytest keeps every record, which would look like a leak."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture
def trace() -> Iterator[Callable[[], None]]:
    """Begins to count what Python allocates, until the test ends."""
    yield tracemalloc.start
    tracemalloc.stop()


def memory() -> int:
    """Bytes that Python has allocated since `tracemalloc` began and still uses, but for tables that doubled."""
    gc.collect()
    return sum(trace.size for trace in tracemalloc.take_snapshot().traces if trace.size < _TABLE)


@pytest.mark.usefixtures("swaps_seen_sooner", "unlogged")
@pytest.mark.parametrize("load", LOADS)
def test_no_descriptor_thread_or_memory_leaks(
    load: Load,
    entra: EntraProcess,
    mount: CsiMount,
    issued: IssuedCertificate,
    events: Events,
    hours: Hours,
    trace: Callable[[], None],
) -> None:
    credential = MountedCredential(mount.path, clock=hours, on_event=events)
    events.until(EventKind.SERVED)
    rotated = rotations(mount, entra, issued, events)
    used: list[tuple[int, int]] = []
    allocated: list[int] = []
    gc.collect()  # once: what tests before this one have left open is not the loader's
    with calling(credential, load.threads, load.tasks) as callers:
        for half_hour in range(load.half_hours):
            if half_hour == load.warm_up:
                trace()
            answers = callers.ask([ARM_SCOPE, VAULT_SCOPE], partial(challenge, half_hour))
            for _ in range(load.rotations):
                next(rotated)
                hours.advance(MEANWHILE / load.rotations)
            assert failures(answers()) == []
            hours.advance(HALF_HOUR - MEANWHILE)
            # Its only connection is the one that has proven it.
            next(rotated)
            used.append((descriptors(), threading.active_count()))
            if half_hour >= load.warm_up:
                allocated.append(memory())
    assert set(used[load.warm_up :]) == {used[load.warm_up]}, used
    assert (allocated[-1] - allocated[0]) / max(len(allocated) - 1, 1) < _ALLOWED, allocated
    assert entra.sign_ins == load.half_hours * (callers.number + load.rotations + 1)


def challenge(half_hour: int, number: int) -> str:
    """Claims of the caller's own: no cache and nobody else's request answers it."""
    return json.dumps({"access_token": {"nbf": {"essential": True, "value": f"{half_hour}-{number}"}}})


@pytest.fixture(params=[(16, 32, 3), pytest.param((64, 256, 60), marks=pytest.mark.nightly)], ids=["short", "whole"])
def outage(request: pytest.FixtureRequest) -> tuple[int, int, int]:
    """Threads, tasks, and seconds without Entra ID."""
    found: tuple[int, int, int] = request.param
    return found


def test_an_outage_costs_a_request_a_second_and_no_herd_follows(
    outage: tuple[int, int, int], entra: EntraProcess, mount: CsiMount, events: Events, hours: Hours
) -> None:
    threads, tasks, seconds = outage
    scopes = [ARM_SCOPE, VAULT_SCOPE]

    def requests(callers: Callers, *, fail: bool) -> int:
        """Let everybody ask once; returns how many requests reached Entra ID."""
        before = entra.requests
        answers = callers.ask(scopes, lambda _: None)()
        failed = failures(answers)
        assert len(failed) == (callers.number if fail else 0), failed[:3]
        assert all(isinstance(failure, ClientAuthenticationError) for failure in failed)
        return entra.requests - before

    credential = MountedCredential(mount.path, clock=hours, on_event=events, retry_total=0)
    with calling(credential, threads, tasks) as callers:
        # The first time MSAL asks where the tenant's tokens are, for each scope if both come at once.
        assert requests(callers, fail=False) in (len(scopes) + 1, len(scopes) + 2)
        assert requests(callers, fail=False) == 0, "both tokens are in the cache"
        hours.advance(2 * 3600)
        with entra.away():
            for _ in range(seconds):
                assert requests(callers, fail=True) == len(scopes)
                assert requests(callers, fail=True) == 0, "the failure is remembered for a second"
                hours.advance(1)
        assert requests(callers, fail=False) == len(scopes)
        assert requests(callers, fail=False) == 0
