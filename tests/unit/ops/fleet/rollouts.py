"""A rollout of real processes, which run a program of the test in place of `idstack up`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from identity.credentials import rfc3339
from ops.fleet.rollout import Rollout
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from tests.unit.ops.fleet.world import document, fleet

START: Final = datetime(2026, 11, 23, 8, 0, tzinfo=UTC)
# Begins, waits until so many runs have begun and a file exists, and ends with a code; a signal is noted only.
_PROGRAM: Final = """\
import json, os, signal, sys, time
from pathlib import Path
stack = sys.argv[3]
plan = {"code": 0, "begun": 0, "file": ".", **json.loads(Path("plan.json").read_text()).get(stack, {})}
def note(what):
    with open("notes", "a") as notes:
        notes.write(f"{what} {stack}\\n")
signal.signal(signal.SIGINT, lambda *_: note("interrupted"))
note("begun")
while Path("notes").read_text().count("begun") < plan["begun"] or not Path(plan["file"]).exists():
    time.sleep(0.01)
print(*sys.argv[1:], os.getpgid(0) == os.getpid(), sys.stdin.read() == "", flush=True)
sys.stderr.write(f"newest of {stack}\\n\\n")
note("ended")
sys.exit(1 if f"interrupted {stack}" in Path("notes").read_text() else plan["code"])
"""


@dataclass
class Watched:
    """A rollout of the environment `prod` of files/azure.yaml.

    `plan` is what the program does for a stack. Each run changed something at START, but in the `unchanged`. The
    history of the `unreadable` cannot be read.
    """

    root: Path
    plan: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    parallel: int = 8
    pause: str | None = None
    size: int | None = 2
    unchanged: frozenset[str] = frozenset()
    unreadable: frozenset[str] = frozenset()
    changed_at: datetime = START
    when_waiting: Callable[[], None] = lambda: None
    lines: list[str] = field(default_factory=list)
    waited: timedelta = timedelta()

    def __post_init__(self) -> None:
        (self.root / "ops").mkdir()
        (self.root / "ops/__init__.py").touch()  # or a PYTHONPATH with the project would win
        (self.root / "ops/__main__.py").write_text(_PROGRAM)
        (self.root / "plan.json").write_text(json.dumps(self.plan))
        (self.root / "notes").touch()
        changed = document()
        changed["environments"][1]["waves"] = {"canaries": ["hc3"], "size": self.size, "pause": self.pause}
        self.rollout = Rollout(
            fleet(changed)[1], ["--yes"], self.root, self.parallel, self.lines.append, self._wait, self._now
        )

    def run(self) -> dict[str, str]:
        """What became of each stack."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Engine, "updates", lambda engine: self._updates(engine.stack))
            self.rollout.run()
        return {run.stack.name: str(run.outcome) for run in self.rollout.runs}

    def noted(self, *words: str) -> list[str]:
        """The stacks of the notes that begin with one of these words, in their order."""
        notes = [line.split() for line in (self.root / "notes").read_text().splitlines()]
        return [stack for word, stack in notes if word in words]

    def most_at_once(self) -> int:
        """How many runs there were at the busiest moment."""
        running, most = 0, 0
        for line in (self.root / "notes").read_text().splitlines():
            running += 1 if line.startswith("begun") else -1
            most = max(most, running)
        return most

    def _updates(self, stack: str) -> list[dict[str, Any]]:
        if stack in self.unreadable:
            raise CommandError("the backend does not answer")
        at = {"kind": "update", "result": "succeeded", "endTime": rfc3339.render(self.changed_at)}
        change = {**at, "resourceChanges": {"create": 2, "same": 1}}
        return [*([{**at, "resourceChanges": {"same": 3}}] if stack in self.unchanged else []), change]

    def _wait(self, seconds: float) -> None:
        self.waited += timedelta(seconds=seconds)
        self.when_waiting()

    def _now(self) -> datetime:
        return START + self.waited
