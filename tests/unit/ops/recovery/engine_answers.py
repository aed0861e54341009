"""An engine whose answers are given."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.unit.ops.conftest import FakeEngine

STATE = {"version": 3, "deployment": {"resources": []}}
# The next answer to each command; the last one stays.
_PULUMI = """\
#!{python}
import json, pathlib, sys
folder = pathlib.Path({folder!r})
with (folder / "calls").open("a") as calls:
    print(*sys.argv[1:], file=calls)
answers = json.loads((folder / "answers.json").read_text())
name = " ".join(word for word in sys.argv[1:3] if word in ("stack", "export", "import")) or sys.argv[1]
queue = answers.get(name, [[0, "", ""]])
code, output, error = queue.pop(0) if len(queue) > 1 else queue[0]
(folder / "answers.json").write_text(json.dumps(answers))
if name == "stack import":
    (folder / "imported.json").write_text(sys.stdin.read())
sys.stdout.write(output)
sys.stderr.write(error)
sys.exit(code)
"""


class EngineAnswers:
    """What the engine answers, and what it was asked."""

    def __init__(self, engine: FakeEngine) -> None:
        self._folder = engine.folder
        self._engine = engine
        self._given: dict[str, list[tuple[int, str, str]]] = {"stack export": [(0, json.dumps(STATE), "")]}
        self._write()

    def to(self, command: str, *answers: tuple[int, str, str]) -> None:
        """Exit code, standard output and standard error, one call after the other."""
        self._given[command] = list(answers)
        self._write()

    @property
    def asked(self) -> list[str]:
        """The commands so far."""
        return [" ".join(call.split()[: 2 if call.startswith("stack ") else 1]) for call in self._engine.calls]

    @property
    def calls(self) -> list[str]:
        """Their whole command lines."""
        return self._engine.calls

    @property
    def imported(self) -> Any:
        """The state that was written."""
        return json.loads((self._folder / "imported.json").read_text())

    def _write(self) -> None:
        (self._folder / "answers.json").write_text(json.dumps(self._given))


@pytest.fixture
def answers(engine: FakeEngine) -> EngineAnswers:
    executable = engine.folder / "pulumi"
    executable.write_text(_PULUMI.format(python=sys.executable, folder=str(engine.folder)))
    return EngineAnswers(engine)
