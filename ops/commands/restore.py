"""`idstack restore`: restore the state of a stack whose backend is lost from a backup."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from identity.azure.errors import AccessError
from ops.commands.local import start_local_cloud
from ops.commands.options import DEFAULT_STACK, JsonOption, NamedStackOption, Screen
from ops.recovery import settle
from ops.stack import backup as backups
from ops.stack.engine import Engine
from ops.stack.errors import CommandError, message


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file that `idstack backup` wrote.")],
    stack: NamedStackOption = DEFAULT_STACK,
    as_json: JsonOption = False,
) -> None:
    """Restore a lost state from a backup. Nothing changes in Azure; continue with `recover`."""
    screen = Screen(as_json)
    backup = backups.read(file, stack)
    engine = Engine(stack, output=screen.output)
    if is_written := not engine.file.exists():
        engine.file.write_text(backup.configuration, encoding="utf-8")
    if engine.is_local:
        start_local_cloud(screen)
    backups.restore(engine, backup)
    differs = not is_written and engine.configuration_text() != backup.configuration
    if as_json:
        screen.document(
            {
                "stack": stack,
                "created": backup.date,
                "commit": backup.commit,
                "resources": len(backup.resources),
                "configuration": "written" if is_written else "differs" if differs else "same",
            }
        )
        return
    lines = [f"{stack} has the {len(backup.resources)} resources of {backup.date} again; nothing has changed in Azure."]
    if is_written:
        lines.append("Its configuration was missing and was restored as well.")
    if differs:
        commit = f" (commit {backup.commit})" if backup.commit else ""
        lines.append(f"Its configuration has changed since the backup{commit}; it stays as it is.")
    try:
        lines += settle.withdrawn_since(engine, backup.resources)
    except (AccessError, CommandError) as error:
        lines.append(f"Its certificates that were withdrawn since cannot be looked up now: {error}")
    lines.append(f"`.venv/bin/idstack recover --stack {stack}` finds what has changed since, then brings the stack up.")
    lines.append(f"Afterwards: {message('settle.certificates', stack=stack)}.")
    screen.console.print("\n".join(lines))
