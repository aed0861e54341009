"""`idstack restore`: give a stack whose backend is lost the state of a backup."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ops.commands.options import DEFAULT_STACK, JsonOption, NamedStackOption, Screen
from ops.commands.up import start_local_cloud
from ops.recovery import orphans, settle
from ops.stack import backup as backups
from ops.stack.engine import Engine
from ops.stack.errors import CommandError


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file that `idstack backup` wrote.")],
    stack: NamedStackOption = DEFAULT_STACK,
    as_json: JsonOption = False,
) -> None:
    """Give a stack whose state is lost that of a backup. Nothing changes in Azure; `make recover` goes on."""
    screen = Screen(as_json)
    found = backups.read(file)
    engine = Engine(stack, output=screen.output)
    is_written = engine.write_configuration(found.configuration)
    local = start_local_cloud(screen) if engine.is_local else None
    backups.restore(engine, found)
    differs = not is_written and engine.configuration_text() != found.configuration
    if as_json:
        screen.document(
            {
                "stack": stack,
                "created": found.date,
                "commit": found.commit,
                "resources": len(found.resources),
                "configuration": "written" if is_written else "differs" if differs else "same",
            }
        )
        return
    lines = [f"{stack} has the {len(found.resources)} resources of {found.date} again; nothing has changed in Azure."]
    if is_written:
        lines.append("Its configuration was missing and is that of the backup.")
    if differs:
        commit = f" (commit {found.commit})" if found.commit else ""
        lines.append(f"Its configuration has changed since the backup{commit}; it stays as it is.")
    try:
        lines += settle.withdrawn_since(engine, local, found.resources)
    except CommandError as error:
        lines.append(f"Which of its certificates were taken out of use since cannot be seen now: {error}")
    lines.append(f"`make recover STACK={stack}` looks up what has happened since, then brings the stack up.")
    lines.append(f"Afterwards: {orphans.certificates_since(stack)}.")
    screen.console.print("\n".join(lines), markup=False)
