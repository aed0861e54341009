"""`idstack fleet up`: every stack of a fleet in its order, some side by side."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from ops.commands.fleet_options import DEFAULT, EnvironmentOption, FileOption, chosen
from ops.commands.options import JsonOption, Screen
from ops.fleet.rollout import DONE, Rollout
from ops.fleet.stack_files import require_files
from ops.stack.environment import ROOT
from ops.stack.errors import CommandError, RunInterruptedError

_PARALLEL: Final = 8
_YES: Final = "--yes"


def up(
    file: FileOption = DEFAULT,
    name: EnvironmentOption = None,
    parallel: Annotated[int, typer.Option(help="How many stacks of a wave are deployed at once.", min=1)] = _PARALLEL,
    yes: Annotated[
        bool, typer.Option(_YES, "-y", help="Do not ask, because parallel runs cannot. Required for stacks on Azure.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Deploy a fleet: shared stacks, canaries, then wave after wave, each stack by `idstack up`.

    After the first stack that fails, or that cannot sign in, no other starts; runs in progress end normally. Run it
    again to continue: nothing changes in the stacks that are up.
    """
    screen = Screen(as_json)
    environments = chosen(file, name)
    for environment in environments:
        if not environment.is_local and not yes:
            raise CommandError(
                f"the stacks of {environment.name} are on Azure, and parallel runs cannot prompt: read the `idstack "
                f"preview` of each, then pass {_YES}"
            )
        require_files(environment, ROOT)
    rollouts: list[Rollout] = []
    for environment in environments:
        screen.step(environment.name)
        arguments = () if environment.is_local else (_YES,)
        rollout = Rollout(environment, arguments, ROOT, parallel, screen.console.print)
        rollouts.append(rollout)
        rollout.run()
        screen.console.print(rollout.summary())
        if rollout.is_stopped:
            break
    if as_json:
        screen.document({"environments": [_to_json(rollout) for rollout in rollouts]})
    _require_all_up(screen, rollouts[-1])


def _require_all_up(screen: Screen, rollout: Rollout) -> None:
    """Raise CommandError unless the rollout ended; what failed is printed with the end of its log."""
    for run in rollout.failed:
        screen.console.print(f"\n{run.stack.name}, the end of {run.log.file}:")
        screen.console.print("\n".join(run.tail))
    unfinished = [run.stack.name for run in rollout.runs if run.outcome not in DONE]
    if rollout.interrupted_by:
        raise RunInterruptedError(
            f"interrupted by {rollout.interrupted_by}: the runs in progress have ended and unlocked their stacks. Run "
            f"the command again, which resumes with {', '.join(unfinished)}"
        )
    if failed := [run.stack.name for run in rollout.failed]:
        others = [name for name in unfinished if name not in failed]
        rest = f" Not begun: {', '.join(others)}." if others else ""
        raise CommandError(
            f"not up: {', '.join(failed)}; the reason is printed above.{rest} Correct it and run the command again, "
            "which resumes from there"
        )


def _to_json(rollout: Rollout) -> dict[str, Any]:
    return {
        "environment": rollout.environment.name,
        "stacks": [
            {
                "stack": run.stack.name,
                "wave": run.wave,
                "outcome": run.outcome,
                "seconds": round(run.seconds, 1),
                "log": str(run.log.file) if run.seconds else None,
            }
            for run in rollout.runs
        ],
    }
