"""The throw-away local cloud: variables of its own, and nothing left however the block ends."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from ops.rehearsal import world
from ops.rehearsal.world import ThrowAwayCloud, throw_away
from ops.stack import local_cloud
from ops.stack.environment import local_paths
from ops.stack.errors import RunInterruptedError


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """State directories whose local cloud was asked to end."""
    found: list[Path] = []

    def run(arguments: Sequence[str], *, output: int | None = None) -> int:
        assert list(arguments) == ["stop", "--remove"]
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN, "a second Ctrl-C must not keep it from that"
        found.append(local_paths().state)
        return 0

    monkeypatch.setattr(local_cloud, "run", run)
    return found


def test_the_callers_own_local_cloud_is_another(stopped: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALCLOUD_STATE_DIR", "/own")
    monkeypatch.setenv("LOCALCLOUD_CLUSTER", "apiserver")

    with throw_away(7) as made:
        assert local_paths().state == made.directory / "state"
        assert os.environ["LOCALCLOUD_FAULTS"] == '{"seed": 7}'
        assert "LOCALCLOUD_CLUSTER" not in os.environ

    assert local_paths().state == Path("/own")
    assert os.environ["LOCALCLOUD_CLUSTER"] == "apiserver"
    assert "LOCALCLOUD_FAULTS" not in os.environ
    assert stopped == [made.directory / "state"]
    assert not made.directory.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_leaves_nothing_either(stopped: list[Path], number: signal.Signals) -> None:
    handlers = [signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM)]
    kept: list[ThrowAwayCloud] = []

    def interrupted() -> None:
        with throw_away(1) as made:
            kept.append(made)
            signal.raise_signal(number)

    with pytest.raises((KeyboardInterrupt, RunInterruptedError)):
        interrupted()

    assert len(stopped) == 1
    assert not kept[0].directory.exists()
    assert [signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_the_end_of_the_log_tells_why(stopped: list[Path]) -> None:
    with throw_away(1) as made:
        os.write(made.output, b"".join(b"line %d\n" % number for number in range(40)))
        lines = made.last_lines().splitlines()

    assert lines[-1] == "line 39"
    assert len(lines) == world._LAST_LINES
