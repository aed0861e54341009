"""A virtual environment whose interpreter has imported the SDKs already: a run of the engine starts some seven.

Its `python` is a client (`client.py`) of one server (`server.py`), which has imported the third-party packages and
forks a process for each command line: a process of its own, with the arguments, environment, working directory and
files of the client, which passes on signals and shares its end. So has it imported this checkout's rooms, which a
process of another checkout imports again.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import gettempdir, mkdtemp
from typing import Final

from tools.environment import write_command

_HERE: Final = Path(__file__).parent
_VENV: Final = Path(sys.executable).parents[1]
_SOCKET: Final = "socket"


@cache
def virtual_environment() -> Path:
    """A virtual environment with the packages of this one, which the workers of a run share.

    Server and environment go when the last process that has it ends.
    """
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    directory = Path(gettempdir(), f"warm-{run}") if run else Path(mkdtemp(prefix="warm-"))
    directory.mkdir(mode=0o700, exist_ok=True)
    users = directory / "users"
    lock = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        is_first = not users.exists()
        if is_first:
            os.mkfifo(users)
        os.open(users, os.O_RDWR)  # the server's standard input ends when no process has it open
        if is_first:
            _write(directory)
            _serve(directory, users)
    finally:
        os.close(lock)
    return directory / ".venv"


def _write(directory: Path) -> None:
    environment = directory / ".venv"
    for entry in _VENV.iterdir():
        if entry.name != "bin":
            environment.mkdir(exist_ok=True)
            (environment / entry.name).symlink_to(entry)
    commands = environment / "bin"
    commands.mkdir()
    # -I -S: neither variables nor packages are looked at, which is most of an interpreter's start.
    body = (_HERE / "client.py").read_text(encoding="utf-8")
    client = f"#!{sys.executable} -IS\n{body}\n\nos._exit(main({str(directory / _SOCKET)!r}, {sys.executable!r}))\n"
    for name in ("python", "python3"):
        (commands / name).write_text(client, encoding="utf-8")
        (commands / name).chmod(0o755)
    write_command(commands / "idstack", commands / "python")


# Servers of this process: one that nothing refers to any more would be waited for.
_SERVERS: Final[list[subprocess.Popen[bytes]]] = []


def _serve(directory: Path, users: Path) -> None:
    with users.open("rb") as in_use:
        server = subprocess.Popen(
            [sys.executable, "-P", _HERE / "server.py", directory, directory / _SOCKET],
            stdin=in_use,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
    _SERVERS.append(server)
    assert server.stdout is not None
    assert server.stdout.readline() == b"serving\n", "the server has printed why it does not serve"
