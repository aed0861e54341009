"""A run that is interrupted while a gate waits ends in time, unlocks the stack, and the next one goes on."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.engine.held_faults import gate_refuses, held
from tests.engine.killing import small_stack
from tests.harness import LocalStack

# Longer than a test may take: only an interruption ends a gate that is refused.
_TIMEOUT = {"propagation": {"successes": 1, "settleSeconds": 0, "timeoutSeconds": 3600}}
# Seconds until a run that does not end counts as one that never does.
_NEVER = 300


@pytest.fixture
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """A stack that was never brought up, whose gates wait for an hour."""
    with (
        small_stack(tmp_path_factory.mktemp("interrupted"), "hypershift") as made,
        made.configured(credentials=_TIMEOUT),
    ):
        yield made


def interrupted(stack: LocalStack, number: signal.Signals) -> str:
    """What an `up` prints that gets a signal, alone, once a gate was refused."""
    with (
        subprocess.Popen(
            ["tail", "--lines=0", "--follow", stack.state / "daemon.log"], stdout=subprocess.PIPE, text=True
        ) as log,
        subprocess.Popen(
            [stack.python, "-m", "ops", "up"],
            cwd=stack.root,
            env=stack.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as running,
    ):
        assert log.stdout is not None
        next(line for line in log.stdout if "entra refused POST" in line)
        running.send_signal(number)
        printed = running.communicate(timeout=_NEVER)[0]
        log.terminate()
    assert running.returncode == 1, printed
    return printed


def checkpoint(stack: LocalStack) -> dict[str, Any]:
    """The state in the backend's file."""
    file = stack.state / "pulumi/backend/.pulumi/stacks/idstack/local.json"
    latest: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))["checkpoint"]["latest"]
    return latest


def test_an_interrupted_gate_ends_unlocks_the_stack_and_up_goes_on(stack: LocalStack) -> None:
    with held(stack, gate_refuses(stack)):
        for number in (signal.SIGINT, signal.SIGTERM):
            printed = interrupted(stack, number)

            assert f"idstack: interrupted by {number.name}: `pulumi up` has finished its operations" in printed
            assert "error: interrupted while it waited; run the command again" in printed
            assert not [each for each in (stack.state / "pulumi/backend/.pulumi/locks").rglob("*") if each.is_file()]
            assert not checkpoint(stack).get("pending_operations")

    assert stack.idstack("up").returncode == 0
    assert set(stack.preview().values()) == set()
