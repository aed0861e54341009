"""`idstack fleet prepare`: the files of a fleet's stacks, and the stacks themselves."""

from __future__ import annotations

from ops.commands.fleet_options import DEFAULT, EnvironmentOption, FileOption, chosen
from ops.commands.options import JsonOption, Screen
from ops.fleet.engine_stacks import backend_of
from ops.fleet.file import load_fleet
from ops.fleet.stack_files import require_one_backend, write_file
from ops.stack.engine import Engine
from ops.stack.environment import ROOT


def prepare(
    file: FileOption = DEFAULT,
    environment: EnvironmentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the file of each stack, and make the stacks that the backend does not have; nothing is brought up.

    Stacks are made with the environment's backend and key. Local ones are made by their first `up`. Commit the files.
    """
    screen = Screen(as_json)
    written: list[str] = []
    made: list[str] = []
    environments = chosen(load_fleet(file), environment)
    for one in environments:
        require_one_backend(one, ROOT)
    for one in environments:
        written += [stack.file_name for stack in one.stacks if write_file(stack, ROOT)]
        if one.is_local:
            continue
        with backend_of(one):
            known = set(Engine(one.stacks[0].name, ROOT, screen.output).stacks())
            for stack in one.stacks:
                if stack.name not in known:
                    Engine(stack.name, ROOT, screen.output).create()
                    made.append(stack.name)
    if as_json:
        screen.document({"written": written, "made": made})
    else:
        screen.console.print(f"files written: {', '.join(written) or 'none'}", markup=False)
        screen.console.print(f"stacks made: {', '.join(made) or 'none'}", markup=False)
