"""What a local stack costs while nothing happens."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Final

from bench.figures import Figure, Limit
from bench.stacks import local_stack
from tests.harness import LocalStack

# Once a minute each probe proves its credential: the span holds every one of them.
_SPAN: Final = 60.0  # seconds


def rest() -> Figure:
    """User and system time of the daemon, the kubelet and the credential probes, against one core."""
    with local_stack() as stack:
        stack.up()
        before, begun = _cpu_seconds(stack), time.monotonic()
        time.sleep(_SPAN)
        used, span = _cpu_seconds(stack) - before, time.monotonic() - begun
    return Figure(
        name="a local stack at rest",
        unit="CPU s",
        ours=used,
        peer=span,
        peer_name="one core for as long",
        limit=Limit("at most", 0.03),
        note=f"{_SPAN:g} s after `up`; daemon, kubelet and ten credential probes",
    )


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
