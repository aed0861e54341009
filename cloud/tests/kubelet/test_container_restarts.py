"""The pauses before a container runs again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from localcloud.kubelet import containers
from localcloud.kubelet.containers import Container, Intervals

_INTERVALS = Intervals(restart=(1.0, 4.0), steady=60.0)


def _pauses(monkeypatch: pytest.MonkeyPatch, runs: Sequence[float]) -> list[float]:
    """The pauses after runs of so many seconds, each of which fails."""
    pauses: list[float] = []
    left, now = list(runs), [0.0]

    async def run_once(_: Container) -> int:
        now[0] += left.pop(0)
        return 1

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if not left:
            raise asyncio.CancelledError

    loop = SimpleNamespace(time=lambda: now[0])
    monkeypatch.setattr(
        containers, "asyncio", SimpleNamespace(sleep=sleep, get_running_loop=lambda: loop, Event=asyncio.Event)
    )
    monkeypatch.setattr(Container, "_run_once", run_once)
    node: Any = SimpleNamespace(intervals=_INTERVALS, recorder=AsyncMock())
    container = Container(node, {"spec": {}}, {"name": "c"}, Path(), lambda: None, restart_policy="Always")
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(container.run())
    return pauses


def test_the_pauses_of_a_container_that_ends_at_once_grow_to_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _pauses(monkeypatch, [0.1] * 5) == [1.0, 2.0, 4.0, 4.0, 4.0]


def test_after_a_steady_run_the_pauses_begin_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _pauses(monkeypatch, [0.1, 0.1, 60.0, 0.1]) == [1.0, 2.0, 1.0, 2.0]
