"""A second `make up` that changes nothing, against the engine alone."""

from __future__ import annotations

import shutil
import sys
from typing import Final

from tests.harness import PROJECT
from tools.bench.arithmetic import MIDDLE, of_the_middle_round
from tools.bench.figures import Figure, Limit
from tools.bench.measure import in_turn, run
from tools.bench.stacks import local_stack, unchanged

_ROUNDS: Final = 5
# With these `make bench ARGS=...` would pass its ARGS on to `make up`.
_OF_MAKE: Final = frozenset({"ARGS", "MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS"})


def rerun() -> Figure:
    """User and system time of all processes of the command, without the local cloud, which runs already."""
    with local_stack() as stack:
        variables = {name: value for name, value in stack.variables.items() if name not in _OF_MAKE}
        # The command works on the project that its code is in.
        (stack.root / "ops").unlink()
        shutil.copytree(PROJECT / "ops", stack.root / "ops", ignore=shutil.ignore_patterns("__pycache__"))
        # The engine fails on a change, so that neither run hides one.
        reaper = (sys.executable, str(PROJECT / "tools/bench/reaper.py"))
        make = (*reaper, "make", "up", "ARGS=--expect-no-changes", f"IDSTACK={PROJECT}/.venv/bin/python -m ops")
        run(("make", "up", make[-1]), directory=stack.root, environment=variables)
        ours, engine = in_turn(
            _ROUNDS,
            lambda: run(make, directory=stack.root, environment=variables),
            lambda: run((*reaper, *unchanged(stack.name)), directory=stack.root, environment=variables),
        )
    ours_cpu, engine_cpu = of_the_middle_round([run.cpu for run in ours], [run.cpu for run in engine])
    return Figure(
        name="a second make up, nothing changed",
        unit="CPU s",
        ours=ours_cpu,
        peer=engine_cpu,
        peer_name="a bare pulumi up of the same stack",
        limit=Limit("at most", 1.2),
        note=f"{MIDDLE} of {_ROUNDS}; make up also checks set-up and local cloud and reads ten probes",
    )
