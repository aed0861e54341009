"""Runs the engine in the foreground and remembers what it said on standard error."""

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
    """Run `command`, its standard output to the file descriptor `output`; returns exit code and standard error.

    A terminal's Ctrl-C reaches the engine, too. It then ends what it has begun and unlocks the stack, for which it is
    given time: killed half-way it would leave both to `recover`.
    """
    said = []
    with (
        _interrupts_ignored(),
        subprocess.Popen(
            command, cwd=directory, env=environment, stdout=output, stderr=subprocess.PIPE, text=True, errors="replace"
        ) as process,
    ):
        assert process.stderr is not None
        for line in process.stderr:
            said.append(line)
            print(line, end="", file=sys.stderr, flush=True)
    return process.returncode, "".join(said)


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    # A handler, not SIG_IGN: that one would be inherited.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
