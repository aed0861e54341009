"""A local cloud in processes of its own: its start and end, the files of its state, its log, its clock, its parts."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from localcloud.__main__ import cli
from localcloud.apiserver.commands import Binaries
from localcloud.core import clock, clouds, processes
from localcloud.core.clock import moved_ahead
from localcloud.core.clouds import LocalEnvironment, network
from localcloud.core.cluster import DEPLOYER, ClusterKind
from localcloud.core.files import write_private
from localcloud.core.request_log import LoggedRequest
from localcloud.core.request_log import read as read_requests
from localcloud.core.state_directory import StateDirectory
from localcloud.runtime import daemon
from localcloud.runtime.daemon import Proxy
from localcloud.runtime.environment import Prepared
from localcloud.runtime.lifecycle import DAEMON
from localcloud.runtime.seed_file import DEFAULT as DEFAULT_SEED
from localcloud.runtime.seed_file import Seed
from localcloud.runtime.seed_file import load as load_seed

__all__ = [
    "DAEMON",
    "DEFAULT_SEED",
    "DEPLOYER",
    "Binaries",
    "ClusterKind",
    "LocalEnvironment",
    "LoggedRequest",
    "Prepared",
    "Proxy",
    "Seed",
    "StateDirectory",
    "cli",
    "clock",
    "clouds",
    "daemon",
    "ended",
    "execute",
    "load_seed",
    "moved_ahead",
    "network",
    "processes",
    "read_requests",
    "running_cloud",
    "write_private",
]

_PATIENCE: Final = 120  # seconds until a process that does not end is a failure; no test waits for it otherwise


@contextmanager
def running_cloud(state: Path, seed: Path | None = None) -> Iterator[LocalEnvironment]:
    """A running local cloud with its kubelet and this seed, by default the package's own; its state goes with it."""

    def command(*arguments: str) -> None:
        line = [sys.executable, "-m", "localcloud", "--state-dir", str(state), *arguments]
        done = subprocess.run(line, cwd=state.parent, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(arguments)}: {done.stdout}{done.stderr}"

    try:
        command("start", *(("--seed", str(seed)) if seed else ()))
        yield LocalEnvironment.from_file(state / "environment.json")
    finally:
        command("stop", "--remove")


def execute(
    environment: LocalEnvironment, *arguments: str, path: Path | None = None, directory: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """`localcloud exec` with these arguments, by default beside the state directory; `path` is first in PATH."""
    line = [sys.executable, "-m", "localcloud", "--state-dir", environment.state_dir, "exec", *arguments]
    searched = os.pathsep.join([*([str(path)] if path else []), os.environ["PATH"]])
    return subprocess.run(
        line,
        cwd=directory or Path(environment.state_dir).parent,
        env={**os.environ, "PATH": searched},
        capture_output=True,
        text=True,
        check=False,
    )


def ended(process: int) -> bool:
    """Whether the process ends, now or within some seconds."""
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], _PATIENCE)[0])
    finally:
        os.close(handle)
