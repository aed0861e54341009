"""`idstack fleet`: many stacks from one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ops.commands.fleet_matrix import matrix
from ops.commands.fleet_options import DEFAULT, FileOption
from ops.commands.fleet_prepare import prepare
from ops.commands.fleet_status import status
from ops.commands.fleet_up import up
from ops.commands.options import JsonOption, Screen
from ops.fleet.file import load_fleet
from ops.fleet.tree import Differences, tree, write
from ops.stack.errors import CommandError

fleet = typer.Typer(name="fleet", help="Many stacks from one file (docs/guides/fleet.md).", no_args_is_help=True)

fleet.command("prepare")(prepare)
fleet.command("up")(up)
fleet.command("status")(status)
fleet.command("matrix")(matrix)


@fleet.callback()
def _several() -> None:
    """Keep the name of an only command, which typer would leave out."""


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
    found = Differences.between(directory, files)
    if as_json:
        screen.document({"files": sorted(map(str, files)), "differences": list(found.diffs)})
    if check:
        if found.diffs and not as_json:
            screen.console.print("\n".join(found.diffs), markup=False)
        if found.diffs:
            raise CommandError(
                f"{directory} is not what {file} says, in {len(found.diffs)} files: run `idstack fleet render`"
            )
        return
    write(directory, files)
    if not as_json:
        screen.console.print(f"{len(files)} files in {directory}, {len(found.diffs)} of them changed", markup=False)
