"""A process of a warm interpreter is what the same command line is anywhere else."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.warm import virtual_environment

_ENDS_WITHIN: Final = 30  # seconds

_REPORT: Final = """\
import json, os, sys
found = {
    "arguments": sys.argv,
    "name": __name__,
    "path": sys.path[:2],
    "directory": os.getcwd(),
    "variables": {name: value for name, value in os.environ.items() if name != "_"},
    "input": sys.stdin.read(),
    "descriptors": len(os.listdir("/proc/self/fd")),
}
print(json.dumps(found))
print("to stderr", file=sys.stderr)
sys.exit(3)
"""
_WAIT: Final = """\
import os, signal, sys, threading
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print(os.getpid(), flush=True)
threading.Event().wait()
"""


@pytest.fixture(scope="module")
def warm() -> str:
    return str(virtual_environment() / "bin/python")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "report.py").write_text(_REPORT, encoding="utf-8")
    (tmp_path / "waiting.py").write_text(_WAIT, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    "options",
    [["report.py"], ["-m", "report"], ["-P", "report.py"]],
    ids=["a script", "a module", "a script without its folder on the path"],
)
def test_it_has_what_a_process_of_its_own_has(warm: str, program: Path, options: list[str]) -> None:
    variables = {**os.environ, "PYTHONPATH": "/somewhere", "ODD": "a=b\nc"}

    def run(python: str) -> tuple[object, ...]:
        done = subprocess.run(
            [python, *options, "one", "two words", ""],
            cwd=program,
            env=variables,
            input="a line",
            capture_output=True,
            text=True,
        )
        return json.loads(done.stdout), done.stderr, done.returncode

    assert run(warm) == run(sys.executable)


def test_a_failed_program_shows_its_trace(warm: str, tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("raise ValueError('the reason')\n", encoding="utf-8")

    done = subprocess.run([warm, tmp_path / "wrong.py"], capture_output=True, text=True)

    assert done.returncode == 1
    assert done.stderr.endswith("ValueError: the reason\n")


def test_a_signal_reaches_it(warm: str, program: Path) -> None:
    with subprocess.Popen([warm, program / "waiting.py"], stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        client.stdout.readline()
        client.terminate()
        assert client.wait(_ENDS_WITHIN) == 7


def test_it_ends_with_a_client_that_is_killed(warm: str, program: Path) -> None:
    with subprocess.Popen([warm, program / "waiting.py"], stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        process = os.pidfd_open(int(client.stdout.readline()))
        client.send_signal(signal.SIGKILL)
        assert select.select([process], [], [], _ENDS_WITHIN)[0]
    os.close(process)


def test_a_killed_process_is_a_failure_of_its_client(warm: str, program: Path) -> None:
    with subprocess.Popen([warm, program / "waiting.py"], stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        os.kill(int(client.stdout.readline()), signal.SIGKILL)
        assert client.wait(_ENDS_WITHIN) == 128 + signal.SIGKILL


def test_a_client_that_is_gone_before_it_asks_does_not_end_the_server(warm: str, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as gone:
        gone.connect(str(Path(warm).parents[2] / "socket"))
    (tmp_path / "served.py").write_text("import sys; print(*map(str, sys.orig_argv))\n", encoding="utf-8")

    done = subprocess.run([warm, tmp_path / "served.py"], capture_output=True, text=True)

    assert "warm/server.py" in done.stdout


def test_what_the_server_does_not_serve_goes_to_the_real_interpreter(warm: str) -> None:
    done = subprocess.run([warm, "-c", "import sys; print(sys.orig_argv[0])"], capture_output=True, text=True)

    assert done.stdout == f"{sys.executable}\n"


def test_a_process_of_another_checkout_has_the_modules_of_that_one(warm: str, tmp_path: Path) -> None:
    (tmp_path / "identity").mkdir()
    (tmp_path / "identity/version.py").write_text("print(__file__)\n", encoding="utf-8")
    (tmp_path / "other.py").write_text("import identity.version\n", encoding="utf-8")

    done = subprocess.run([warm, "other.py"], cwd=tmp_path, capture_output=True, text=True)

    assert (done.stdout, done.stderr) == (f"{tmp_path}/identity/version.py\n", "")
