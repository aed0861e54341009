"""`idstack doctor`: which stage of which identity is broken, why, and the command that fixes it."""

from __future__ import annotations

from typing import Annotated

import typer

from ops.commands.options import DEFAULT_STACK, JsonOption, Screen, StackOption
from ops.doctor.diagnosis import CheckResult, diagnose, exit_code
from ops.doctor.model.check import Stage
from ops.doctor.reading.world import DoctorSources, look
from ops.doctor.registry import CHECKS
from ops.doctor.report import report
from ops.doctor.watching import sleep, watch
from ops.stack.engine import Engine


def doctor(
    stages: Annotated[
        list[Stage] | None, typer.Option("--stage", help="Check this stage alone; repeatable. Default: all, in order.")
    ] = None,
    stack: StackOption = DEFAULT_STACK,
    as_json: JsonOption = False,
    watches: Annotated[bool, typer.Option("--watch", help="Look again and again, until Ctrl-C.")] = False,
) -> None:
    """Find the first broken stage of each identity, with the evidence and the command that fixes it; change nothing.

    Engine, backend and access come first, then the eight stages from the configuration to the proof call. It works with
    the rights of a Reader and names what they do not show. Exits with 0 if everything is sound, 1 if something is
    broken, 3 if nothing is but some checks could not be made.
    """
    if watches and as_json:
        raise typer.BadParameter("--watch is for people; run `idstack doctor --json` as often as you like")
    screen, sources = Screen(as_json), DoctorSources.of(Engine(stack))
    chosen = [each for each in CHECKS if not stages or each.stage in stages]
    parts = {part for check in chosen for part in check.needs}

    def examine() -> list[CheckResult]:
        sources.engine.forget()
        return diagnose(look(sources, parts), chosen)

    if watches:
        results = watch(examine, lambda found: report(stack, found), screen.console, pause=sleep) or []
    else:
        results = examine()
        if as_json:
            screen.document([each.to_json() for each in results])
        else:
            screen.console.print(report(stack, results))
    raise typer.Exit(exit_code(results))
