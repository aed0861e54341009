"""`idstack pulumi`: the engine's own CLI, with the stack's backend, home, plugins and sign-in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import typer

from ops.commands.options import DEFAULT_STACK, NamedStackOption
from ops.stack.chosen_stack import require_stack
from ops.stack.configuration import local_copy, writing_offline
from ops.stack.engine import Engine
from ops.stack.environment import ROOT, is_local, local_paths
from ops.stack.errors import CommandError
from ops.stack.streaming import run_passing_on

_CONFIG_FILE: Final = "--config-file"
_RUNS: Final = frozenset({"destroy", "import", "preview", "refresh", "up"})
_WRITING: Final = frozenset({"set", "set-all", "rm", "rm-all"})


def pulumi(context: typer.Context, stack: NamedStackOption = DEFAULT_STACK) -> None:
    """Run the engine's CLI for a stack: `.venv/bin/idstack pulumi --stack dev -- config set location eastus`.

    It gets the stack's backend, home, plugins and sign-in, and runs in the project's directory. `pulumi up` lacks the
    checks of `up`, `preview` and `down` before and after a run (docs/guides/stacks.md).
    """
    arguments = context.args
    if any(argument in ("--stack", "-s") or argument.startswith("--stack=") for argument in arguments):
        raise CommandError("name the stack before `--`, as in `.venv/bin/idstack pulumi --stack dev -- stack output`")
    environment = {**Engine(stack, ROOT).environment, "PULUMI_STACK": stack}
    if not _writes_the_file(arguments):
        command = ["pulumi", *arguments, *_configuration(stack, arguments)]
        raise typer.Exit(run_passing_on(command, directory=ROOT, environment=environment))
    require_stack(stack, ROOT)
    with writing_offline(stack, ROOT, environment) as (directory, offline, options):
        raise typer.Exit(run_passing_on(["pulumi", *arguments, *options], directory=directory, environment=offline))


def _configuration(stack: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """The option for a local stack's copy of its file: the engine writes this machine's salt into what it reads."""
    is_chosen = any(argument.startswith(_CONFIG_FILE) for argument in arguments)
    source = ROOT / f"Pulumi.{stack}.yaml"
    exists = is_local(stack) and (local_paths().engine / source.name).exists()
    if is_chosen or not exists or not _RUNS.intersection(arguments[:1]):
        return ()
    return (_CONFIG_FILE, str(local_copy(source, local_paths())))


def _writes_the_file(arguments: Sequence[str]) -> bool:
    """Whether it writes values that are not secret into the stack's file, which needs neither state nor key."""
    return (
        arguments[:1] == ["config"]
        and bool(_WRITING.intersection(arguments[1:2]))
        and not any(argument.startswith(("--secret", _CONFIG_FILE)) for argument in arguments)
    )
