"""What a local stack costs while nothing happens."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Final

from bench.figures import Figure, Limit
from bench.measure import bare_interpreter
from bench.stacks import local_stack
from tests.harness import LocalStack

# Once a minute each probe proves its credential: the span holds every one of them.
_SPAN: Final = 60.0  # seconds
_ROUNDS: Final = 10
# What the local cloud itself runs.
_OWN: Final = ("daemon", "kubelet")


def rest() -> list[Figure]:
    """User and system time of the local cloud in a minute, alone and with the credential probes.

    The peer is an interpreter's start: both depend on the machine's speed.
    """
    with local_stack() as stack:
        stack.up()
        before = _cpu_seconds(stack)
        time.sleep(_SPAN)
        after = _cpu_seconds(stack)
    bare = min(bare_interpreter() for _ in range(_ROUNDS))
    used = {name: seconds - before[name] for name, seconds in after.items()}
    return [
        Figure(
            name=name,
            unit="CPU s",
            ours=seconds,
            peer=bare,
            peer_name="a bare interpreter",
            limit=Limit("at most", most),
            note=f"{_SPAN:g} s after `up`; {what}",
        )
        for name, seconds, most, what in (
            ("a local stack at rest", sum(used.values()), 80, "daemon, kubelet and ten credential probes"),
            ("the local cloud at rest", sum(used[process] for process in _OWN), 45, "daemon and kubelet alone"),
        )
    ]


def _cpu_seconds(stack: LocalStack) -> dict[str, float]:
    """User and system time so far of each recorded process: daemon, kubelet and the pods' containers."""
    records = sorted(Path(stack.environment.state_dir, "pids").glob("*.json"))
    assert len(records) > 10, [record.name for record in records]
    return {record.stem: _process_seconds(json.loads(record.read_text())["pid"]) for record in records}


def _process_seconds(pid: int) -> float:
    stat = Path(f"/proc/{pid}/stat").read_text()
    # utime and stime, fields 14 and 15 (proc_pid_stat(5)); the command's name may hold blanks.
    return sum(map(int, stat.rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")
