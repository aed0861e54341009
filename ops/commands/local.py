"""`idstack local`: a command of the local cloud, in the environment of the local stack."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import typer

from identity.similar import did_you_mean
from ops.stack import local_cloud
from ops.stack.engine import Engine
from ops.stack.environment import LOCAL_STACK, ROOT, local_paths
from ops.stack.errors import CommandError

_OF_A_RUNNING_CLOUD: Final = (["env"], ["exec"], ["shell"], ["seed"], ["requests"], ["contents"], ["issue-msi"])


def local(context: typer.Context) -> None:
    """Run a command of the local cloud: start, stop, env, seed, exec, shell, requests, contents, issue-msi,
    recover.

    `exec -- <command>` and `shell` let any client of Azure reach it by Azure's names, signed in as the deployer, or as
    one of the stack's identities with `--as <cluster>/<identity>` before `--`.
    """
    # Pods run where the local cloud was started, and their programs are this checkout's.
    if context.args[:1] in _OF_A_RUNNING_CLOUD and "--help" not in context.args:
        local_cloud.of(LOCAL_STACK)
    directory = ROOT if context.args[:1] in (["start"], ["kubelet"]) else Path.cwd()
    raise typer.Exit(local_cloud.run(_with_secret(context.args), directory=directory))


def _with_secret(arguments: Sequence[str]) -> list[str]:
    """The arguments with the secret of the identity that `exec --as` or `shell --as` names, if it is the stack's."""
    match arguments:
        case [("exec" | "shell") as command, "--as", name, *rest] if secret := _secret_of(name):
            return [command, "--as", secret, *rest]
        case _:
            return list(arguments)


def _secret_of(identity: str) -> str | None:
    if not local_paths().backend.exists():
        return None
    cluster, _, field = identity.partition("/")
    clusters = Engine(LOCAL_STACK).outputs().get("hostedClusters", {})
    if cluster not in clusters:
        return None
    rows = clusters[cluster]["controlPlane"]
    if field not in rows:
        known = [f"{cluster}/{each}" for each in rows]
        raise CommandError(
            f"--as {identity}: the stack has no such identity; it has {', '.join(known)}{did_you_mean(identity, known)}"
        )
    return rows[field]["credentialsSecretName"]
