"""Runs the engine in the foreground and keeps what it prints on standard error."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path


def run_streaming(
    command: Sequence[str], *, directory: Path, environment: Mapping[str, str], output: int
) -> tuple[int, str]:
    """Run `command` to its end; returns its exit code and its standard error, which is printed as it comes.

    Its standard output goes to the file descriptor `output`. A terminal's Ctrl-C reaches the engine, too: it finishes
    what it has begun and unlocks the stack. This process waits for that, because a killed engine would leave both to
    `recover`.
    """
    errors = []
    with (
        _interrupts_ignored(),
        subprocess.Popen(
            command, cwd=directory, env=environment, stdout=output, stderr=subprocess.PIPE, text=True, errors="replace"
        ) as process,
    ):
        assert process.stderr is not None
        for line in process.stderr:
            errors.append(line)
            print(line, end="", file=sys.stderr, flush=True)
    return process.returncode, "".join(errors)


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    # A handler and not SIG_IGN, which child processes inherit.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
