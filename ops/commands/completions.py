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
    from identity.settings.stack_file import written_for
    from ops.stack.chosen_stack import chosen_stack
    from ops.stack.configuration import named_clusters
    from ops.stack.errors import CommandError

    try:
        stack = context.params.get("stack") or chosen_stack()[0]
    except CommandError:
        return
    written = written_for(stack, ROOT) or {}
    yield from (cluster["name"] for cluster in named_clusters(written.get("hostedClusters")))
