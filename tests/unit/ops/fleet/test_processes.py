"""A stack's run is `idstack up` in a process of its own, which an interruption reaches once."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ops.fleet.processes import StackRun
from tests.unit.ops.fleet.world import document, fleet

_PRINTS: Final = """\
import os, sys
print(*sys.argv[1:], os.getpgid(0) == os.getpid(), sys.stdin.read() == "")
sys.stderr.write("the reason\\n\\n")
sys.exit(3)
"""
_WAITS: Final = """\
import signal, sys
def end(*_):
    print("unlocked", flush=True)
    sys.exit(7)
signal.signal(signal.SIGINT, end)
print("begun", flush=True)
signal.pause()
"""


def _run(root: Path, program: str) -> StackRun:
    (root / "ops").mkdir()
    (root / "ops/__init__.py").touch()  # or a PYTHONPATH with the project would win
    (root / "ops/__main__.py").write_text(program)
    return StackRun(fleet(document())[1].stacks[1], ["--yes"], root=root, log=root / "log")


def _ended(run: StackRun) -> int:
    while (code := run.poll()) is None:
        pass
    return code


def test_it_is_the_ordinary_command(tmp_path: Path) -> None:
    run = _run(tmp_path, _PRINTS)
    assert _ended(run) == 3
    assert run.last_line() == "the reason"
    assert run.tail() == "up --stack hc3-prod --yes True True\nthe reason"


def test_an_interruption_reaches_it_and_it_ends_by_itself(tmp_path: Path) -> None:
    run = _run(tmp_path, _WAITS)
    while run.last_line() != "begun":
        assert run.poll() is None, run.tail()
    run.interrupt()
    assert _ended(run) == 7
    assert run.last_line() == "unlocked"
