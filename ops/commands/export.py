"""`idstack export`: write what other tools take from a stack."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated

import typer

from identity.outputs import owned_namespaces
from identity.similar import did_you_mean
from ops.commands.options import DEFAULT_STACK, JsonOption, Screen, StackOption
from ops.outputs import hypershift as cli
from ops.outputs import hypershift_commands as commands
from ops.outputs import hypershift_script
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
    script: Annotated[
        Path | None,
        typer.Option("--script", help="Write the commands into this shell script instead of printing them."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write the files that HyperShift's CLI takes for each hosted cluster, and print its commands with their flags.

    With `--script hc1.sh` the commands are one script. It checks its variables, files and programs before it changes
    anything, installs HyperShift's operator, waits for it, and creates the clusters.
    """
    screen = Screen(as_json)
    outputs = Engine(stack, output=screen.output).outputs()
    # A script finds its files from whatever folder it runs in.
    known = cli.hosted_clusters(outputs, directory if script is None else directory.absolute())
    if not known:
        raise CommandError(
            f"the stack {stack} has no hosted cluster: there is nothing to export before `make up STACK={stack}`"
        )
    if cluster is not None and cluster not in known:
        raise CommandError(
            f"the stack {stack} has no hosted cluster {cluster}; it has {', '.join(known)}"
            f"{did_you_mean(cluster, known)}"
        )
    if owned := {name: home for name, home in owned_namespaces(outputs).items() if cluster in (None, name)}:
        raise CommandError(_owned(stack, owned, set(known).difference(owned)))
    wanted = [each for name, each in known.items() if cluster in (None, name)]
    _check(wanted)
    try:
        for each in wanted:
            each.write()
        if script is not None:
            script.write_text(hypershift_script.script(stack, outputs, wanted), encoding="utf-8")
            script.chmod(0o755)
    except OSError as error:
        raise CommandError(f"the files cannot be written: {error}") from None
    if as_json:
        screen.document(
            {
                "stack": stack,
                "definitions": list(commands.DEFINITIONS),
                "script": None if script is None else str(script),
                "clusters": {
                    each.name: {
                        "install": list(commands.install(outputs, is_managed=each.is_managed).arguments),
                        "files": {flag: str(path) for flag, (path, _) in each.files.items()},
                        "manifest": str(each.manifest[0]) if each.manifest else None,
                        "createClusterAzure": list(commands.create(each.create).arguments),
                        "renderClusterAzure": list(commands.render(each.render).arguments) if each.render else None,
                    }
                    for each in wanted
                },
            }
        )
        return
    for each in wanted:
        for path in each.paths:
            screen.console.print(str(path), markup=False)
        for line in (*each.left_out(), *each.remarks()):
            screen.console.print(line, markup=False)
    if script is not None:
        screen.console.print(str(script), markup=False)
        return
    # The HyperShift of one management cluster has one way.
    ways = dict.fromkeys(each.is_managed for each in wanted)
    steps = [commands.definitions(), *(str(commands.install(outputs, is_managed=way)) for way in ways)]
    for each in wanted:
        steps.append(str(commands.create(each.create, has_host_names=each.has_host_names)))
        if each.render is not None:
            steps.append(str(commands.render(each.render, has_host_names=each.has_host_names)))
    screen.console.print("\n" + "\n\n".join(steps), markup=False)


def _owned(stack: str, owned: Mapping[str, str], others: Collection[str]) -> str:
    rest = f"; --cluster exports {', '.join(sorted(others))}" if others else ""
    return (
        f"the stack {stack} was brought up with `clusterSide: stack`, so it owns {', '.join(owned.values())}, where "
        "HyperShift puts the control plane: the two would overwrite each other's objects. Nothing was written. Leave "
        f"the namespace to HyperShift first: `idstack pulumi --stack {stack} -- config set clusterSide hypershift`, "
        f"`make up STACK={stack}`, then export again{rest}"
    )


def _check(clusters: list[cli.HostedClusterExport]) -> None:
    obstacles = [f"  {cluster.name}: {obstacle}" for cluster in clusters for obstacle in cluster.obstacles()]
    if obstacles:
        raise CommandError(
            "\n".join(
                [
                    "`hypershift create cluster azure` cannot create every cluster as it is; nothing was written:",
                    *obstacles,
                    "Let the stack apply the HostedCluster (`hostedCluster` in the configuration, "
                    "docs/guides/hypershift.md), or leave these clusters out with --cluster.",
                ]
            )
        )
