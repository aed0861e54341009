"""Daily renewals for weeks, under faults that last for days: the credential in the vault and in the pod works always.

`make kills` runs eighteen days and sixty.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, nullcontext
from typing import Any, Final

import pytest

from tests.engine.clients import bare_sign_in, read, report, signing_in
from tests.engine.held_faults import (
    DROPPED,
    Fault,
    arm_is_away,
    entra_is_away,
    gate_refuses,
    held,
    registration_fails,
    vault_write_fails,
)
from tests.engine.rotations import LIFE, Rotating, rotating_stack
from tests.harness import LocalStack

pytestmark = pytest.mark.kills
# By name: what makes the fault, and whether pods can sign in while it lasts.
_FAULTS: Final[Mapping[str, tuple[Callable[[LocalStack], Fault], bool]]] = {
    "Entra ID takes no new certificate": (gate_refuses, True),
    "ARM refuses the secret": (vault_write_fails, True),
    "ARM writes the secret, and its answer is lost": (
        lambda stack: vault_write_fails(stack, status=DROPPED, after=True),
        True,
    ),
    "Graph refuses the registration": (registration_fails, True),
    "Graph registers, and its answer is lost": (
        lambda stack: registration_fails(stack, status=403, after=True),
        True,
    ),
    "ARM is away": (lambda _: arm_is_away(), True),
    "Entra ID is away": (lambda _: entra_is_away(), False),
}
# Of eight sign-ins in a row no replica is slower than a second here; the gate gives up soon.
_PROPAGATION: Final = {"successes": 3, "settleSeconds": 2, "timeoutSeconds": 10}


def _days(number: int) -> Iterator[tuple[int, str | None]]:
    """Each day with its fault: two parts of each stretch with one, one part without."""
    stretch = number // (len(_FAULTS) - 1)
    names = [name for name, (_, works) in _FAULTS.items() if works]
    for day in range(number):
        index, part = divmod(day, stretch)
        yield day, names[index % len(names)] if part < stretch * 2 // 3 else None


@pytest.fixture
def rotating(tmp_path: Any) -> Iterator[Rotating]:
    with (
        rotating_stack(tmp_path) as rotating,
        rotating.stack.configured(credentials={**LIFE, "propagation": _PROPAGATION}),
    ):
        rotating.stack.up()
        yield rotating


@pytest.mark.parametrize("days", [18, 60])
def test_no_fault_of_days_takes_a_credential_out_of_use(
    rotating: Rotating, days: int, capsys: pytest.CaptureFixture[str]
) -> None:
    stack, before = rotating.stack, ""
    with signing_in(stack, rotating.file) as clients:
        for client in clients.values():
            client.await_certificates(1)
        for day, fault in _days(days):
            rotating.pass_a_day()
            # A change that waits for its approval, every other day; nothing of it may happen.
            waiting = stack.configured(clusterSide="stack") if day % 2 else nullcontext()
            with ExitStack() as during:
                during.enter_context(waiting)
                if fault:
                    during.enter_context(held(stack, _FAULTS[fault][0](stack)))
                done = stack.idstack("renew", check=False)
            printed = f"day {day}, {fault}: {done.stdout}{done.stderr}"
            assert (done.returncode == 0) == (fault is None), printed
            assert "Traceback" not in printed
            assert len(rotating.registered()) <= 2, printed
            if day % 5 == 4:
                stack.up()
            for client in clients.values():
                assert client.failures == [], printed
                client.await_sign_ins(1)
            assert fault or rotating.thumbprint != before, printed
            before = rotating.thumbprint
        for client in clients.values():
            client.await_certificate(rotating.thumbprint)
    with capsys.disabled():
        print(report(clients))


def test_an_outage_of_entra_id_leaves_the_credential_as_it_was(rotating: Rotating) -> None:
    stack, before = rotating.stack, rotating.thumbprint
    for _ in range(2):
        rotating.pass_a_day()
        with held(stack, entra_is_away()):
            done = stack.idstack("renew", check=False)
        assert done.returncode != 0
        assert bare_sign_in(read(rotating.file)) == before
    rotating.pass_a_day()
    stack.idstack("renew")
    assert rotating.thumbprint != before
    assert len(rotating.registered()) <= 2
    assert json.loads(rotating.file.read_text())["client_id"] == rotating.client_id
