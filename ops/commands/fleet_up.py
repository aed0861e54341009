"""`idstack fleet up`: every stack of a fleet in its order, some side by side."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from ops.commands.fleet_options import DEFAULT, EnvironmentOption, FileOption, chosen
from ops.commands.options import JsonOption, Screen
from ops.fleet.board import Board, summary
from ops.fleet.engine_stacks import EngineStacks
from ops.fleet.file import load_fleet
from ops.fleet.rollout import DONE, Rollout, RolloutOutcome
from ops.fleet.stack_files import require_files, require_one_backend
from ops.stack.environment import ROOT
from ops.stack.errors import CommandError, RunInterruptedError

_PARALLEL: Final = 8
_YES: Final = "--yes"


def up(
    file: FileOption = DEFAULT,
    environment: EnvironmentOption = None,
    parallel: Annotated[int, typer.Option(help="How many stacks of a wave are brought up at once.", min=1)] = _PARALLEL,
    yes: Annotated[
        bool, typer.Option(_YES, help="Do not ask: parallel runs cannot. Required for stacks on Azure.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Bring a fleet up: shared stacks, canaries, then wave after wave, each stack by `idstack up`.

    The first stack that fails, or that cannot sign in, stops the rest; what runs beside it ends. The next call goes on:
    what this machine has brought up and that is unchanged since is left alone.
    """
    screen = Screen(as_json)
    environments = chosen(load_fleet(file), environment)
    for each in environments:
        if not each.is_local and not yes:
            raise CommandError(
                f"the stacks of {each.name} are on Azure, and runs side by side cannot ask: look at `idstack preview` "
                f"of each, then give {_YES}"
            )
        require_one_backend(each, ROOT)
        require_files(each, ROOT)
    rollouts: list[tuple[Rollout, EngineStacks]] = []
    board = Board(screen.console)
    for each in environments:
        stacks = EngineStacks(each, () if each.is_local else (_YES,), ROOT)
        rollout = Rollout(each, stacks, parallel, board.show)
        rollouts.append((rollout, stacks))
        screen.step(each.name)
        with board.shown():
            rollout.run()
        screen.console.print(summary(rollout.progress))
        if rollout.is_stopped:
            break
    if as_json:
        screen.document({"environments": [_to_json(rollout, stacks) for rollout, stacks in rollouts]})
    _require_all_up(screen, *rollouts[-1])


def _require_all_up(screen: Screen, rollout: Rollout, stacks: EngineStacks) -> None:
    """Raise CommandError unless the rollout ended; what failed is printed with the end of its log."""
    for each in rollout.progress:
        if each.outcome is RolloutOutcome.FAILED:
            screen.console.print(f"\n{each.stack.name}, the end of {stacks.log(each.stack)}:", markup=False)
            screen.console.print(each.tail, markup=False)
    left = [each.stack.name for each in rollout.progress if each.outcome not in DONE]
    if rollout.interrupted_by:
        raise RunInterruptedError(
            f"interrupted by {rollout.interrupted_by}: what had begun has ended and unlocked its stack. Run the "
            f"command again, which goes on with {', '.join(left)}"
        )
    if failed := [each.stack.name for each in rollout.failed]:
        others = [name for name in left if name not in failed]
        rest = f" Not begun: {', '.join(others)}." if others else ""
        raise CommandError(
            f"not up: {', '.join(failed)}; the reason is printed above.{rest} Correct it and run the command again, "
            "which goes on from there"
        )


def _to_json(rollout: Rollout, stacks: EngineStacks) -> dict[str, Any]:
    return {
        "environment": rollout.environment.name,
        "stacks": [
            {
                "stack": each.stack.name,
                "wave": each.wave,
                "outcome": each.outcome,
                "seconds": round(each.seconds, 1),
                "log": str(stacks.log(each.stack)) if each.seconds else None,
            }
            for each in rollout.progress
        ],
    }
