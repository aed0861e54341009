"""Shows a rollout: on a terminal a live table, elsewhere a line for each change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ops.fleet.rollout import Progress, RolloutOutcome

_STYLES: Final = {
    RolloutOutcome.UP: "green",
    RolloutOutcome.UNCHANGED: "green",
    RolloutOutcome.RUNNING: "cyan",
    RolloutOutcome.FAILED: "bold red",
    RolloutOutcome.INTERRUPTED: "yellow",
}
# These stacks have a row of their own; of the others a wave's line has the number.
_ROWS: Final = frozenset({RolloutOutcome.RUNNING, RolloutOutcome.FAILED, RolloutOutcome.INTERRUPTED})


class Board:
    """The state of a rollout on a console."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._known: dict[str, RolloutOutcome] = {}
        self._note = ""

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Within the block a terminal shows the table."""
        if not self._console.is_terminal:
            yield
            return
        with Live(console=self._console, refresh_per_second=4) as self._live:
            yield

    def show(self, progress: Sequence[Progress], note: str) -> None:
        """Show the progress; `note` says what the rollout waits for, empty for nothing in particular."""
        if self._live is not None:
            self._live.update(Group(table(progress), Text(note)))
            return
        if note and note != self._note:
            self._console.print(note)
        self._note = note
        for entry in progress:
            if entry.outcome is not self._known.get(entry.stack.name, RolloutOutcome.WAITING):
                self._console.print(line(entry))
            self._known[entry.stack.name] = entry.outcome


def line(entry: Progress) -> str:
    """The outcome of a stack: `hc1-prod (wave 1): up in 41 s`."""
    text = f"{entry.stack.name} ({entry.wave}): {entry.outcome}"
    if entry.outcome in (RolloutOutcome.UP, RolloutOutcome.FAILED, RolloutOutcome.INTERRUPTED):
        text += f" in {entry.seconds:.0f} s"
    return f"{text}: {entry.line}" if entry.outcome is RolloutOutcome.FAILED and entry.line else text


def table(progress: Sequence[Progress]) -> Table:
    """The table: a line for each wave with its numbers, below it its stacks that run or have failed."""
    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading in ("wave", "stack", "state", "time"):
        grid.add_column(heading, justify="right" if heading == "time" else "left", no_wrap=True)
    grid.add_column("newest line", no_wrap=True, overflow="ellipsis", ratio=1)
    for wave in dict.fromkeys(entry.wave for entry in progress):
        of_wave = [entry for entry in progress if entry.wave == wave]
        grid.add_row(Text(wave), Text(""), Text(summary(of_wave)), "", "")
        for entry in of_wave:
            if entry.outcome in _ROWS:
                state = Text(entry.outcome, _STYLES[entry.outcome])
                grid.add_row("", Text(entry.stack.name), state, f"{entry.seconds:.0f} s", Text(entry.line))
    return grid


def summary(entries: Sequence[Progress]) -> str:
    """Numbers of the stacks by their state: `3 up, 5 waiting`."""
    numbers = Counter(entry.outcome for entry in entries)
    return ", ".join(f"{numbers[outcome]} {outcome}" for outcome in RolloutOutcome if numbers[outcome])
