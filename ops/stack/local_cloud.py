"""The local cloud, seen from outside: a command to run and a record of where it answers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from identity.clouds import LocalEnvironment
from ops.stack.environment import LOCAL_STACK, ROOT, is_local, local_paths, variables
from ops.stack.errors import CommandError


def run(arguments: Sequence[str], *, output: int | None = None) -> int:
    """`python -m localcloud`, its standard output to `output` or the caller's; returns its exit code."""
    command = [sys.executable, "-m", "localcloud", *arguments]
    return subprocess.run(command, cwd=ROOT, env=variables(LOCAL_STACK), stdout=output).returncode


def do(*arguments: str, output: int) -> None:
    """The same for a step that must succeed; raises CommandError."""
    if code := run(arguments, output=output):
        raise CommandError(f"`idstack local {' '.join(arguments)}` ended with code {code}; the reason stands above")


def record() -> LocalEnvironment | None:
    """Where the local cloud answers; None when there is none."""
    try:
        return LocalEnvironment.from_file(local_paths().record)
    except FileNotFoundError:
        return None


def of(stack: str) -> LocalEnvironment | None:
    """Where the cloud of a local stack answers, None for any other stack; raises CommandError if there is none."""
    if not is_local(stack):
        return None
    found = record()
    if found is None:
        raise CommandError("there is no local stack: `make up` makes one")
    return found
