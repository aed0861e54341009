"""Starts the local cloud for a command of a local stack."""

from __future__ import annotations

from identity.clouds import LocalEnvironment
from ops.commands.options import Screen
from ops.stack import local_cloud
from ops.stack.engine import Engine
from ops.stack.environment import local_paths
from ops.stack.errors import CommandError


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
