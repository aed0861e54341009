"""Watch events and their subscribers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal

from localcloud.kubernetes.errors import expired
from localcloud.kubernetes.kinds import ResourceKind

# How many past events a watch may start behind; a client that is further behind lists again (410 Expired).
_HISTORY: Final = 4096


@dataclass(frozen=True)
class WatchEvent:
    """One event. `before` is the object before a modification: a watch with a selector needs both sides."""

    version: int
    type: Literal["ADDED", "MODIFIED", "DELETED"]
    kind: ResourceKind
    document: dict[str, Any]
    before: dict[str, Any] | None = None


class Broker:
    """Delivers every change to every open watch. Used on one event loop, in the process that serves the API."""

    def __init__(self, version: int) -> None:
        self._oldest = version
        self._history: deque[WatchEvent] = deque(maxlen=_HISTORY)
        self._queues: set[asyncio.Queue[WatchEvent]] = set()

    def publish(self, change: WatchEvent) -> None:
        """Record a change and wake the watches."""
        if len(self._history) == _HISTORY:
            self._oldest = self._history[0].version
        self._history.append(change)
        for queue in self._queues:
            queue.put_nowait(change)

    async def watch(
        self, kind: ResourceKind, since: int, wanted: Callable[[dict[str, Any]], bool], timeout: float | None
    ) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """`(type, object)` of every change after version `since` to objects of the kind that are `wanted`.

        Ends after `timeout` seconds. Raises a 410 `StatusError` if the history does not reach back to `since`.
        """
        if since < self._oldest:
            raise expired("too old resource version: list again and watch from there")
        ends = None if timeout is None else asyncio.get_running_loop().time() + timeout
        queue: asyncio.Queue[WatchEvent] = asyncio.Queue()
        for change in self._history:
            if change.version > since:
                queue.put_nowait(change)
        self._queues.add(queue)
        try:
            with suppress(TimeoutError):
                while True:
                    # Around the `get` alone: around the loop it would cancel the consumer of this generator, too.
                    left = None if ends is None else ends - asyncio.get_running_loop().time()
                    async with asyncio.timeout(left):
                        change = await queue.get()
                    if change.kind is kind and (type_ := _type_for(change, wanted)):
                        yield type_, change.document
        finally:
            self._queues.discard(queue)


def _type_for(change: WatchEvent, wanted: Callable[[dict[str, Any]], bool]) -> str | None:
    """An object that comes into a selector is ADDED to its watch, one that leaves it is DELETED from it."""
    is_wanted = wanted(change.document)
    if change.type != "MODIFIED" or change.before is None:
        return change.type if is_wanted else None
    was_wanted = wanted(change.before)
    if is_wanted:
        return "MODIFIED" if was_wanted else "ADDED"
    return "DELETED" if was_wanted else None
