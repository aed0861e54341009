"""`idstack export`: write a stack's values for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from identity.outputs import owned_namespaces
from ops.commands.options import DEFAULT_STACK, ClusterOption, JsonOption, Screen, StackOption, require_cluster
from ops.outputs.hypershift import DEFINITIONS, HostedClusterExport, definitions, install, install_script
from ops.stack.engine import Engine
from ops.stack.errors import CommandError, message, writing

export = typer.Typer(help="Write a stack's values for other tools.", no_args_is_help=True, add_completion=False)


@export.callback()
def _several() -> None:
    """Keep the name `hypershift`: typer drops the name of a single command."""


@export.command()
def hypershift(
    stack: StackOption = DEFAULT_STACK,
    cluster: ClusterOption = None,
    directory: Annotated[Path, typer.Option("--directory", "-d", help="Directory of the files.")] = Path("hypershift"),
    script: Annotated[
        Path | None, typer.Option(help="Write the commands into this shell script instead of printing them.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write the files of each hosted cluster for HyperShift's CLI, and print its commands with their flags.

    With `--script hc1.sh` the commands are one script. It checks its variables, files and programs before it changes
    anything, installs HyperShift's operator, waits for it, and creates the clusters.
    """
    screen = Screen(as_json)
    outputs = Engine(stack, output=screen.output).outputs()
    known = outputs.get("hostedClusters", {})
    if not known:
        raise CommandError(message("export.nothing", stack=stack))
    require_cluster(stack, cluster, known)
    if owned := {name: home for name, home in owned_namespaces(outputs).items() if cluster in (None, name)}:
        others = sorted(set(known).difference(owned))
        rest = f"; --cluster exports {', '.join(others)}" if others else ""
        raise CommandError(message("export.owned", stack=stack, namespaces=", ".join(owned.values()), rest=rest))
    # A script finds its files from any working directory.
    folder = directory if script is None else directory.absolute()
    exports = [HostedClusterExport(name, known[name], folder) for name in known if cluster in (None, name)]
    if obstacles := [f"  {hosted.name}: {obstacle}" for hosted in exports for obstacle in hosted.obstacles()]:
        raise CommandError(message("export.obstacles", obstacles="\n".join(obstacles)))
    with writing("the files"):
        for hosted in exports:
            hosted.write()
        if script is not None:
            script.write_text(install_script(stack, outputs, exports), encoding="utf-8")
            script.chmod(0o755)
    document = {
        "stack": stack,
        "definitions": list(DEFINITIONS),
        "script": None if script is None else str(script),
        "clusters": {
            hosted.name: {
                "install": list(install(outputs, is_managed=hosted.is_managed).arguments),
                "files": {flag: str(path) for flag, (path, _) in hosted.files.items()},
                "manifest": str(hosted.manifest[0]) if hosted.manifest else None,
                "createClusterAzure": list(hosted.create.arguments),
                "renderClusterAzure": list(hosted.render.arguments) if hosted.render else None,
            }
            for hosted in exports
        },
    }
    lines = [line for hosted in exports for line in (*map(str, hosted.texts), *hosted.left_out(), *hosted.remarks())]
    # The HyperShift of one management cluster supports one kind of sign-in.
    kinds = dict.fromkeys(hosted.is_managed for hosted in exports)
    steps = [definitions(), *(str(install(outputs, is_managed=kind)) for kind in kinds)]
    steps += [str(command) for hosted in exports for command in (hosted.create, hosted.render) if command is not None]
    screen.show(document, *lines, "\n" + "\n\n".join(steps) if script is None else str(script))
