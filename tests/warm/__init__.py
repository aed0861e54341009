"""A virtual environment whose interpreter has imported the SDKs already: a run of the engine starts some seven.

Its `python` is a client (`client.py`) of one server (`server.py`), which has imported the third-party packages and
forks a process for each command line: a process of its own, with the arguments, environment, working directory and
files of the client, which passes on signals and shares its end. So has it imported this checkout's rooms, which a
process of another checkout imports again.
"""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from tools.environment import write_command

_HERE: Final = Path(__file__).parent
_VENV: Final = Path(sys.executable).parents[1]


@cache
def virtual_environment() -> Path:
    """A virtual environment with the packages of this one. Server and environment go when this process ends."""
    directory = Path(mkdtemp(prefix="warm-"))
    environment, address = directory / ".venv", directory / "socket"
    for entry in _VENV.iterdir():
        if entry.name != "bin":
            environment.mkdir(exist_ok=True)
            (environment / entry.name).symlink_to(entry)
    commands = environment / "bin"
    commands.mkdir()
    # -I -S: neither variables nor packages are looked at, which is most of an interpreter's start.
    body = (_HERE / "client.py").read_text(encoding="utf-8")
    client = f"#!{sys.executable} -IS\n{body}\n\nos._exit(main({str(address)!r}, {sys.executable!r}))\n"
    for name in ("python", "python3"):
        (commands / name).write_text(client, encoding="utf-8")
        (commands / name).chmod(0o755)
    write_command(commands / "idstack", commands / "python")
    _serve(directory, address)
    return environment


# Servers of this process: one that nothing refers to any more would be waited for.
_SERVERS: Final[list[subprocess.Popen[bytes]]] = []


def _serve(directory: Path, address: Path) -> None:
    server = subprocess.Popen(
        [sys.executable, "-P", _HERE / "server.py", directory, address],
        stdin=subprocess.PIPE,  # closed when this process ends, however it does
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    _SERVERS.append(server)
    assert server.stdout is not None
    assert server.stdout.readline() == b"serving\n", "the server has printed why it does not serve"
