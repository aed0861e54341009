"""Prepares this checkout: the virtual environment with the locked packages, the Pulumi CLI, the `idstack` command.

`tools/setup cluster` prepares a real Kubernetes control plane, too, `tools/setup kubelogin` Azure's credential plugin.

It imports the standard library only, because it runs before any package is installed. Each step leaves a stamp with a
hash of its inputs and is skipped while that hash is the same, so a second run takes a moment.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TextIO

from tools import cluster, engine, environment, golang
from tools.steps import TOOLS, SetupError, report


def main(extras: Sequence[str] = ()) -> int:
    """Run the steps in order, then the `extras`; returns the exit code, 1 if one of them cannot succeed."""
    if unknown := set(extras) - set(_EXTRAS):
        print(f"setup: unknown extras: {', '.join(sorted(unknown))}; known are {', '.join(_EXTRAS)}", file=sys.stderr)
        return 1
    TOOLS.mkdir(exist_ok=True)
    # Opened for appending: the words of whoever holds it stay.
    with (TOOLS / "lock").open("a+") as lock:
        _wait_for_turn(lock, " ".join(("setup", *extras)))
        try:
            for name, step in {**_STEPS, **{extra: _EXTRAS[extra] for extra in extras}}.items():
                begun = time.monotonic()
                outcome = step()
                report(f"{name}: {outcome} ({time.monotonic() - begun:.1f} s)")
        except SetupError as error:
            print(f"\nsetup: {error}", file=sys.stderr)
            return 1
    return 0


def _wait_for_turn(lock: TextIO, what: str) -> None:
    """Lock the file, which holds who has it; says at once whom this run waits for."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        report(f"waiting for {lock.read() or 'another set-up'} of this checkout to end")
        fcntl.flock(lock, fcntl.LOCK_EX)
    lock.truncate(0)
    lock.write(f"process {os.getpid()} ({what})")
    lock.flush()


_STEPS: dict[str, Callable[[], str]] = {
    "packages": environment.ensure,
    "pulumi": engine.ensure,
}

_EXTRAS: dict[str, Callable[[], str]] = {
    "cluster": cluster.ensure,
    "kubelogin": golang.ensure_kubelogin,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
