"""Local stacks to measure: our program and the flat script over the same state."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from tests.harness import PROJECT, LocalStack, running_stack
from tools.bench.flat import RECORDING, recording
from tools.bench.measure import Cost, run

_ON_EXIT: Final = PROJECT / "tools/bench/on_exit"
# Faults of a local cloud that is consistent at once and throttles nobody.
NO_LAG: Final[Mapping[str, Any]] = {
    "replica_delays": [0.0],
    "principal_delay": 0.0,
    "role_delay": 0.0,
    "federated_credential_write": 0.0,
    "arm_requests": dict.fromkeys(("read", "write", "delete")),
    "graph_requests": dict.fromkeys(("unit", "write", "tenant_write")),
    "vault_requests": dict.fromkeys(("create", "create_key", "key", "other")),
    "seed": 0,
}


def up(stack: str, *options: str) -> tuple[str, ...]:
    """`pulumi up` of a stack without a separate preview."""
    quiet = ("--yes", "--skip-preview", "--suppress-outputs", "--non-interactive")
    return ("pulumi", "up", "--stack", stack, *quiet, *options)


def unchanged(stack: str) -> tuple[str, ...]:
    """`up` that fails if it would change anything."""
    return up(stack, "--expect-no-changes")


@contextmanager
def local_stack(**faults: Any) -> Iterator[LocalStack]:
    """A configured and empty stack with a local cloud of its own; both are removed afterwards."""
    with TemporaryDirectory(prefix="bench-") as root, running_stack(Path(root), warm=False, **faults) as stack:
        yield stack


@contextmanager
def flat_project(stack: LocalStack) -> Iterator[tuple[Path, Mapping[str, str]]]:
    """A project in which the flat script takes our program's place, and the variables it needs.

    The stack is up. The script registers what the program registers in one more run of it, without a change.
    """
    with TemporaryDirectory(prefix="bench-flat-") as directory:
        root, log, recorded = Path(directory) / "project", Path(directory) / "log", Path(directory) / "recording.json"
        stack.run(*unchanged(stack.name), variables={"PULUMI_DEBUG_GRPC": str(log)})
        recorded.write_text(json.dumps(recording(log)), encoding="utf-8")
        log.unlink()
        root.mkdir()
        for entry in stack.root.iterdir():
            (root / entry.name).symlink_to(entry)
        (root / "__main__.py").unlink()
        (root / "__main__.py").symlink_to(PROJECT / "tools/bench/flat_program.py")
        yield root, {RECORDING: str(recorded)}


def program_cost(stack: LocalStack, directory: Path, variables: Mapping[str, str] | None = None) -> Cost:
    """What the program's own process costs in an `up` that changes nothing; engine and plugins are not in it."""
    with TemporaryDirectory(prefix="bench-usage-") as scratch:
        usage = Path(scratch) / "usage.json"
        path = os.pathsep.join(filter(None, (str(_ON_EXIT), os.environ.get("PYTHONPATH"))))
        environment = {**stack.variables, **(variables or {}), "BENCH_USAGE": str(usage), "PYTHONPATH": path}
        whole = run(unchanged(stack.name), directory=directory, environment=environment)
        own = json.loads(usage.read_text(encoding="utf-8"))
        return Cost(own["user"], own["system"], whole.wall, own["peak"])
