"""The local cloud's command, and the record of its endpoints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from identity.clouds import LOCAL_SUBSCRIPTION_ID, LOCAL_TENANT_ID, LocalEnvironment
from ops.stack.chosen_stack import stack_names
from ops.stack.environment import LOCAL_STACK, ROOT, STATE_DIRECTORY_VARIABLE, is_local, local_paths, variables
from ops.stack.errors import CommandError

# The Kubernetes API of a local cloud; `make up CLUSTER=...` sets it.
_CLUSTER_VARIABLE: Final = "LOCALCLOUD_CLUSTER"
# `python -m localcloud`, with the name of the typed command in its usage and messages.
_PROGRAM: Final = "from localcloud.__main__ import cli; cli(prog_name='idstack local')"
# Stands for the local cloud before its first start, to validate settings.
PLACEHOLDER: Final = LocalEnvironment(
    **dict.fromkeys(LocalEnvironment.__dataclass_fields__, "https://127.0.0.1:1")
    | {"tenant_id": LOCAL_TENANT_ID, "subscription_id": LOCAL_SUBSCRIPTION_ID}
)


def run(
    arguments: Sequence[str],
    *,
    output: int | None = None,
    directory: Path = ROOT,
    text: str | None = None,
    base: Mapping[str, str] = os.environ,
) -> int:
    """Run the local cloud's program as `idstack local` in a directory; returns its exit code.

    `output` is a file descriptor for its standard output, the caller's by default; `text` its standard input; `base`
    is as in `variables`.
    """
    command = [sys.executable, "-c", _PROGRAM, *arguments]
    environment = {**variables(LOCAL_STACK, base), STATE_DIRECTORY_VARIABLE: str(local_paths(base).state)}
    return subprocess.run(command, cwd=directory, env=environment, stdout=output, input=text, text=True).returncode


def play(stack: str, documents: Sequence[Mapping[str, Any]], *, output: int) -> None:
    """Run these Deployments in the stack's local cloud, in place of those of the last call; raises CommandError."""
    if documents or (local_paths().state / f"pods/{stack}.json").exists():
        do("pods", stack, output=output, text=json.dumps(documents))


def do(*arguments: str, output: int, text: str | None = None, base: Mapping[str, str] = os.environ) -> None:
    """Run a step that must succeed; raises CommandError if it does not."""
    if code := run(arguments, output=output, text=text, base=base):
        message = f"`.venv/bin/idstack local {' '.join(arguments)}` ended with code {code}; the reason is printed above"
        if arguments == ("start",) and (kind := base.get(_CLUSTER_VARIABLE)):
            # The local cloud, a separate package, does not know `make`.
            message += f"; for another Kubernetes API: {local_paths(base).ending}, then `make up CLUSTER={kind}`"
        raise CommandError(message)


def record(base: Mapping[str, str] = os.environ) -> LocalEnvironment | None:
    """The endpoints of the local cloud; None without one, or for one of another release."""
    return local_paths(base).cloud()


def for_validation(stack: str) -> LocalEnvironment | None:
    """The endpoints to validate a local stack's settings, before the first start a placeholder; None for another."""
    return (record() or PLACEHOLDER) if is_local(stack) else None


def of(stack: str) -> LocalEnvironment | None:
    """The endpoints of the local cloud for a local stack, None for any other stack.

    Raises CommandError for a local stack without a local cloud.
    """
    if not is_local(stack):
        return None
    cloud = record()
    if cloud is None:
        names = [name for name in stack_names() if not is_local(name)] if stack == LOCAL_STACK else []
        others = f". Name another one with --stack: {', '.join(names)}" if names else ""
        raise CommandError(f"there is no local stack: `.venv/bin/idstack up --stack {stack}` creates one{others}")
    return cloud
