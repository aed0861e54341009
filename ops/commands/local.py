"""`idstack local`: a command of the local cloud, in the environment of the local stacks; and its start for others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import typer

from identity.clouds import LocalEnvironment
from identity.similar import did_you_mean
from ops.commands.options import Screen
from ops.stack import local_cloud
from ops.stack.engine import Engine
from ops.stack.environment import LOCAL_STACK, ROOT, local_paths
from ops.stack.errors import CommandError, message

_OF_A_RUNNING_CLOUD: Final = frozenset(
    {"env", "exec", "shell", "seed", "faults", "requests", "contents", "issue-msi", "pods", "recover"}
)


def local(context: typer.Context) -> None:
    """Run a command of the local cloud: start, stop, env, seed, faults, exec, shell and others.

    In `exec -- <command>` and `shell` any client of Azure reaches it by Azure's names, signed in as the deployer, as a
    local stack's identity with `--as <cluster>/<identity>` before `--`, or as the subscription's owner with `--as
    owner`.
    """
    # Pods run in the directory where the local cloud was started, with this checkout's programs.
    needs_cloud = not _OF_A_RUNNING_CLOUD.isdisjoint(context.args[:1]) and "--help" not in context.args
    if needs_cloud and local_cloud.record() is None:
        raise CommandError("there is no local cloud: `.venv/bin/idstack up --stack local` creates one")
    directory = ROOT if context.args[:1] in (["start"], ["kubelet"]) else Path.cwd()
    raise typer.Exit(local_cloud.run(_with_secret(context.args), directory=directory))


def _with_secret(arguments: Sequence[str]) -> list[str]:
    """The arguments with the secret of the stack's identity that `exec --as` or `shell --as` names."""
    match arguments:
        case [("exec" | "shell") as command, "--as", name, *rest] if secret := _secret_of(name):
            return [command, "--as", secret, *rest]
        case [("exec" | "shell") as command, option, *rest] if option.startswith("--as="):
            return _with_secret([command, *option.split("=", 1), *rest])
        case _:
            return list(arguments)


def _secret_of(identity: str) -> str | None:
    """`<vault>/<secret>` of a local stack's identity `<cluster>/<field>`; None if no local stack has the cluster."""
    cluster, _, field = identity.partition("/")
    if not field or not local_paths().backend.exists():
        return None
    outputs_by_stack = {
        stack: outputs
        for stack in Engine(LOCAL_STACK).stacks()
        if cluster in (outputs := Engine(stack).outputs()).get("hostedClusters", {})
    }
    if len(outputs_by_stack) > 1:
        names = " and ".join(outputs_by_stack)
        raise CommandError(message("local.ambiguous", identity=identity, stacks=names, cluster=cluster))
    for outputs in outputs_by_stack.values():
        rows = outputs["hostedClusters"][cluster]["controlPlane"]
        if field not in rows:
            known = [f"{cluster}/{row}" for row in rows]
            similar = did_you_mean(identity, known)
            raise CommandError(message("local.unknown", identity=identity, known=", ".join(known), similar=similar))
        return f"{outputs['keyVaultName']}/{rows[field]['credentialsSecretName']}"
    return None


def start_local_cloud(screen: Screen) -> LocalEnvironment:
    """Start and seed the local cloud, if it does not run; returns its endpoints.

    Raises CommandError if a step fails.
    """
    screen.step("local cloud")
    local_cloud.do("start", output=screen.output)
    environment = local_cloud.record()
    if environment is None:
        raise CommandError("the local cloud started but wrote no record of its endpoints: see .localcloud/*.log")
    return environment


def prepare(engine: Engine, screen: Screen, *, is_known: bool = False) -> None:
    """Start the local cloud of a local stack, and create the stack if it does not exist; nothing for any other stack.

    Raises CommandError as `start_local_cloud` and `Engine.prepare` do; with `is_known` before any local `up`, too.
    """
    if is_known and not local_paths().state.exists():
        local_cloud.of(engine.stack)
    if engine.is_local:
        start_local_cloud(screen)
        engine.prepare(is_known=is_known)
