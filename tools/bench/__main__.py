"""`make bench`: measures every figure, prints the table, and ends with 1 if a limit is missed or a part failed."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from typing import Annotated, Final

import typer
from rich.console import Console

from tools.bench import commands, growth, loader, makespan
from tools.bench.figures import Figure, table
from tools.bench.measure import CommandFailedError

Part = Callable[[], Iterable[Figure]]

_PARTS: Final[dict[str, Part]] = {
    "tokens": lambda: [loader.tokens()],
    "commands": commands.commands,
    "swap": loader.swap,
    "program": commands.program,
    "rerun": lambda: [commands.rerun()],
    "makespan": makespan.makespan,
    "growth": growth.growth,
}


def main(
    parts: Annotated[list[str] | None, typer.Argument(help=f"Parts to measure: {', '.join(_PARTS)}.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    clusters: Annotated[int, typer.Option(help="The largest number of clusters of `growth`, at most 20.", min=1)] = max(
        growth.SMALL
    ),
) -> None:
    """Measure what the program costs, as ratios to a peer or a limit of the same run; 1 if a limit is missed."""
    progress = Console(stderr=True)
    chosen = parts or list(_PARTS)
    if unknown := sorted(set(chosen) - set(_PARTS)):
        raise typer.BadParameter(f"found {', '.join(unknown)}; accepted: {', '.join(_PARTS)}")
    measures: dict[str, Part] = {
        **_PARTS,
        "growth": lambda: growth.growth([size for size in growth.SIZES if size <= clusters]),
    }
    figures: list[Figure] = []
    failed: list[str] = []
    begun = time.monotonic()
    for part in chosen:
        load = os.getloadavg()[0] / (os.cpu_count() or 1)
        progress.print(
            f"{time.monotonic() - begun:5.0f} s  {part} (load {load:.1f} for each core)",
            highlight=False,
            soft_wrap=True,
        )
        try:
            for figure in measures[part]():
                figures.append(figure)
                line = f"{figure.name}: {figure.ours:.4g} / {figure.peer:.4g} = {figure.ratio:.3g}"
                progress.print(f"         {line}", highlight=False, soft_wrap=True)
        except (CommandFailedError, AssertionError) as error:
            failed.append(part)
            progress.print(
                f"         {part} failed: {error}", style="bold red", highlight=False, markup=False, soft_wrap=True
            )
    if as_json:
        print(json.dumps([figure.to_json() for figure in figures], indent=2))
    else:
        Console().print(table(figures))
    missed = [figure.name for figure in figures if not figure.holds]
    if missed:
        progress.print(f"limits missed: {'; '.join(missed)}", style="bold red", highlight=False, soft_wrap=True)
    if missed or failed:
        sys.exit(1)


if __name__ == "__main__":
    typer.run(main)
