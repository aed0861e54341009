"""Where a command talks: widths of terminals and of pipes, and what `--json` leaves to standard output."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

from ops.commands.options import Screen
from ops.stack.errors import printable

ROOT = Path(__file__).parents[4]
LONG = " ".join(["word"] * 60)


def on_a_terminal(statement: str, *, columns: int) -> str:
    """What a Python statement with a `screen` prints on a terminal of that many columns."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(_command(statement), stdin=its, stdout=its, stderr=its, cwd=ROOT, env=_environment()):
        os.close(its)
        printed = b""
        while chunk := _read(ours):
            printed += chunk
    os.close(ours)
    return printed.decode().replace("\r\n", "\n")


def into_pipes(statement: str) -> tuple[str, str]:
    """The same without a terminal: standard output and standard error."""
    done = subprocess.run(_command(statement), capture_output=True, text=True, check=True, cwd=ROOT, env=_environment())
    return done.stdout, done.stderr


def _command(statement: str) -> list[str]:
    screen = "from ops.commands.options import Screen\nscreen = Screen(as_json=False)\n"
    return [sys.executable, "-c", f"{screen}{statement}"]


def _environment() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "TERM": "xterm"}


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # on Linux: nobody has the terminal open any more
        return b""


def test_a_long_line_is_left_to_the_terminal_to_wrap() -> None:
    for columns in (60, 200):
        assert on_a_terminal("print(screen.console.width)", columns=columns) == f"{columns}\n", "its own width"
    statement = f"screen.console.print({LONG!r})"
    named = "[/vaults/kv] and [secret] of idstack:id:hc1"  # neither a style nor an emoji
    assert on_a_terminal(statement, columns=80) == f"{LONG}\n"
    piped = f"{statement}\nscreen.console.print({named!r})\nprint(screen.console.width > 1000)"
    assert into_pipes(piped) == (f"{LONG}\n{named}\nTrue\n", "")


def test_with_json_everything_but_the_document_goes_to_standard_error() -> None:
    statement = (
        "import os\n"
        "screen = Screen(as_json=True)\n"
        "screen.step('pulumi up')\n"
        "os.write(screen.output, b'of the engine\\n')\n"
        "screen.document({'stack': 'dev'})"
    )
    assert into_pipes(statement) == ('{\n  "stack": "dev"\n}\n', "pulumi up\nof the engine\n")


def test_text_of_others_controls_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "x\x1b]0;PWNED\x07\x1b[2J\u202ey"
    table = Table("name")
    table.add_row(hostile)

    for text in (hostile, Text(hostile), table):
        Screen(as_json=False).console.print(text)

    assert not set(capsys.readouterr().out) & {"\x1b", "\x07", "\u202e"}
    assert printable(f"a\tb\n{hostile}").startswith("a\tb\nx\ufffd]0;PWNED\ufffd")
