"""`idstack local`: a command of the local cloud, in the environment of the local stack."""

from __future__ import annotations

import typer

from ops.stack import local_cloud


def local(context: typer.Context) -> None:
    """Run a command of the local cloud: start, stop, env, seed, issue-msi, recover."""
    raise typer.Exit(local_cloud.run(context.args))
