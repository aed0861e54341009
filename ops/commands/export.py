"""`idstack export`: write what other tools take from a stack."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ops.commands.options import DEFAULT_STACK, JsonOption, Screen, StackOption
from ops.outputs import hypershift as cli
from ops.stack.engine import Engine
from ops.stack.errors import CommandError

export = typer.Typer(name="export", help="Write what other tools take from a stack.", no_args_is_help=True)


@export.callback()
def _several() -> None:
    """Keep the name `hypershift`: typer leaves out the name of an only command."""


@export.command()
def hypershift(
    stack: StackOption = DEFAULT_STACK,
    cluster: Annotated[
        str | None, typer.Option("--cluster", "-c", help="Name of the hosted cluster; all by default.")
    ] = None,
    directory: Annotated[Path, typer.Option("--directory", "-d", help="Directory of the files.")] = Path("hypershift"),
    as_json: JsonOption = False,
) -> None:
    """Write the files that HyperShift's CLI takes for each hosted cluster, and print its commands with their flags."""
    screen = Screen(as_json)
    outputs = Engine(stack, output=screen.output).outputs()
    known = cli.hosted_clusters(outputs, directory)
    if not known:
        raise CommandError(f"the stack {stack} has no hosted cluster: there is nothing to export before `make up`")
    if cluster is not None and cluster not in known:
        raise CommandError(f"the stack {stack} has no hosted cluster {cluster}; it has {', '.join(known)}")
    wanted = [each for name, each in known.items() if cluster in (None, name)]
    _check(wanted)
    try:
        for each in wanted:
            each.write()
    except OSError as error:
        raise CommandError(f"the files cannot be written: {error}") from None
    install = cli.install(outputs)
    if as_json:
        screen.document(
            {
                "stack": stack,
                "install": install,
                "clusters": {
                    each.name: {
                        "files": {flag: str(path) for flag, (path, _) in each.files.items()},
                        "createClusterAzure": each.create,
                    }
                    for each in wanted
                },
            }
        )
        return
    for each in wanted:
        for flag, (path, _) in each.files.items():
            note = " (for a self-managed cluster, instead of the other two)" if flag == cli.WORKLOAD[0] else ""
            screen.console.print(f"{path}{note}", markup=False)
    commands = [cli.install_command(install), *(cli.create_command(each.create) for each in wanted)]
    screen.console.print("\n" + "\n\n".join(commands), markup=False)


def _check(clusters: list[cli.HostedClusterExport]) -> None:
    obstacles = [f"  {each.name}: {obstacle}" for each in clusters for obstacle in each.obstacles()]
    if obstacles:
        raise CommandError(
            "\n".join(
                [
                    "`hypershift create cluster azure` cannot create every cluster as it is; nothing was written:",
                    *obstacles,
                    "Let the stack apply the HostedCluster (`hostedCluster` in the configuration, docs/hypershift.md), "
                    "or leave these clusters out with --cluster.",
                ]
            )
        )
