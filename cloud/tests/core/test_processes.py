"""Records of processes: the recorded one is ended, another one with its id never."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcloud.core import processes

STUBBORN = "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); signal.pause()"


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


def test_a_recorded_process_is_found_and_ended(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    processes.record(tmp_path / "pids", "daemon", sleeper.pid)

    found = processes.alive(tmp_path / "pids", "daemon")

    assert found is not None
    assert found.end(grace=10)
    assert sleeper.wait(60) == -15
    assert processes.alive(tmp_path / "pids", "daemon") is None
    assert list((tmp_path / "pids").iterdir()) == []


def test_a_process_that_has_the_id_of_a_recorded_one_is_left_alone(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    record = processes.record(tmp_path / "pids", "daemon", sleeper.pid)
    earlier = json.loads(record.file.read_text()) | {"startTime": "an-earlier-boot/12345"}
    record.file.write_text(json.dumps(earlier))

    assert processes.alive(tmp_path / "pids", "daemon") is None
    assert not processes.RecordedProcess(record.file, sleeper.pid, "an-earlier-boot/12345").end(grace=10)
    assert sleeper.poll() is None


@pytest.mark.parametrize("kept", [0, 9])
def test_a_record_that_a_loss_of_power_cut_off_is_of_no_process(
    kept: int, tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    record = processes.record(tmp_path / "pids", "daemon", sleeper.pid)
    record.file.write_bytes(record.file.read_bytes()[:kept])

    assert processes.alive(tmp_path / "pids", "daemon") is None


def test_a_process_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE) as stubborn:
        assert stubborn.stdout is not None
        stubborn.stdout.readline()
        assert processes.record(tmp_path / "pids", "daemon", stubborn.pid).end(grace=0.1)
        assert stubborn.wait(60) == -9


def test_an_ended_process_cannot_be_recorded_and_is_not_alive(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    record = processes.record(tmp_path / "pids", "daemon", sleeper.pid)
    sleeper.kill()
    sleeper.wait()

    assert not record.is_alive()
    assert not record.end(grace=1)
    with pytest.raises(ProcessLookupError):
        processes.record(tmp_path / "pids", "daemon", sleeper.pid)
