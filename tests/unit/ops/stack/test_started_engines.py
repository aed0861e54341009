"""Which engines this machine has started, as their records tell after a kill, a restart, and in another container."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from identity.credentials import rfc3339
from ops.stack import lock
from ops.stack.lock import StartedEngine, StartedEngines, StartingEngine, _here

HOST = socket.gethostname()


@pytest.fixture
def engines(tmp_path: Path) -> StartedEngines:
    return StartedEngines.of("organization/idstack/dev", {"PULUMI_HOME": str(tmp_path / "home")})


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as running:
        yield running
        running.kill()


def begun(engines: StartedEngines, process: subprocess.Popen[bytes]) -> StartedEngine:
    """The record of an engine that has been started, as another command reads it."""
    StartingEngine(engines).begin(process.pid)
    [found] = engines.all()
    return found


def test_an_engine_runs_until_it_is_killed(engines: StartedEngines, process: subprocess.Popen[bytes]) -> None:
    found = begun(engines, process)
    now = rfc3339.render(datetime.now(UTC))

    assert engines.find(process.pid, HOST, now) == found
    engines.forget()
    assert list(engines.all()) == [found], "it may still run"
    assert found.runs(is_local=False) is True
    assert replace(found, pid=os.getpid()).runs(is_local=False) is False, "another process that got the id"
    process.kill()
    process.wait()
    assert found.runs(is_local=False) is False
    assert engines.find(process.pid, "another-host", now) is None
    assert StartedEngines(engines.folder, "stage").find(process.pid, HOST, now) is None


@pytest.mark.parametrize(
    ("machine", "is_local", "runs"),
    [("this", False, False), ("this", True, False), ("other", False, None), ("", False, None), ("", True, False)],
)
def test_after_a_restart_of_the_same_machine_no_engine_runs(
    engines: StartedEngines,
    process: subprocess.Popen[bytes],
    monkeypatch: pytest.MonkeyPatch,
    machine: str,
    is_local: bool,
    runs: bool | None,
) -> None:
    here = {**_here(), "machine": "this"}  # a container may have no id
    monkeypatch.setattr(lock, "_here", lambda: here)
    before = replace(begun(engines, process), boot="the boot before", machine=machine)

    assert before.runs(is_local=is_local) is runs


def test_an_engine_that_was_seen_to_end_does_not_run_wherever_that_is_read(
    engines: StartedEngines, process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    starting = StartingEngine(engines)
    starting.begin(process.pid)
    starting.end(may_have_lock=False)
    assert list(engines.all()) == [], "it left no lock"
    starting = StartingEngine(engines)
    starting.begin(process.pid)
    starting.end(may_have_lock=True)
    elsewhere = {**_here(), "namespace": "pid:[4026539999]"}
    monkeypatch.setattr(lock, "_here", lambda: elsewhere)

    [found] = engines.all()
    assert found.runs(is_local=False) is False
    other = replace(found, ended=None)
    assert [other.runs(is_local=is_local) for is_local in (False, True)] == [None, None], "of another container"
    engines.forget()
    assert list(engines.all()) == []


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}', "\x00"])
def test_a_record_that_is_cut_short_or_cannot_be_written_counts_for_nothing(
    engines: StartedEngines, process: subprocess.Popen[bytes], content: str
) -> None:
    engines.folder.mkdir(parents=True)
    (engines.folder / "dev-1-2.json").write_text(content)
    assert list(engines.all()) == []
    shutil.rmtree(engines.folder)
    engines.folder.write_text("not a directory")

    starting = StartingEngine(engines)
    starting.begin(process.pid)
    starting.end(may_have_lock=False)

    assert list(engines.all()) == []
