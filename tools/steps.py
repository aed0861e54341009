"""What the set-up steps share: paths, messages, hashes, and commands with a progress line."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ROOT / ".tools"
VENV = ROOT / ".venv"
_TAIL_LINES = 15
_REPORT_EVERY_SECONDS = 20.0


class SetupError(Exception):
    """A step has no way to succeed; the message names the ways out."""


class CommandError(Exception):
    """A command failed; the message is the end of what it printed."""


def say(message: str) -> None:
    """One line of progress."""
    print(f"setup: {message}", flush=True)


def fingerprint(parts: Iterable[Path | str]) -> str:
    """Hash of file contents and texts, 16 hex digits."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.read_bytes() if isinstance(part, Path) else part.encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:16]


def run(
    command: Sequence[object],
    *,
    directory: Path = ROOT,
    environment: Mapping[str, str] | None = None,
    progress: Callable[[int], str] | None = None,
) -> str:
    """Run a command and return what it printed; raises `CommandError`, or OSError when it can not be started.

    `progress` turns the number of lines printed so far into the text of a progress line: rewritten in place on a
    terminal, printed every twenty seconds elsewhere.
    """
    lines: list[str] = []
    begun = reported = time.monotonic()
    with subprocess.Popen(
        [str(part) for part in command],
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.rstrip())
            now = time.monotonic()
            if progress and (sys.stdout.isatty() or now - reported > _REPORT_EVERY_SECONDS):
                reported = now
                end = "" if sys.stdout.isatty() else "\n"
                start = "\r\033[K" if sys.stdout.isatty() else ""
                print(f"{start}setup:   {progress(len(lines))}, {now - begun:.0f} s", end=end, flush=True)
    if progress and sys.stdout.isatty():
        print("\r\033[K", end="", flush=True)
    if process.returncode != 0:
        raise CommandError("\n".join(deque(lines, _TAIL_LINES)) or f"exit code {process.returncode}")
    return "\n".join(lines)
