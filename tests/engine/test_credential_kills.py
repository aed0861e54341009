"""Killed at each step of a certificate: what the vault has signs in all the while, and the next run finishes the rest.

Each scenario is a stack whose first issue and four renewals are killed, at another step each time; `make kills` has all
fifty.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from enum import Enum
from itertools import product
from pathlib import Path
from typing import Any, Final, Literal, get_args

import pytest

from identity.credentials.secret_tags import THUMBPRINT
from localcloud.testing.azure import SECRET_KIND, Store
from localcloud.testing.running import StateDirectory
from tests.engine.clients import Client, bare_sign_in, report
from tests.engine.fault_daemon import Step
from tests.engine.key_material import KeySearch, everything, vault_keys
from tests.engine.killing import Kill, Victim, documents, interrupted, registered, registered_in_state
from tests.engine.rotations import ageing_stack
from tests.harness import LocalStack

_SCENARIOS: Final = 10
_SECRETS: Final = ("cloud-provider-hc1-json", "nodepool-mgmt-hc1-json")
_VAULT: Final = "kv-idstack-local"
_NOTHING_YET: Final = "no credential yet"
_PAUSE: Final = 0.3  # seconds between two sign-ins of a client
_SIGN_INS: Final = 5  # of a gate at least (tests/engine/rotations.py)

Recovery = Literal["recover", "up", "renew"]


class Point(Enum):
    """Where a new certificate is when somebody is killed."""

    IN_MEMORY = "its key is in the plugin's memory, and nobody else knows of it"
    REGISTERED = "it is registered, and the engine does not know"
    IN_PROOF = "it is registered, and not proven"
    PROVEN = "it is proven, and the vault does not have it"
    DELIVERED = "the vault has it, and the engine does not know"
    BEFORE_DISABLING = "the vault has it, and one version too many can be read"

    def kill(self, victim: Victim, chance: random.Random) -> Kill:
        """One of two applications', or of several sign-ins."""
        one = chance.randint(1, len(_SECRETS))
        match self:
            case Point.IN_MEMORY:
                return Kill(victim, one, "before", Step.REGISTER)
            case Point.REGISTERED:
                return Kill(victim, one, "after", Step.REGISTER)
            case Point.IN_PROOF:
                return Kill(victim, chance.randint(1, _SIGN_INS), chance.choice(("before", "after")), Step.PROVE)
            case Point.PROVEN:
                return Kill(victim, one, "before", Step.DELIVER)
            case Point.DELIVERED:
                return Kill(victim, one, "after", Step.DELIVER)
            case Point.BEFORE_DISABLING:
                return Kill(victim, one, "before", Step.DISABLE)


@dataclass(frozen=True)
class Interruption:
    """Whom to kill where, and what a person does then."""

    point: Point
    kill: Kill
    recovery: Recovery


def _interruptions(seed: int) -> list[Interruption]:
    """One of a first issue, then those of renewals: each at another point, and one of the points is left out."""
    chance = random.Random(seed)  # noqa: S311  # a draw that can be repeated
    victims: tuple[Victim, ...] = get_args(Victim)
    points: list[Point] = [point for point in Point if point is not Point.BEFORE_DISABLING]
    chance.shuffle(points)
    # There are two versions before the second renewal, the third would be one too many.
    points.insert(chance.randint(2, len(points) - 1), Point.BEFORE_DISABLING)
    first: Recovery = chance.choice(("recover", "up"))
    later: list[Recovery] = ["recover", "up", "renew", "up" if first == "recover" else "recover"]
    chance.shuffle(later)
    return [
        Interruption(point, point.kill(victims[(seed + number) % len(victims)], chance), recovery)
        for number, (point, recovery) in enumerate(zip(points[:5], (first, *later), strict=True))
    ]


def test_the_fifty_points_are_every_step_with_every_victim_and_recovery() -> None:
    drawn = [
        (number, interruption) for seed in range(_SCENARIOS) for number, interruption in enumerate(_interruptions(seed))
    ]

    assert len(drawn) == 50
    assert {(interruption.point, interruption.kill.victim) for _, interruption in drawn} == set(
        product(Point, get_args(Victim))
    )
    assert {interruption.recovery for _, interruption in drawn} == set(get_args(Recovery))
    assert {interruption.recovery for number, interruption in drawn if number == 0} == {"recover", "up"}, (
        "there is nothing to renew"
    )
    assert all(number >= 2 for number, interruption in drawn if interruption.point is Point.BEFORE_DISABLING)


@pytest.mark.kills
@pytest.mark.parametrize("seed", range(_SCENARIOS), ids=lambda seed: f"stack {seed}")
def test_wherever_a_certificate_is_lost_the_vaults_one_signs_in(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ageing_stack(tmp_path, warm=False) as rotating, _reading_the_vault(rotating.stack) as clients:
        stack = rotating.stack
        seeded = registered(stack)
        for number, interruption in enumerate(_interruptions(seed)):
            if number:
                rotating.pass_a_day()
            interrupted(stack, interruption.kill, "renew" if number else "up")
            _go_on(stack, interruption)
            stack.up("--expect-no-changes")

            own = registered_in_state(stack)
            assert registered(stack) == {**seeded, **own}, interruption
            assert [len(ids) for ids in own.values()] == [min(number + 1, 2)] * len(_SECRETS), interruption
            for name, versions in _versions(stack).items():
                clients[name].await_certificate(versions[-1]["tags"][THUMBPRINT])
                assert not any(version["enabled"] for version in versions[:-2]), interruption
        keys = vault_keys(stack)
        assert KeySearch(keys).places_in(everything(stack, {})) == {}

    with capsys.disabled():
        print(report(clients))
    for client in clients.values():
        # Nobody is refused, that is; the local cloud itself is killed and started again all the time.
        assert client.refusals == []


def _go_on(stack: LocalStack, interruption: Interruption) -> None:
    """What a person does who does, or does not, know of `idstack recover`."""
    if interruption.recovery == "recover":
        stack.idstack("recover")
        return
    if interruption.kill.victim == "engine":
        refused = stack.idstack(interruption.recovery, check=False)
        assert "`make recover STACK=local` unlocks the stack" in refused.stderr
        stack.pulumi("cancel", "--yes")
    stack.idstack(interruption.recovery)


@contextmanager
def _reading_the_vault(stack: LocalStack) -> Iterator[dict[str, Client]]:
    """A client for each application's secret, which reads it from the vault's store for each sign-in, until the end.

    So it can do from before there is an identity that could read it, and while the local cloud is dead.
    """
    with closing(StateDirectory(stack.state).open_store()) as store, ExitStack() as ends:
        yield {name: ends.enter_context(Client(_sign_in(store, name), pause=_PAUSE)) for name in _SECRETS}


def _sign_in(store: Store, name: str) -> Callable[[], str]:
    def sign_in() -> str:
        secret = store.get(SECRET_KIND, f"{_VAULT}/{name}")
        if secret is None:
            return _NOTHING_YET
        current = secret["versions"][-1]
        assert current["enabled"], f"{name} cannot be read"
        return bare_sign_in(json.loads(store.unseal(current["sealed"])))

    return sign_in


def _versions(stack: LocalStack) -> dict[str, list[dict[str, Any]]]:
    """The versions of each application's secret, the newest last."""
    found = {document["name"]: document["versions"] for document in documents(stack, SECRET_KIND)}
    return {name: found[name] for name in _SECRETS}
