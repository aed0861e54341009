"""What stops a first `up`: a name that is taken, and interruptions while a gate waits. The next one goes on."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Interrupted:
    """What an `up` printed that got a signal, the locks that it left, and what the state has of steps under way."""

    printed: str
    locks: list[str]
    pending: Any


@dataclass(frozen=True)
class FirstUp:
    """A stack that was stopped by a name that an assignment of the principal `older` had `taken`, then interrupted."""

    stack: LocalStack
    taken: str
    older: str
    stopped: subprocess.CompletedProcess[str]
    listed: list[dict[str, Any]]
    interrupted: dict[signal.Signals, Interrupted]
    ended: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FirstUp]:
    with (
        small_stack(tmp_path_factory.mktemp("first-up"), "hypershift") as stack,
        stack.configured(credentials=_TIMEOUT),
    ):
        taken, older = _take_a_name(stack)
        stopped = stack.idstack("up", check=False)
        listed = _left_over(stack)
        stack.idstack("sweep", "--yes")
        with held(stack, gate_refuses(stack)):
            interrupted = {number: _interrupt(stack, number) for number in (signal.SIGINT, signal.SIGTERM)}
        ended = stack.idstack("up", check=False)
        yield FirstUp(stack, taken, older, stopped, listed, interrupted, ended)


def test_a_name_taken_by_an_older_principal_is_freed(scenario: FirstUp) -> None:
    stack = scenario.stack
    assert scenario.stopped.returncode == 1
    assert "`.venv/bin/idstack sweep --stack local` says so, and frees the name with `--yes`" in scenario.stopped.stderr
    found = [(item["kind"], item["id"], item["ours"]) for item in scenario.listed]
    assert found == [("role assignment", scenario.taken, True)]
    assert _left_over(stack) == []
    successor = OutOfBand(stack).arm("GET", scenario.taken, _AUTHORIZATION)["properties"]["principalId"]
    assert successor != scenario.older
    [identity, *_] = [resource for resource in stack.resources() if resource["type"] == resource_types.MANAGED_IDENTITY]
    assert identity["outputs"]["tags"][STACK_TAG] == "idstack:local"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_gate_ends_and_unlocks_the_stack(scenario: FirstUp, number: signal.Signals) -> None:
    found = scenario.interrupted[number]

    assert f"idstack: interrupted by {number.name}: `pulumi up` has finished its operations" in found.printed
    assert "error: interrupted while it waited; run the command again" in found.printed
    assert found.locks == []
    assert not found.pending


def test_after_interruptions_up_goes_on(scenario: FirstUp) -> None:
    assert scenario.ended.returncode == 0, scenario.ended.stderr
    assert scenario.stack.preview() == {}


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


def _interrupt(stack: LocalStack, number: signal.Signals) -> Interrupted:
    """Send an `up` a signal, alone, once a gate was refused."""
    with (
        subprocess.Popen(
            ["tail", "--lines=0", "--follow", stack.state / "daemon.log"], stdout=subprocess.PIPE, text=True
        ) as log,
        stack.started(
            *(stack.python, "-m", "ops", "up"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as running,
    ):
        assert log.stdout is not None
        next(line for line in log.stdout if "entra refused POST" in line)
        running.send_signal(number)
        printed = running.communicate(timeout=_NEVER)[0]
        log.terminate()
    assert running.returncode == 1, printed
    locks = [path.name for path in (stack.state / "pulumi/backend/.pulumi/locks").rglob("*") if path.is_file()]
    latest = json.loads(stack.checkpoint.read_text(encoding="utf-8"))["checkpoint"]["latest"]
    return Interrupted(printed, locks, latest.get("pending_operations"))
