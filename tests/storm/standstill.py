"""A command whose local cloud stands still at a chosen write until somebody has been killed there, or makes one of its
requests wait while another command runs.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from localcloud.testing.running import DAEMON, processes
from tests.harness import PROJECT, LocalStack
from tests.storm.fault_daemon import ANY, REQUEST
from tests.storm.plan import Disturbance, Meeting, Victim
from tests.storm.processes import ENDS_WITHIN, kill, processes_of

_MEETING_ENDS_WITHIN: Final = 300.0  # seconds


@contextmanager
def interruption(
    stack: LocalStack, disturbance: Disturbance, command: Sequence[str], output: Any
) -> Iterator[tuple[subprocess.Popen[Any], list[int]]]:
    """Run a command: in the block its local cloud stands still, at its end the victims are killed.

    The block gets the command and the ids of those to be killed. Returns when the command has ended; raises
    AssertionError if it ends before there are as many writes.
    """
    with _fault_daemon(stack, str(disturbance.write), disturbance.moment, disturbance.step) as fault_daemon:
        running = stack.started(*command, stdout=output, stderr=output)
        plugin = _standing_still(fault_daemon, running)
        assert plugin, f"the command ended before {disturbance}"
        victims = {
            Victim.ENGINE: lambda: processes_of(stack, "pulumi "),
            Victim.PLUGIN: lambda: processes_of(stack, plugin),
            Victim.DAEMON: lambda: [fault_daemon.pid],
        }[disturbance.victim]()
        assert victims, f"no {disturbance.victim} at a write of {plugin}"
        try:
            yield running, victims
        finally:
            kill(*victims)
            assert fault_daemon.stdin is not None
            fault_daemon.stdin.close()
            running.wait()


def meet(
    stack: LocalStack, meeting: Meeting, commands: Sequence[Sequence[str]], outputs: Sequence[Any]
) -> tuple[list[int], str]:
    """Run two commands as the meeting says, each with its output; their exit codes, and what happened."""
    points = (f"{meeting.request}", "before", REQUEST, f"{meeting.until}", "after", ANY)
    with _fault_daemon(stack, *points) as fault_daemon:
        assert fault_daemon.stdin is not None
        running = [stack.started(*commands[0], stdout=outputs[0], stderr=outputs[0])]
        waits = _standing_still(fault_daemon, running[0])
        if not waits:
            fault_daemon.stdin.close()
        running.append(stack.started(*commands[1], stdout=outputs[1], stderr=outputs[1]))
        meets = waits and _standing_still(fault_daemon, running[1])
        if meets:
            fault_daemon.stdin.write("\n")
            fault_daemon.stdin.flush()
            running[0].wait(_MEETING_ENDS_WITHIN)
        fault_daemon.stdin.close()
        codes = [process.wait(_MEETING_ENDS_WITHIN) for process in running]
    if not waits:
        return codes, "one after the other"
    return codes, f"waited for {waits} {'until a write of ' + meets if meets else 'until the other one ended'}"


@contextmanager
def _fault_daemon(stack: LocalStack, *points: str) -> Iterator[subprocess.Popen[str]]:
    """The local cloud with a daemon that stands still at the chosen write; it ends with the block."""
    if daemon := processes.alive(stack.state / "pids", DAEMON):
        daemon.end(grace=ENDS_WITHIN)
    with subprocess.Popen(
        [sys.executable, "-m", "tests.storm.fault_daemon", str(stack.state), *points],
        cwd=PROJECT,
        env=stack.variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as fault_daemon:
        try:
            assert fault_daemon.stdout is not None
            assert fault_daemon.stdout.readline() == "serving\n"
            stack.local_cloud("start")
            yield fault_daemon
        finally:
            fault_daemon.terminate()


def _standing_still(fault_daemon: subprocess.Popen[str], running: subprocess.Popen[Any]) -> str:
    """The plugin at whose write the local cloud stands still; empty when the command ends without."""
    assert fault_daemon.stdout is not None
    with os.fdopen(os.pidfd_open(running.pid)) as ended:
        ready, _, _ = select.select([fault_daemon.stdout, ended], [], [])
        return fault_daemon.stdout.readline().strip() if ended not in ready else ""
