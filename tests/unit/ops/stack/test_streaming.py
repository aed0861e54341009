"""The engine as a child process: signals, deadlines, and a run that waits for ever."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from ops.stack.errors import WrongUsageError
from ops.stack.streaming import Deadline, Ended, Standstill, run_streaming

_ROOT = Path(__file__).parents[4]


def ended(script: str, deadline: Deadline | None = None) -> Ended:
    """How a shell's script ends as the engine."""
    return run_streaming(
        ["sh", "-c", script], directory=_ROOT, environment=os.environ, output=sys.stdout.fileno(), deadline=deadline
    )


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The signals that are sent to the engine."""
    sent: list[int] = []
    send = subprocess.Popen.send_signal

    def recorded(process: subprocess.Popen[str], number: int) -> None:
        sent.append(number)
        send(process, number)

    monkeypatch.setattr(subprocess.Popen, "send_signal", recorded)
    return sent


@pytest.mark.parametrize("name", ["INT", "TERM"])
def test_a_signal_to_the_command_is_passed_on_and_its_end_awaited(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    script = f"sleep 3600 & trap 'kill $! 2>/dev/null; echo unlocked >&2; exit 7' {name}; kill -{name} $PPID; wait"

    assert ended(script) == Ended(7, "unlocked\n", f"SIG{name}")
    assert capfd.readouterr().err == "unlocked\n"


def test_a_second_signal_is_not_passed_on(sent: list[int]) -> None:
    # With the second one an engine leaves its lock and its pending operations behind.
    script = (
        "sleep 3600 & trap 'kill $! 2>/dev/null; kill -TERM $PPID; kill -INT $PPID; exit 7' INT; kill -INT $PPID; wait"
    )

    assert ended(script).interrupted_by == "SIGINT"
    assert sent == [signal.SIGINT]


def test_a_signal_while_the_engine_starts_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    start = subprocess.Popen

    def interrupted(*arguments: Any, **options: Any) -> subprocess.Popen[str]:
        signal.raise_signal(signal.SIGTERM)
        return start(*arguments, **options)

    monkeypatch.setattr(subprocess, "Popen", interrupted)

    assert ended("exec sleep 3600") == Ended(-signal.SIGTERM, "", "SIGTERM")


def test_a_signal_that_comes_as_a_read_of_the_engines_errors_begins_is_passed_on() -> None:
    engine = "import signal, time; signal.pthread_sigmask(signal.SIG_UNBLOCK, [2]); print(flush=True); time.sleep(60)"
    reading, output = os.pipe()

    def interrupt() -> None:
        os.read(reading, 1)
        os.kill(os.getpid(), signal.SIGINT)

    # It is this thread that the system interrupts: the main one is not called out of its read.
    threading.Thread(target=interrupt, daemon=True).start()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        run = run_streaming([sys.executable, "-c", engine], directory=_ROOT, environment=os.environ, output=output)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        os.close(reading)
        os.close(output)

    assert (run.code, run.interrupted_by) == (-signal.SIGINT, "SIGINT")


def test_what_the_engine_says_of_a_lock_is_not_printed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    # pulumi/pulumi v3.259 `pkg/backend/diy/lock.go`
    said = (
        "error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end or delete the "
        "lock file with `pulumi cancel`.\n  file:///locks/1.json: created by root@host (pid 7) at 2026-11-21T17:13:57Z"
    )
    command = ["sh", "-c", f"cat >&2 <<'SAID'\n{said}\nwarning: old\nSAID"]

    ended = run_streaming(command, directory=tmp_path, environment={}, output=sys.stdout.fileno())

    assert ended.errors == f"{said}\nwarning: old\n", "the rest of the program looks for it"
    assert capfd.readouterr().err == "warning: old\n"


_COMMAND = """
import os, subprocess, sys
from pathlib import Path
from ops.stack.streaming import run_streaming

send = subprocess.Popen.send_signal
subprocess.Popen.send_signal = lambda *told: print("a signal", file=sys.stderr) or send(*told)
ended = run_streaming(["sh", "-c", sys.argv[1]], directory=Path(), environment=os.environ, output=1)
print(ended, file=sys.stderr)
"""


_WAITING = "sleep 3600 & trap 'kill $! 2>/dev/null; echo ended >&2; exit 7' INT; echo ready; wait"
_READING = "stty raw; echo ready; dd bs=1 count=1 2>/dev/null | od -A n -t x1 >&2; exit 7"


@pytest.mark.parametrize(
    ("engine", "is_shown", "got"),
    [(_WAITING, True, "a signal\nended\n"), (_WAITING, False, "a signal\nended\n"), (_READING, True, " 03\n")],
)
def test_ctrl_c_reaches_an_engine_once_whether_it_reads_keys_or_not(engine: str, is_shown: bool, got: str) -> None:
    terminal, side = pty.openpty()
    before = termios.tcgetattr(side)
    with subprocess.Popen(
        [sys.executable, "-c", _COMMAND, engine],
        stdin=side,
        stdout=side if is_shown else subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=_ROOT,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    ) as command:
        with os.fdopen(os.dup(terminal)) if is_shown else nullcontext(command.stdout) as shown:
            assert shown is not None
            assert shown.readline().strip() == "ready"
        assert (termios.tcgetattr(side) == before) != is_shown

        os.write(terminal, b"\x03\x03")

        errors = command.communicate(timeout=60)[1]
    assert errors.partition("Ended")[0] == got
    assert errors.endswith("interrupted_by='SIGINT')\n")
    assert termios.tcgetattr(side) == before
    os.close(terminal)
    os.close(side)


def test_a_run_ends_with_the_engines_code_or_at_its_deadline() -> None:
    before, passed = signal.getsignal(signal.SIGTERM), Deadline(40.0, time.monotonic())

    assert ended("echo wrong >&2; exit 255", Deadline.parse("60")) == Ended(255, "wrong\n", None)
    assert signal.getsignal(signal.SIGTERM) is before
    assert ended("exec sleep 3600", passed) == Ended(-signal.SIGINT, "", "the time limit of 40 minutes")


@pytest.mark.parametrize("text", ["0", "-1", "soon", "nan", "inf", ""])
def test_a_time_limit_that_is_no_number_of_minutes_is_refused(text: str) -> None:
    with pytest.raises(WrongUsageError, match=f'found "{text}"; accepted: minutes, a number greater than 0'):
        Deadline.parse(text)


LATER = 15.0
PRE, OUTPUTS, FAILED = "resourcePreEvent", "resOutputsEvent", "resOpFailedEvent"


class Run:
    """A run of the engine with its log, and a clock."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.time = 0.0
        self.standstill = Standstill(log, lambda: self.time)

    def logs(self, kind: str, name: str, op: str, *, custom: bool = True) -> None:
        event = {"sequence": 1, kind: {"metadata": {"urn": name, "op": op, "new": {"urn": name, "custom": custom}}}}
        with self.log.open("a") as file:
            file.write(json.dumps(event) + "\n")

    def is_reached_after(self, seconds: float) -> bool:
        self.standstill.is_reached()
        self.time += seconds
        return self.standstill.is_reached()


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path / "events")


def failed_deletion(run: Run, op: str = "delete-replaced") -> None:
    run.logs(PRE, "registration", op)
    run.logs(FAILED, "registration", op)


def test_a_step_under_way_is_waited_for(run: Run) -> None:
    run.logs(PRE, "gate", "create")
    failed_deletion(run)

    assert not run.is_reached_after(10 * LATER)
    run.logs(OUTPUTS, "gate", "create")
    assert not run.is_reached_after(LATER - 1)
    assert run.is_reached_after(1)


def test_every_event_restarts_the_time_and_a_component_has_none(run: Run) -> None:
    run.logs(PRE, "component", "same", custom=False)
    failed_deletion(run)
    text = run.log.read_text()
    run.log.write_text(text[:-20])
    assert not run.is_reached_after(10 * LATER), "a line is read when it is complete"
    run.log.write_text(text)
    assert not run.is_reached_after(LATER - 1)
    run.logs("diagnosticEvent", "x", "y")
    assert not run.is_reached_after(LATER - 1)
    assert run.is_reached_after(1)


@pytest.mark.parametrize("op", ["create", "update", "delete"])
def test_the_engine_goes_on_by_itself_after_other_failures(run: Run, op: str) -> None:
    assert not run.is_reached_after(10 * LATER), "there is no log yet"
    run.log.touch()
    assert not run.is_reached_after(10 * LATER), "it has begun with nothing"
    failed_deletion(run, op)

    assert not run.is_reached_after(10 * LATER)
