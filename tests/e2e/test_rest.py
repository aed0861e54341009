"""A local stack at rest leaves the machine alone: its processes wait for events."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Final

from tests.harness import LocalStack

# Of a core, for all processes of a stack with ten probes. It was 0.12 when mounts were polled every two seconds.
_MOST: Final = 0.06
_SPAN: Final = 3.0  # seconds
_SPANS: Final = 6


def test_a_stack_at_rest_uses_little_of_a_core(stack: LocalStack) -> None:
    shares: list[float] = []
    # What an earlier test began may still be under way, and once a minute a probe proves its credential.
    while len(shares) < _SPANS and min(shares, default=1.0) > _MOST:
        before = _cpu_seconds(stack)
        time.sleep(_SPAN)
        shares.append((_cpu_seconds(stack) - before) / _SPAN)

    assert min(shares) <= _MOST, f"shares of a core in spans of {_SPAN} s: {shares}"


def _cpu_seconds(stack: LocalStack) -> float:
    """User and system time so far of the recorded processes: daemon, kubelet and the pods' containers."""
    records = sorted(Path(stack.environment.state_dir, "pids").glob("*.json"))
    assert len(records) > 10, [each.name for each in records]
    ticks = 0
    for record in records:
        stat = Path(f"/proc/{json.loads(record.read_text())['pid']}/stat").read_text()
        # utime and stime, fields 14 and 15 (proc_pid_stat(5)); the command's name may hold blanks.
        ticks += sum(map(int, stat.rpartition(")")[2].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")
