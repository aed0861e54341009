"""What stops a first `up`: a name that is taken, and interruptions while a gate waits. The next one goes on."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import subprocess
import termios
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from identity import resource_types
from identity.catalogue import CONTROL_PLANE
from identity.naming import STACK_TAG, role_assignment_name
from identity.resource_types import MANAGED_IDENTITY_API
from tests.engine.held_faults import gate_refuses, held
from tests.engine.out_of_band import OutOfBand
from tests.engine.small_stack import small_stack
from tests.harness import LocalStack

pytestmark = pytest.mark.slow

_AUTHORIZATION: Final = "2022-04-01"
_ROW: Final = next(row for row in CONTROL_PLANE if row.setting is None and row.enabled_by_default)
# Longer than a test may take: only an interruption ends a gate that is refused.
_TIMEOUT: Final = {"propagation": {"successes": 1, "settleSeconds": 0, "timeoutSeconds": 3600}}
# Seconds until a run that does not end counts as one that never does.
_NEVER: Final = 300
_KEY: Final = "Ctrl-C"
_INTERRUPTIONS: Final = {"SIGINT": signal.SIGINT, "SIGTERM": signal.SIGTERM, _KEY: signal.SIGINT}


def test_a_first_up_frees_a_taken_name_and_goes_on_after_interruptions(tmp_path: Path) -> None:
    with small_stack(tmp_path, "hypershift") as stack, stack.configured(credentials=_TIMEOUT):
        taken, older = _take_a_name(stack)
        stopped = stack.idstack("up", check=False)
        assert stopped.returncode == 1
        assert "`.venv/bin/idstack sweep --stack local` says so, and frees the name with `--yes`" in stopped.stderr
        found = [(item["kind"], item["id"], item["ours"]) for item in _left_over(stack)]
        assert found == [("role assignment", taken, True)]
        stack.idstack("sweep", "--yes")

        with held(stack, gate_refuses(stack)):
            for name, number in _INTERRUPTIONS.items():
                _interrupt(stack, name, number)

        ended = stack.idstack("up", check=False)
        assert ended.returncode == 0, ended.stderr
        assert _left_over(stack) == []
        assert OutOfBand(stack).arm("GET", taken, _AUTHORIZATION)["properties"]["principalId"] != older
        identity = next(
            resource for resource in stack.resources() if resource["type"] == resource_types.MANAGED_IDENTITY
        )
        assert identity["outputs"]["tags"][STACK_TAG] == "idstack:local"
        assert stack.preview() == {}


def _take_a_name(stack: LocalStack) -> tuple[str, str]:
    """The id of an assignment that has the name of the stack's, and its principal, which is gone.

    openshift/hypershift pull request 8322: a cluster is made again with the same infrastructure id.
    """
    somebody = OutOfBand(stack)
    subscription = f"/subscriptions/{stack.environment.subscription_id}"
    scope = f"{subscription}/resourceGroups/hc1-managed"
    older = f"{subscription}/resourceGroups/identity-local/providers/Microsoft.ManagedIdentity/userAssignedIdentities"
    made = somebody.arm("PUT", f"{older}/older", MANAGED_IDENTITY_API, {"location": "eastus"})
    assert _ROW.hypershift is not None
    principal = made["properties"]["principalId"]
    name = role_assignment_name("hc1-infra", _ROW.component, scope)
    taken = somebody.assign(scope, _ROW.hypershift.role.guid, principal, name)
    somebody.arm("DELETE", f"{older}/older", MANAGED_IDENTITY_API)
    return taken, principal


def _left_over(stack: LocalStack) -> list[dict[str, Any]]:
    document = json.loads(stack.idstack("sweep", "--json").stdout)
    assert document["unread"] == {}
    return list(document["leftovers"])


def _interrupt(stack: LocalStack, name: str, number: signal.Signals) -> None:
    """Interrupt an `up` once a gate was refused: by a signal to it alone, or as somebody who presses Ctrl-C twice.

    It says so, ends as after the signal, and leaves neither a lock nor an operation under way.
    """
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(ours, (50, 160))  # without a size the engine has no display that reads keys
    is_pressed = name == _KEY
    with (
        ThreadPoolExecutor() as reader,
        subprocess.Popen(
            ["tail", "--lines=0", "--follow", stack.state / "daemon.log"], stdout=subprocess.PIPE, text=True
        ) as log,
        subprocess.Popen(
            [stack.python, "-m", "ops", "up"],
            cwd=stack.root,
            env=stack.variables,
            stdin=theirs if is_pressed else subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0),
        ) as running,
    ):
        os.close(theirs)
        printed = reader.submit(_read, ours)
        assert log.stdout is not None
        next(line for line in log.stdout if "entra refused POST" in line)
        if is_pressed:
            os.write(ours, b"\x03\x03")
        else:
            running.send_signal(number)
        running.wait(timeout=_NEVER)
        log.terminate()
    os.close(ours)
    said = printed.result()
    assert f"idstack: interrupted by {number.name}: `pulumi up` has finished its operations" in said
    assert running.returncode == 128 + number
    assert "received; terminating" not in said
    assert "interrupted while it waited; run the command again" in said
    assert [path for path in (stack.state / "pulumi/backend/.pulumi/locks").rglob("*") if path.is_file()] == []
    latest = json.loads(stack.checkpoint.read_text(encoding="utf-8"))["checkpoint"]["latest"]
    assert not latest.get("pending_operations")


def _read(terminal: int) -> str:
    """What is written to a terminal until nobody has its other side."""
    printed = b""
    with suppress(OSError):
        while piece := os.read(terminal, 4096):
            printed += piece
    return printed.decode(errors="replace")
