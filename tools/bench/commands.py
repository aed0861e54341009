"""What our commands cost: before they do anything, and in an `up` that changes nothing."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from identity.aks.login import Login
from identity.aks.sign_in import token_source
from identity.aks.tokens import CACHE_VARIABLE, Token, TokenCache, key_of
from identity.credentials.rfc3339 import utc_now
from identity.login_kinds import LoginKind
from tests.harness import PROJECT
from tools.bench.figures import MIDDLE, Figure, Limit, of_the_middle_round
from tools.bench.measure import bare_interpreter, in_turn, run
from tools.bench.stacks import flat_project, local_stack, program_cost, unchanged

_STARTS: Final = 10
# A bare interpreter takes 13 ms on a machine without other work: 0.15 s for a token, 0.4 s for the help.
_TOKEN: Final = 11
_HELP: Final = 30


def commands() -> list[Figure]:
    """CPU of `idstack token --exec` from its cache, and of `idstack --help`, against a bare interpreter."""
    with TemporaryDirectory(prefix="bench-") as directory:
        certificate = Path(directory, "deployer.pem")
        certificate.write_text("only its digest counts")
        login = Login(kind=LoginKind.CERTIFICATE, certificate=certificate)
        cache = Path(directory, "tokens")
        _keep(login, cache)
        token, help_, bare = in_turn(
            _STARTS,
            lambda: _cpu(["-m", "ops", "token", "--exec", *login.arguments()], cache),
            lambda: _cpu(["-m", "ops", "--help"], cache),
            bare_interpreter,
        )
    return [
        Figure(
            name=name,
            unit="s",
            ours=min(ours),
            peer=min(bare),
            peer_name="a bare interpreter",
            limit=Limit("at most", most),
            note=f"CPU, the best of {_STARTS} in turn",
        )
        for name, ours, most in (("a token from the cache", token, _TOKEN), ("idstack --help", help_, _HELP))
    ]


def _keep(login: Login, directory: Path) -> None:
    fingerprint = token_source(login, {}, utc_now).fingerprint
    assert fingerprint is not None
    token = Token.issued("kept", now=utc_now(), expires_on=int(utc_now().timestamp()) + 3600)
    TokenCache(directory).token(key_of(login, fingerprint), utc_now, lambda: token)


def _cpu(arguments: Sequence[str], cache: Path) -> float:
    environment = {**os.environ, CACHE_VARIABLE: str(cache)}
    return run([sys.executable, *arguments], directory=PROJECT, environment=environment).cpu


_ROUNDS: Final = 7
_RERUNS: Final = 5
# With these `make bench ARGS=...` would pass its ARGS on to `make up`.
_OF_MAKE: Final = frozenset({"ARGS", "MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS"})


def program() -> Iterator[Figure]:
    """Our program and a flat script over the same state, in turn; the engine finds no change for either."""
    with local_stack() as stack:
        stack.up()
        resources = len(json.loads(stack.pulumi("stack", "export").stdout)["deployment"]["resources"])
        with flat_project(stack) as (directory, variables):
            ours, flat = in_turn(
                _ROUNDS,
                lambda: program_cost(stack, stack.root),
                lambda: program_cost(stack, directory, variables),
            )
    what = f"the program's own process; {resources} resources and components"
    user, flat_user = of_the_middle_round([run.user for run in ours], [run.user for run in flat])
    yield Figure(
        name="user CPU for each resource",
        unit="ms",
        ours=1000 * user / resources,
        peer=1000 * flat_user / resources,
        peer_name="a flat script on the bare SDK",
        limit=Limit("at most", 0.9),
        note=f"{MIDDLE} of {_ROUNDS}, {what}",
    )
    yield Figure(
        name="peak memory of the program",
        unit="MB",
        ours=min(run.peak for run in ours),
        peer=min(run.peak for run in flat),
        peer_name="the same script",
        limit=Limit("at most", 1.25),
        note=f"least of {_ROUNDS} runs in turn, {what}",
    )


def rerun() -> Figure:
    """A second `make up` against the engine alone: all processes but the local cloud, which runs already."""
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
            _RERUNS,
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
        note=f"{MIDDLE} of {_RERUNS}; make up also checks set-up and local cloud and reads ten probes",
    )
