"""`idstack rehearse`: what a change does to a stack and its clients, without Azure."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ops.commands.options import JsonOption, Screen, bare_name
from ops.outputs.plan import Operation
from ops.rehearsal import report
from ops.rehearsal.run import PlannedRehearsal
from ops.rehearsal.run import rehearse as run
from ops.stack.environment import ROOT
from ops.stack.errors import WrongUsageError, message, writing


def rehearse(
    stack: Annotated[str, typer.Option("--stack", "-s", help="Name of the stack.", callback=bare_name)],
    base: Annotated[str, typer.Option(metavar="COMMIT", help="Commit to deploy before the change.")] = "origin/main",
    head: Annotated[
        str | None, typer.Option(metavar="COMMIT", help="Commit with the change. Default: the checkout.")
    ] = None,
    forbid: Annotated[str, typer.Option(metavar="OPERATION,...", help=f"Fail on one of {', '.join(Operation)}.")] = "",
    as_json: JsonOption = False,
    markdown: Annotated[
        Path | None, typer.Option(dir_okay=False, help="Write the report for a pull request, too.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed, for a reproducible run.")] = 1,
) -> None:
    """Rehearse a change on a throw-away local cloud, while a client of each identity signs in continuously.

    It uses the stack's own configuration and needs no credential. Exits with 1 if there are findings.
    """
    # The progress is not part of the report.
    plan = PlannedRehearsal(ROOT, stack, base, head, seed, os.environ, _operations(forbid))
    rehearsal = run(plan, Screen(as_json=True).console.print)
    if markdown is not None:
        with writing("the report"):
            markdown.write_text(report.markdown(rehearsal), encoding="utf-8")
    Screen(as_json).show(rehearsal.to_json(), report.screen(rehearsal))
    if rehearsal.findings:
        raise typer.Exit(1)


def _operations(text: str) -> frozenset[Operation]:
    """The operations in `--forbid`; raises WrongUsageError for an unknown one."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    known = {operation.value: operation for operation in Operation}
    if unknown := [word for word in words if word not in known]:
        raise WrongUsageError(message("rehearse.unknown", words=", ".join(unknown), known=", ".join(known)))
    return frozenset(known[word] for word in words)
