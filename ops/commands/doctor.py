"""`idstack doctor`: which stage of which identity is broken, why, and the command that fixes it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from identity.similar import did_you_mean
from ops.commands.options import DEFAULT_STACK, JsonOption, Screen, StackOption
from ops.doctor.diagnosis import CheckResult, ExitCode, diagnose, exit_code
from ops.doctor.model.check import Stage
from ops.doctor.registry import CHECKS
from ops.doctor.registry import chosen as checks_of
from ops.doctor.report import report, summary
from ops.doctor.watching import INTERVAL, await_it, sleep, watch
from ops.stack.engine import Engine
from ops.world.look import DoctorSources, look
from ops.world.selection import Selection


def _stage(name: str) -> Stage:
    try:
        return Stage(name)
    except ValueError:
        raise typer.BadParameter(
            f"there is no stage {name}{did_you_mean(name, Stage) or '.'} Stages: {', '.join(Stage)}"
        ) from None


def doctor(
    stages: Annotated[
        list[Stage] | None,
        typer.Option(
            "--stage",
            metavar=f"[{'|'.join(Stage)}]",
            parser=_stage,
            autocompletion=lambda: list(Stage),
            help="Check this stage alone; repeatable. Default: all, in order.",
        ),
    ] = None,
    cluster: Annotated[str | None, typer.Option("--cluster", help="Check this hosted cluster alone.")] = None,
    identity: Annotated[
        str | None, typer.Option("--identity", metavar="[CLUSTER/]IDENTITY", help="Check this identity alone.")
    ] = None,
    pod: Annotated[
        str | None, typer.Option("--pod", metavar="NAMESPACE/NAME", help="Check what this pod mounts alone.")
    ] = None,
    stack: StackOption = DEFAULT_STACK,
    as_json: JsonOption = False,
    watches: Annotated[bool, typer.Option("--watch", help="Repeat until Ctrl-C.")] = False,
    waits: Annotated[bool, typer.Option("--wait", help="Repeat until nothing is broken, or until --timeout.")] = False,
    timeout: Annotated[float, typer.Option("--timeout", metavar="SECONDS", min=0, help="How long --wait waits.")] = 600,
) -> None:
    """Find the first broken stage of each identity, with the evidence and the command that fixes it; change nothing.

    Engine, backend and access come first, then the stages from the configuration to the proof call. It works with
    the rights of a Reader and names what they do not show. Exits with 0 if everything is sound, 1 if something is
    broken (with --wait: still), 3 if nothing is but some checks could not be made.
    """
    if watches and (as_json or waits):
        raise typer.BadParameter(
            "--watch is for people; run `idstack doctor --json` as often as you like, and --wait in a pipeline"
        )
    try:
        selection = Selection.of(cluster, identity, pod)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    screen, sources = Screen(as_json), DoctorSources.of(Engine(stack))
    chosen = [each for each in CHECKS if each.stage in stages] if stages else checks_of(selection)
    parts = {part for check in chosen for part in check.needs}

    def examine() -> list[CheckResult]:
        sources.engine.forget()
        found = diagnose(look(sources, parts, selection), chosen)
        return [each for each in found if selection.cluster is None or each.cluster in (None, selection.cluster)]

    def tell(found: Sequence[CheckResult]) -> None:
        print(f"{summary(stack, found)}; again in {INTERVAL:g} s", file=sys.stderr, flush=True)

    if watches:
        results = watch(examine, lambda found: report(stack, found), screen.console, pause=sleep) or []
    else:
        results = await_it(
            examine,
            lambda found: exit_code(found) is not ExitCode.BROKEN,
            tell,
            seconds=timeout if waits else 0,
            pause=sleep,
        )
        if as_json:
            screen.document([result.to_json() for result in results])
        else:
            screen.console.print(report(stack, results))
    raise typer.Exit(exit_code(results))
