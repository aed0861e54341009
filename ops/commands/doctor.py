"""`idstack doctor`: the first broken stage of each identity, with evidence and fix."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import partial
from time import monotonic, sleep
from typing import Annotated, Final, TypeVar

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from identity.similar import did_you_mean
from ops.commands.options import (
    DEFAULT_STACK,
    ClusterOption,
    IdentityOption,
    JsonOption,
    Screen,
    StackOption,
    selected,
)
from ops.doctor.checks.check import CheckResult, ExitCode, Stage, diagnose, exit_code
from ops.doctor.examination import CHECKS, checks_of
from ops.doctor.report import document, report, summary
from ops.stack.engine import Engine
from ops.stack.errors import message
from ops.world.reader import read_world

T = TypeVar("T")

# Seconds between two examinations. The driver polls the vault every two minutes.
INTERVAL: Final = 15.0


def watch(
    examine: Callable[[], T],
    show: Callable[[T], RenderableType],
    console: Console,
) -> T | None:
    """Show the results in the same place until Ctrl-C; returns the last one, None if there was none."""
    last: T | None = None
    with Live(console=console, auto_refresh=False, vertical_overflow="visible") as live, suppress(KeyboardInterrupt):
        while True:
            last = examine()
            ended = Text(f"\n{datetime.now():%H:%M:%S}; again in {INTERVAL:g} s, Ctrl-C ends", "dim")
            live.update(Group(show(last), ended), refresh=True)
            sleep(INTERVAL)
    return last


def _stage(name: str) -> Stage:
    try:
        return Stage(name)
    except ValueError:
        similar = did_you_mean(name, Stage) or "."
        raise typer.BadParameter(f"there is no stage {name}{similar} Stages: {', '.join(Stage)}") from None


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
    cluster: ClusterOption = None,
    identity: IdentityOption = None,
    pod: Annotated[
        str | None, typer.Option(metavar="NAMESPACE/NAME", help="Check the identities that this pod mounts.")
    ] = None,
    stack: StackOption = DEFAULT_STACK,
    as_json: JsonOption = False,
    watches: Annotated[bool, typer.Option("--watch", help="Repeat until Ctrl-C.")] = False,
    waits: Annotated[
        bool, typer.Option("--wait", help="Repeat until nothing is broken, at most for --timeout.")
    ] = False,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", min=0, help="Time limit of --wait.")] = 600,
) -> None:
    """Find the first broken stage of each identity, with the evidence and the command that fixes it; change nothing.

    Engine, backend and access come first, then the stages from the configuration to the proof call. It needs the role
    Reader, and names the checks that need more. Exits with 0 if everything is sound, 1 if something is broken (with
    --wait: still), 3 if nothing is but some checks were not possible.
    """
    if watches and (as_json or waits):
        raise typer.BadParameter(message("doctor.watch"))
    selection = selected(cluster, identity, pod)
    screen, engine = Screen(as_json), Engine(stack)
    chosen = [check for check in CHECKS if check.stage in stages] if stages else checks_of(selection)
    parts = {part for check in chosen for part in check.needs}

    def examine() -> list[CheckResult]:
        engine.forget()
        results = diagnose(read_world(engine, parts, selection), chosen)
        return [result for result in results if selection.has(result.cluster, None)]

    if watches:
        results = watch(examine, partial(report, stack), screen.console) or []
    else:
        end = monotonic() + (timeout if waits else 0)
        while exit_code(results := examine()) is ExitCode.BROKEN and (left := end - monotonic()) > 0:
            print(f"{summary(stack, results)}; again in {INTERVAL:g} s", file=sys.stderr, flush=True)
            sleep(min(INTERVAL, left))
        screen.show(document(stack, results), report(stack, results))
    raise typer.Exit(exit_code(results))
