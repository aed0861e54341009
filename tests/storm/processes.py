"""The processes of a stack: which there are, whether one ends by itself, and their end by force."""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.harness import LocalStack

ENDS_WITHIN: Final = 60.0
"""Seconds until a process that does not end is a failure."""


def processes_of(stack: LocalStack, *parts: str) -> list[int]:
    """The stack's processes whose command line has one of these parts, by default all of them.

    Its environment names the stack's directory; one that was forked from a warm interpreter (`tests/warm`) works in it.
    """
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        # It may end at any moment, or be somebody else's.
        with suppress(OSError):
            command = (directory / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            is_meant = not parts or any(part in command for part in parts)
            if is_meant and (
                (directory / "cwd").readlink().is_relative_to(stack.root)
                or bytes(stack.root) + b"/" in (directory / "environ").read_bytes()
            ):
                found.append(int(directory.name))
    return [pid for pid in found if pid != os.getpid()]


def outlasting(pid: int) -> str:
    """The command line of a process that does not end soon by itself; empty for one that does."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return ""
    with os.fdopen(handle) as ended, suppress(OSError):
        if not select.select([ended], [], [], ENDS_WITHIN)[0]:
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def kill(*pids: int) -> None:
    """SIGKILL, and wait for their ends."""
    handles = {}
    for pid in pids:
        with suppress(ProcessLookupError):
            handles[pid] = os.pidfd_open(pid)
    for pid in handles:
        send(pid, signal.SIGKILL)
    for pid, handle in handles.items():
        with os.fdopen(handle) as ended:
            assert select.select([ended], [], [], ENDS_WITHIN)[0], f"process {pid} does not end"


def send(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process, unless it has ended."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)
