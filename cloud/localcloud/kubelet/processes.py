"""A container as a process group on this machine."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from localcloud.core.processes import RecordedProcess, record

_PR_SET_PDEATHSIG: Final = 1
_libc: Final = ctypes.CDLL(None, use_errno=True)
# How much of a container's last output a termination message holds (kubelet: 2048 bytes of the log's end).
_MESSAGE_BYTES: Final = 2048


class ContainerProcess:
    """A running command, in a session and process group of its own, its output in a file."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path, recorded: RecordedProcess | None) -> None:
        self._process = process
        self._log = log
        self._recorded = recorded
        self._is_over = False

    @classmethod
    async def start(
        cls, arguments: Sequence[str], environment: Mapping[str, str], *, cwd: Path, log: Path, pids: Path, name: str
    ) -> ContainerProcess:
        """Start a command, recorded as `probe-<name>` in `pids`; raises OSError if there is no such program.

        The record lets the local cloud's `stop` end the group even if the kubelet died.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *arguments,
                env=dict(environment),
                cwd=cwd,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_end_with_parent,
            )
        recorded: RecordedProcess | None = None
        with suppress(ProcessLookupError):
            recorded = record(pids, f"probe-{name}", process.pid)
        return cls(process, log, recorded)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def wait(self) -> int:
        """Wait for the command, then end its remaining processes; returns the exit code, 128 + signal if signalled."""
        code = await self._process.wait()
        self._ended()
        return code if code >= 0 else 128 - code

    async def stop(self, grace: float) -> None:
        """End the group: SIGTERM, and SIGKILL after `grace` seconds."""
        if self._is_over:
            return  # the id may belong to another process by now
        self._signal(signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._process.wait()
        self._signal(signal.SIGKILL)
        await self._process.wait()
        self._ended()

    def last_output(self) -> str:
        """The last 2,048 bytes of the output, for a termination message."""
        with self._log.open("rb") as log:
            log.seek(max(0, self._log.stat().st_size - _MESSAGE_BYTES))
            return log.read().decode(errors="replace").strip()

    def _ended(self) -> None:
        self._signal(signal.SIGKILL)  # remaining processes of its group
        self._is_over = True
        if self._recorded is not None:
            self._recorded.file.unlink(missing_ok=True)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def _end_with_parent() -> None:
    # A killed kubelet cannot stop its containers; the kernel does it then.
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
