"""Certificates made side by side by the plugin's own process, against one after another."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, median
from typing import Final

import grpc
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from bench.figures import Figure, Limit
from bench.measure import in_turn
from identity.credentials import rfc3339
from ops.stack.environment import VENV
from plugin.values import to_struct
from tests.harness import PROJECT

_CERTIFICATES: Final = 16  # the first ones of two hosted clusters with eight applications each
_ROUNDS: Final = 5
_PAUSE: Final = 0.005  # seconds
_URN: Final = "urn:pulumi:bench::idstack::idstack:index:Certificate::bench"

_Create = Callable[[int], object]


def keys() -> Figure:
    """How many of the plugin's threads could run at once.

    The kernel calls a thread runnable whether it has a core or waits for one, but not while it waits for Python's lock:
    other work on the machine changes how long the keys take, not this.
    """
    with _plugin() as (pid, create), ThreadPoolExecutor(_CERTIFICATES) as threads:

        def one_after_another() -> None:
            for number in range(_CERTIFICATES):
                create(number)

        def side_by_side() -> None:
            list(threads.map(create, range(_CERTIFICATES)))

        side_by_side()
        ours, peer = in_turn(_ROUNDS, lambda: _runnable(pid, side_by_side), lambda: _runnable(pid, one_after_another))
    return Figure(
        name=f"{_CERTIFICATES} certificates side by side: threads that can run at once",
        unit="threads",
        ours=median(ours),
        peer=median(peer),
        peer_name="the same plugin, asked for one certificate after another",
        limit=Limit("at least", 2),
        note=f"median of {_ROUNDS} rounds in turn, the plugin's own process looked at every {_PAUSE * 1000:g} ms",
    )


def _runnable(pid: int, work: Callable[[], None]) -> float:
    """The mean number of runnable threads of a process while `work` goes on."""
    seen: list[int] = []
    with ThreadPoolExecutor(1) as thread:
        working = thread.submit(work)
        while not working.done():
            seen.append(sum(map(_is_runnable, Path(f"/proc/{pid}/task").iterdir())))
            time.sleep(_PAUSE)
        working.result()
    return fmean(seen)


def _is_runnable(task: Path) -> bool:
    """Whether its state is R, which follows the name in brackets (proc_pid_stat(5))."""
    try:
        return (task / "stat").read_text().rpartition(") ")[2].startswith("R")
    except (FileNotFoundError, ProcessLookupError):  # it has ended in the meantime
        return False


@contextmanager
def _plugin() -> Iterator[tuple[int, _Create]]:
    """A running plugin: its process id, and a function that makes it issue a certificate."""
    with subprocess.Popen(
        [str(VENV / "bin/python"), "-m", "provider"], stdout=subprocess.PIPE, text=True, cwd=PROJECT
    ) as process:
        assert process.stdout is not None
        try:
            with grpc.insecure_channel(f"127.0.0.1:{process.stdout.readline().strip()}") as channel:
                stub = provider_pb2_grpc.ResourceProviderStub(channel)
                yield process.pid, lambda number: stub.Create(_request(number))
        finally:
            process.kill()


def _request(number: int) -> provider_pb2.CreateRequest:
    inputs = {
        "commonName": f"bench-{number}",
        "keySize": 2048,
        "lifetimeDays": 90,
        "generation": 1,
        "notBefore": rfc3339.render(datetime.now(UTC).replace(microsecond=0)),
    }
    return provider_pb2.CreateRequest(urn=_URN, properties=to_struct(inputs))
