"""Shell completions of the names of stacks, hosted clusters and identities.

They are read from the stacks' files, without the engine, and no problem is an error.
"""

from __future__ import annotations

from collections.abc import Iterator

import typer

from ops.stack.environment import ROOT


def stacks() -> list[str]:
    """The stacks with a file."""
    from ops.stack.chosen_stack import stack_names

    return stack_names()


def clusters(context: typer.Context) -> list[str]:
    """The hosted clusters in the file of the command line's stack."""
    return list(_clusters(context))


def identities(context: typer.Context) -> list[str]:
    """The control-plane identities, without and with each hosted cluster."""
    from identity.catalogue import CONTROL_PLANE

    fields = [row.field for row in CONTROL_PLANE]
    return [*fields, *(f"{cluster}/{field}" for cluster in _clusters(context) for field in fields)]


def _clusters(context: typer.Context) -> Iterator[str]:
    import yaml

    from identity import yaml_text
    from ops.stack.chosen_stack import chosen_stack
    from ops.stack.errors import CommandError

    try:
        stack = context.params.get("stack") or chosen_stack()[0]
        text = (ROOT / f"Pulumi.{stack}.yaml").read_text(encoding="utf-8")
        document = yaml_text.load(text)
    except (CommandError, OSError, ValueError, yaml.YAMLError):
        return
    config = document.get("config") if isinstance(document, dict) else None
    entries = config.get("idstack:hostedClusters") if isinstance(config, dict) else None
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            yield entry["name"]
