"""What a shell completes beside commands and options: names of stacks, hosted clusters and identities.

They are read out of the stacks' files alone: no engine runs while somebody presses Tab, and nothing is an error.
"""

from __future__ import annotations

from collections.abc import Iterator

import typer

from ops.stack.environment import ROOT


def stacks() -> list[str]:
    """The stacks that have a file."""
    from ops.stack.chosen_stack import stack_names

    return stack_names()


def clusters(context: typer.Context) -> list[str]:
    """The hosted clusters in the file of the stack that the command line names so far."""
    return list(_clusters(context))


def identities(context: typer.Context) -> list[str]:
    """The control-plane identities, by themselves and of each hosted cluster."""
    from identity.catalogue import CONTROL_PLANE

    fields = [row.field for row in CONTROL_PLANE]
    return [*fields, *(f"{cluster}/{field}" for cluster in _clusters(context) for field in fields)]


def _clusters(context: typer.Context) -> Iterator[str]:
    import yaml

    from ops.stack.chosen_stack import chosen_stack
    from ops.stack.errors import CommandError

    try:
        stack = context.params.get("stack") or chosen_stack()[0]
        text = (ROOT / f"Pulumi.{stack}.yaml").read_text(encoding="utf-8")
        document = yaml.safe_load(text)
    except (CommandError, OSError, ValueError, yaml.YAMLError):
        return
    config = document.get("config") if isinstance(document, dict) else None
    found = config.get("idstack:hostedClusters") if isinstance(config, dict) else None
    for each in found if isinstance(found, list) else ():
        if isinstance(each, dict) and isinstance(each.get("name"), str):
            yield each["name"]
