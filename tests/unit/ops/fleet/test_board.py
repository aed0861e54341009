"""How a rollout is shown."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from ops.fleet.board import Board, table
from ops.fleet.rollout import Progress, RolloutOutcome
from tests.unit.ops.fleet.world import document, fleet

_STACKS = fleet(document())[1].stacks
WAITING = [Progress(stack, wave) for stack, wave in zip(_STACKS, ("shared", "canaries", *["wave 1"] * 4), strict=True)]
UNDER_WAY = [
    replace(WAITING[0], outcome=RolloutOutcome.UNCHANGED),
    replace(WAITING[1], outcome=RolloutOutcome.UP, seconds=41.4),
    replace(WAITING[2], outcome=RolloutOutcome.FAILED, seconds=12.0, line="error: the gate [timed out]"),
    replace(WAITING[3], outcome=RolloutOutcome.RUNNING, seconds=7.0, line="creating"),
    *WAITING[4:],
]


def _console(*, terminal: bool) -> Console:
    return Console(
        file=io.StringIO(), force_terminal=terminal, width=120, color_system=None, highlight=False, markup=False
    )


def _printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_without_a_terminal_each_event_is_a_line_printed_once() -> None:
    console = _console(terminal=False)
    board = Board(console)
    with board.shown():
        for progress, note in ((WAITING, ""), (UNDER_WAY, ""), (UNDER_WAY, "a pause"), (UNDER_WAY, "a pause")):
            board.show(progress, note)
    assert _printed(console).splitlines() == [
        "shared-prod (shared): unchanged",
        "hc3-prod (canaries): up in 41 s",
        "hc1-prod (wave 1): failed in 12 s: error: the gate [timed out]",
        "hc2-prod (wave 1): running",
        "a pause",
    ]


def test_the_table_has_a_line_for_each_wave_and_what_runs_or_failed() -> None:
    console = _console(terminal=False)
    console.print(table(UNDER_WAY))
    lines = [" ".join(line.split()) for line in _printed(console).splitlines()[2:]]
    assert lines == [
        "shared 1 unchanged",
        "canaries 1 up",
        "wave 1 2 waiting, 1 running, 1 failed",
        "hc1-prod failed 12 s error: the gate [timed out]",
        "hc2-prod running 7 s creating",
    ]


def test_on_a_terminal_the_table_changes_in_place() -> None:
    console = _console(terminal=True)
    board = Board(console)
    with board.shown():
        board.show(UNDER_WAY, "a pause")
    assert "hc2-prod" in _printed(console)
    assert "a pause" in _printed(console)
