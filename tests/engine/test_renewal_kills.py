"""Renewals that are killed half way: no client fails, and `idstack recover` ends with two certificates each time.

`tests/engine/test_credential_kills.py` aims at the steps of a certificate. `make kills` kills twenty-five times.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final, get_args

import pytest

from tests.engine.clients import report, signing_in
from tests.engine.held_faults import held, registration_fails
from tests.engine.killing import Kill, Victim, interrupted, registered, registered_in_state
from tests.engine.rotations import rotating_stack

# Of two identities: the registration that goes, the one that comes, the secret, and its old version that is disabled.
_WRITES: Final = 8
_KILLS: Final = 25


def _kill(seed: int) -> Kill:
    victims: tuple[Victim, ...] = get_args(Victim)
    chance = random.Random(seed)  # noqa: S311  # a draw that can be repeated
    return Kill(victims[seed % len(victims)], chance.randint(1, _WRITES), chance.choice(("before", "after")))


@pytest.mark.kills
def test_no_sign_in_fails_however_a_renewal_is_killed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with rotating_stack(tmp_path, warm=False) as rotating, signing_in(rotating.stack, rotating.file) as clients:
        for client in clients.values():
            client.await_certificates(1)
        # From the second renewal on there are two certificates, and one goes when one comes.
        for _ in range(2):
            rotating.renew()
            for client in clients.values():
                client.await_certificate(rotating.thumbprint)
        for seed in range(_KILLS):
            rotating.pass_a_day()
            interrupted(rotating.stack, _kill(seed), "renew")
            rotating.stack.idstack("recover", "--no-up")
            rotating.stack.up()
            own = registered_in_state(rotating.stack)
            assert registered(rotating.stack).items() >= own.items(), _kill(seed)
            assert [len(ids) for ids in own.values()] == [2, 2], _kill(seed)
            for client in clients.values():
                client.await_certificate(rotating.thumbprint)

    with capsys.disabled():
        print(report(clients))
    for client in clients.values():
        # Nobody is refused, that is; the local cloud itself is killed and started again all the time.
        assert client.refusals == []


@pytest.mark.nightly
def test_a_run_ends_when_a_registration_cannot_be_removed(tmp_path: Path) -> None:
    """The engine would wait for ever: `executeChain` of pulumi v3.259 gives the program no answer then."""
    with rotating_stack(tmp_path) as rotating, signing_in(rotating.stack, rotating.file) as clients:
        for _ in range(2):
            rotating.renew()
        rotating.pass_a_day()
        before = rotating.thumbprint
        with held(rotating.stack, registration_fails(rotating.stack)):
            done = rotating.stack.idstack("renew", check=False)

        assert done.returncode == 1
        assert "could not go on after a deletion had failed, and was ended" in done.stderr
        assert rotating.thumbprint == before
        rotating.stack.up()
        assert rotating.thumbprint != before
        for client in clients.values():
            client.await_certificate(rotating.thumbprint)
            assert client.refusals == []
