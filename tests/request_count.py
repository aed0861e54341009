"""Counts what clients ask the local cloud's Azure services, out of its log of requests while that is being written."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

from localcloud.testing.running import LoggedRequest, StateDirectory
from localcloud.testing.running import read_requests as read
from tests.harness import LocalStack

Requests: TypeAlias = Counter[tuple[str, str]]
"""Numbers by service and method: `("graph", "PATCH")`."""

# The log keeps ten megabytes, some 40,000 requests: far more than any machine makes in this time.
_LOOK_EVERY: Final = 2.0  # seconds
_WRITES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
# Sign-ins of the probes and of the CSI driver would count as well; the stacks measured here have neither.
SERVICES: Final = ("arm", "graph", "keyvault", "entra", "blob")


class RequestCount:
    """The requests of the services of Azure since it was made."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.requests: Requests = Counter()
        self._newest = ""
        self._of_newest: Counter[LoggedRequest] = Counter()
        self._take()
        self.requests.clear()

    @property
    def total(self) -> int:
        """All of them."""
        return self.requests.total()

    @contextmanager
    def following(self) -> Iterator[None]:
        """Within the block read often enough that nothing is lost; at its end everything is counted."""
        ended = threading.Event()

        def follow() -> None:
            while not ended.wait(_LOOK_EVERY):
                self._take()

        follower = threading.Thread(target=follow, daemon=True)
        follower.start()
        try:
            yield
        finally:
            ended.set()
            follower.join()
            self._take()

    def _take(self) -> None:
        """Count what is new: later than the newest seen, or of its millisecond and not seen yet."""
        found = [request for request in read(self._file) if request.time >= self._newest]
        known = Counter(self._of_newest)
        for request in found:
            if known[request] > 0:
                known[request] -= 1
            elif request.service in SERVICES:
                self.requests[request.service, request.method] += 1
        if found:
            self._newest = max(request.time for request in found)
            self._of_newest = Counter(request for request in found if request.time == self._newest)


def requests_of(stack: LocalStack) -> RequestCount:
    """A count for the stack's local cloud, from now on."""
    return RequestCount(StateDirectory(stack.state).requests_file)


def writes(requests: Requests, service: str) -> int:
    """Those of a service that change something."""
    return sum(number for (name, method), number in requests.items() if name == service and method in _WRITES)


def of(requests: Requests, service: str) -> int:
    """All those of a service."""
    return sum(number for (name, _), number in requests.items() if name == service)
