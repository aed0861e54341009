"""Plans with a name: kills at chosen requests, two commands at once, faults of days and weeks, and a year."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import chain
from typing import Final

from tests.storm.plan import COMMANDS, Disturbance, Kind, Operation, Recovery, Victim, meeting, parsed, written

_VICTIMS: Final = (Victim.ENGINE, Victim.PLUGIN, Victim.DAEMON)
# The plugins' writes in an undisturbed `up` and `down`, for each `clusterSide`.
_WRITES: Final = {"hypershift": (54, 48), "stack": (71, 77)}
# Of the renewal of two identities: the registration that goes, the one that comes, the secret, and its old version.
_RENEWALS_WRITES: Final = 8
_ROUNDS: Final = 25
_CERTIFICATES: Final = 10
# Where a new certificate is when somebody is killed: the moment, the step, and how many there are of it.
_POINTS: Final = (
    ("before", "register", 2),  # its key is in the plugin's memory, and nobody else knows of it
    ("after", "register", 2),  # it is registered, and the engine does not know
    ("before", "prove", 5),  # it is registered, and not proven
    ("before", "deliver", 2),  # it is proven, and the vault does not have it
    ("after", "deliver", 2),  # the vault has it, and the engine does not know
)
_DISABLE: Final = ("before", "disable", 2)  # the vault has it, and one version too many can be read


def _up_and_down(seed: int) -> list[Operation]:
    """A stack that is killed twice."""
    chance = random.Random(seed)  # noqa: S311  # a draw that can be repeated
    side = "stack" if seed % 4 == 0 else "hypershift"
    victim = _VICTIMS[seed % len(_VICTIMS)]
    up, down = (_at_any(chance, victim, writes) for writes in _WRITES[side])
    return [Operation(Kind.UP, side, up), Operation(Kind.DOWN, "", down)]


def _renewal(seed: int) -> Operation:
    chance = random.Random(seed)  # noqa: S311
    return Operation(Kind.RENEW, "", _at_any(chance, _VICTIMS[seed % len(_VICTIMS)], _RENEWALS_WRITES))


def _at_any(chance: random.Random, victim: Victim, writes: int) -> Disturbance:
    moment = chance.choice(("before", "after"))
    return Disturbance(victim, chance.randint(1, writes), Recovery.RECOVER, moment=moment, step="any")


def _certificates(seed: int) -> list[Operation]:
    """A first issue and four renewals, each killed at another point."""
    chance = random.Random(seed)  # noqa: S311
    points = chance.sample(_POINTS, len(_POINTS))
    # There are two versions before the second renewal, the third would be one too many.
    points.insert(chance.randint(2, len(points) - 1), _DISABLE)
    recoveries = chance.sample(tuple(Recovery), len(Recovery)) * 2
    return [
        Operation(
            Kind.RENEW if number else Kind.UP,
            "",
            Disturbance(
                _VICTIMS[(seed + number) % len(_VICTIMS)],
                chance.randint(1, most),
                recoveries[number],
                moment=moment,
                step=step,
            ),
        )
        for number, (moment, step, most) in enumerate(points[:5])
    ]


def _of_pair(first: str, other: str) -> random.Random:
    return random.Random(f"{first} {other}")  # noqa: S311


def _faults(days: int, without: int) -> str:
    """Each fault for so many days, then so many days without one."""
    names = ("gate", "vault", "vault-answer", "graph", "graph-answer", "arm")
    return " ".join(["up", *(f"fault:{name}*{days} renew*{without} up" for name in names)])


PLANS: Final[Mapping[str, str]] = {
    "kill-up-down": written([*chain.from_iterable(map(_up_and_down, range(_ROUNDS)))]),
    "kill-renewals": f"up renew*2 {written([*map(_renewal, range(_ROUNDS))])}",
    **{f"kill-certificate-{seed}": written(_certificates(seed)) for seed in range(_CERTIFICATES)},
    # Each command as the first one of every pair.
    **{
        f"pairs-{first.partition(':')[0]}": "up renew "
        + written([*chain.from_iterable(meeting(first, other, _of_pair(first, other)) for other in COMMANDS)])
        for first in COMMANDS
    },
    # What waits for its second look while a certificate is registered, and the other way round.
    "sweep-beside": "up renew sweep@12+rotate:cloudProvider@3 rotate:cloudProvider@15+sweep sweep",
    "plant": "up plant:cloudProvider",
    "lost-schedule": "up renew lose:cloudProvider-schedule",
    "lost-gate": "up renew lose:nodePoolManagement-gate recover",
    "case": "up case",
    "tampering": (
        "up renew putback:cloudProvider putback:cloudProvider-bare edit:cloudProvider-nbf "
        "edit:cloudProvider-generation*2 restore:cloudProvider lag:cloudProvider neighbour twin twin:up renew"
    ),
    "fault-days": _faults(2, 1),
    "fault-weeks": _faults(6, 4),
    "outage": "up fault:entra*2 renew",
    # Certificates fall due in the lost week and in the outage; on days 1 and 100 a run finds nothing to do.
    "year": (
        "change:life renew day*98 renew day*67 day:lost*7 day*86 fault:entra*2 day*48 revoke:cloudProvider day*55 up"
    ),
}
"""The words of each."""


def named(name: str) -> list[Operation]:
    """The plan with this name; raises ValueError if there is none."""
    if name not in PLANS:
        raise ValueError(f"NAME={name} is no plan; accepted: {', '.join(PLANS)}")
    return parsed(PLANS[name])
