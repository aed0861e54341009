"""`idstack backup`: write a stack's state and configuration to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from identity.private_files import write_private
from ops.commands.options import DEFAULT_STACK, JsonOption, Screen, StackOption, output_option
from ops.stack import backup as backups
from ops.stack.engine import Engine
from ops.stack.errors import message, writing


def backup(
    output: Annotated[Path | None, output_option("File to write; backup.<stack>.<date>.json by default.")] = None,
    stack: StackOption = DEFAULT_STACK,
    as_json: JsonOption = False,
) -> None:
    """Write the stack's state and configuration to a file, mode 0600. It has no private key; secrets are encrypted."""
    screen = Screen(as_json)
    stored = backups.take(Engine(stack, output=screen.output))
    path = output or Path(f"backup.{stack}.{stored.created:%Y%m%dT%H%M%SZ}.json")
    with writing("the backup"):
        write_private(path, stored.model_dump_json(indent=2) + "\n")
    count = len(stored.resources)
    document = {"stack": stack, "file": str(path), "created": stored.date, "resources": count}
    screen.show(document, message("backup.written", file=path, count=count, stack=stack, date=stored.date))
