"""`idstack fleet`: many stacks from one file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ops.commands.fleet_options import DEFAULT, EnvironmentOption, FileOption, chosen
from ops.commands.fleet_status import status
from ops.commands.fleet_up import up
from ops.commands.options import JsonOption, Screen
from ops.fleet.file import load_fleet
from ops.fleet.matrix import matrices
from ops.fleet.stack_files import write_file
from ops.fleet.tree import differences, tree, write
from ops.stack.engine import Engine
from ops.stack.environment import ROOT
from ops.stack.errors import CommandError

fleet = typer.Typer(name="fleet", help="Many stacks from one file (docs/guides/fleet.md).", no_args_is_help=True)


@fleet.command()
def prepare(file: FileOption = DEFAULT, name: EnvironmentOption = None, as_json: JsonOption = False) -> None:
    """Write the file of each stack, and create the stacks that the backend does not have; nothing is deployed.

    Stacks are created with the environment's backend and key. A local one is created by its first `up`. Commit the
    files.
    """
    screen = Screen(as_json)
    written: list[str] = []
    created: list[str] = []
    for environment in chosen(file, name):
        written += [stack.file_name for stack in environment.stacks if write_file(stack, ROOT)]
        if environment.is_local:
            continue
        known = set(Engine(environment.stacks[0].name, ROOT, screen.output).stacks())
        for stack in environment.stacks:
            if stack.name not in known:
                Engine(stack.name, ROOT, screen.output).create()
                created.append(stack.name)
    if as_json:
        screen.document({"written": written, "created": created})
    else:
        screen.console.print(f"files written: {', '.join(written) or 'none'}")
        screen.console.print(f"stacks created: {', '.join(created) or 'none'}")


fleet.command("up")(up)
fleet.command("status")(status)


@fleet.command()
def matrix(
    name: Annotated[str, typer.Option("--environment", "-e", help="Name of the environment.")],
    file: FileOption = DEFAULT,
) -> None:
    """Print the matrix of each wave, a line `<job>=<JSON>` for each job, as a step writes its outputs.

    The line of a job without stacks ends with `=`, so that the workflow skips the job.
    """
    [environment] = chosen(file, name)
    for job, stacks in matrices(environment).items():
        print(f"{job}={json.dumps(stacks) if stacks else ''}")


@fleet.command()
def render(
    file: FileOption = DEFAULT,
    directory: Annotated[Path, typer.Option("--directory", "-d", help="Directory of the tree.")] = Path("fleet"),
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 1 if the directory is not what would be written.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Write the objects of the Pulumi Kubernetes Operator as a kustomize tree."""
    screen = Screen(as_json)
    files = tree(load_fleet(file))
    diffs = differences(directory, files)
    if as_json:
        screen.document({"files": sorted(map(str, files)), "differences": diffs})
    if check:
        if diffs and not as_json:
            screen.console.print("\n".join(diffs))
        if diffs:
            raise CommandError(f"{directory} differs from {file} in {len(diffs)} files: run `idstack fleet render`")
        return
    write(directory, files)
    if not as_json:
        screen.console.print(f"{len(files)} files in {directory}, {len(diffs)} of them changed")
