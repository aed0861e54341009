"""What a storm does: operations in a row, drawn by a seed or written out, some of them disturbed.

An operation is written as a word: `up`, `rotate:cloudProvider`, `renew/engine@17/again`. The last one is a renewal
whose engine is killed at the 17th write to the stack's disk, and which is then simply run again. In
`renew/plugin@before:deliver:2/up` the plugin is killed before its second delivery, and `up` follows. `sweep@9+renew@4`
are two commands at once. `day*30` is a word thirty times.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby
from typing import Final, Self

APPLICATIONS: Final = ("cloudProvider", "nodePoolManagement")
"""The identities of `small_stack` with certificates of their own."""
EDITS: Final = ("generation", "delivered", "thumbprint", "nbf")
"""What is changed of a secret."""
LOST: Final = ("schedule", "gate")
"""What the state loses of an identity."""
_TEXT: Final = re.compile(
    r"(?P<kind>[a-z]+)(:(?P<argument>[\w-]+))?(@(?P<request>\d+)\+(?P<other>[a-z]+(:[\w-]+)?)(@(?P<until>\d+))?)?(/(?P<victim>[a-z]+)@((?P<moment>before|after):(?P<step>[a-z]+):)?"
    r"(?P<write>\d+)(~(?P<kept>\d+))?/(?P<recovery>[a-z]+))?(\*(?P<times>\d+))?"
)


class Kind(StrEnum):
    """What is done."""

    UP = "up"
    CHANGE = "change"
    RENEW = "renew"
    ROTATE = "rotate"
    REVOKE = "revoke"
    SCALE = "scale"
    DOWN = "down"
    PUT_BACK = "putback"
    EDIT = "edit"
    RESTORE = "restore"
    LAG = "lag"
    NEIGHBOUR = "neighbour"
    TWIN = "twin"
    DAY = "day"
    FAULT = "fault"
    SWEEP = "sweep"
    RECOVER = "recover"
    PLANT = "plant"
    LOSE = "lose"
    CASE = "case"


TAMPERING: Final = (
    *(Kind.PUT_BACK, Kind.EDIT, Kind.RESTORE, Kind.LAG, Kind.NEIGHBOUR, Kind.TWIN),
    *(Kind.PLANT, Kind.LOSE, Kind.CASE),
)
"""What somebody does behind the stack's back, or Azure by itself. Nobody is killed meanwhile."""


class Victim(StrEnum):
    """Who is killed; the machine loses its power."""

    ENGINE = "engine"
    PLUGIN = "plugin"
    DAEMON = "daemon"
    KUBELET = "kubelet"
    MACHINE = "machine"


class Recovery(StrEnum):
    """What a person does then: `idstack recover`, the same command again, or `idstack up`."""

    RECOVER = "recover"
    AGAIN = "again"
    UP = "up"


@dataclass(frozen=True)
class Disturbance:
    """Kill `victim` at the `write`-th write to the stack's disk after the command's start, if there are as many.

    `kept`, in percent: of a machine's files that nobody synced, how much is on the disk. `moment` and `step`: at a
    request of a plugin instead (`tests/storm/fault_daemon.py`), before it has its effect or after.
    """

    victim: Victim
    write: int
    recovery: Recovery
    kept: int = 100
    moment: str = ""
    step: str = ""

    def __str__(self) -> str:
        kept = f"~{self.kept}" if self.victim is Victim.MACHINE else ""
        request = f"{self.moment}:{self.step}:" if self.moment else ""
        return f"/{self.victim}@{request}{self.write}{kept}/{self.recovery}"


@dataclass(frozen=True)
class Meeting:
    """Another command while the operation waits for the answer to its `request`-th request to ARM or Graph.

    The other one runs to its end, or stands still after its `until`-th write while the operation runs to its own.
    """

    request: int
    other: Operation
    until: int = 0

    def __str__(self) -> str:
        return f"@{self.request}+{self.other}{f'@{self.until}' if self.until else ''}"


@dataclass(frozen=True)
class Operation:
    """One step of a storm; a meeting is not disturbed besides."""

    kind: Kind
    argument: str = ""
    disturbance: Disturbance | None = None
    meeting: Meeting | None = None

    def __str__(self) -> str:
        return f"{self.kind}{self.argument and ':'}{self.argument}{self.meeting or ''}{self.disturbance or ''}"

    @classmethod
    def parse(cls, text: str) -> list[Self]:
        """The operation that `str` wrote, as often as `*` says; raises ValueError for any other text."""
        found = _TEXT.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is no operation; accepted: such as renew, scale:2 or up/machine@40~50/recover")
        disturbance = None
        if found["victim"]:
            victim, recovery, kept = Victim(found["victim"]), Recovery(found["recovery"]), int(found["kept"] or 100)
            request = found["moment"] or "", found["step"] or ""
            disturbance = Disturbance(victim, int(found["write"]), recovery, kept, *request)
        meeting = None
        if found["other"]:
            [other] = cls.parse(found["other"])
            meeting = Meeting(int(found["request"]), other, int(found["until"] or 0))
        return [cls(Kind(found["kind"]), found["argument"] or "", disturbance, meeting)] * int(found["times"] or 1)


@dataclass(frozen=True)
class _Rule:
    """When an operation makes sense, how often it is drawn, with which arguments, and about how much it writes."""

    weight: int
    writes: int
    arguments: tuple[str, ...] = ("",)
    needs_stack: bool = True


# The writes: of the stack's disk in an undisturbed run, some less, so that a kill seldom comes too late.
_RULES: Final[Mapping[Kind, _Rule]] = {
    Kind.UP: _Rule(2, 40, needs_stack=False),
    Kind.CHANGE: _Rule(3, 150, ("builtin", "hypershift", "registry", "tags")),
    Kind.RENEW: _Rule(8, 170),
    Kind.ROTATE: _Rule(2, 130, APPLICATIONS),
    Kind.REVOKE: _Rule(2, 120, (*APPLICATIONS, *(f"{application}-now" for application in APPLICATIONS))),
    Kind.SCALE: _Rule(2, 12, ("0", "1", "2", "3")),
    Kind.DOWN: _Rule(1, 200),
    # An older version of an identity's secret is put back, with its tags or bare; then a day passes, and `renew` runs.
    Kind.PUT_BACK: _Rule(3, 170, (*APPLICATIONS, *(f"{application}-bare" for application in APPLICATIONS))),
    # A tag, or the `nbf`, of the newest version is changed; likewise.
    Kind.EDIT: _Rule(3, 170, tuple(f"{application}-{what}" for application in APPLICATIONS for what in EDITS)),
    # `backup`, then a leak is revoked, the backend lost, and what was backed up brought back.
    Kind.RESTORE: _Rule(3, 400, APPLICATIONS),
    # A leak is revoked while Graph's reads are late.
    Kind.LAG: _Rule(3, 120, APPLICATIONS),
    # A second stack of the backend has a cluster with this stack's infraID; its `up` and `recover` are run.
    Kind.NEIGHBOUR: _Rule(1, 0),
    # Another backend has a stack of this name, empty or brought up; its `sweep --yes` and `recover` are run.
    Kind.TWIN: _Rule(1, 0, ("", "up")),
    Kind.SWEEP: _Rule(2, 0),
    Kind.RECOVER: _Rule(2, 60),
    # An application is deleted, and somebody plants another with its tags and a secret; `recover` is run.
    Kind.PLANT: _Rule(1, 0, APPLICATIONS),
    # The state loses a schedule, or a registration with its gate, and what depends on it; `up` and `recover` are run.
    Kind.LOSE: _Rule(2, 0, tuple(f"{application}-{what}" for application in APPLICATIONS for what in LOST)),
    # The resource group is written in another letter case.
    Kind.CASE: _Rule(1, 0),
}
_FIRST_UP: Final = 1500
_VICTIMS: Final[Mapping[Kind, Sequence[Victim]]] = {Kind.SCALE: (Victim.DAEMON, Victim.KUBELET, Victim.MACHINE)}


def drawn(seed: int, operations: int, kills: int, days: int) -> list[Operation]:
    """So many operations, of which so many are disturbed, with at most so many renewals, each a day after the last."""
    chance = random.Random(seed)  # noqa: S311  # a draw that can be repeated
    disturbed = set(chance.sample(range(operations), kills))
    plan: list[Operation] = []
    is_up = False
    for number in range(operations):
        kinds = [kind for kind, rule in _RULES.items() if is_up or not rule.needs_stack]
        if sum(row.kind is Kind.RENEW for row in plan) == days:
            kinds = [kind for kind in kinds if kind is not Kind.RENEW]
        if number in disturbed:
            kinds = [kind for kind in kinds if kind not in (*TAMPERING, Kind.SWEEP)]
        [kind] = chance.choices(kinds, [_RULES[choice].weight for choice in kinds])
        writes = _RULES[kind].writes if is_up else _FIRST_UP
        disturbance = _disturbance(chance, kind, writes) if number in disturbed else None
        wanted = Operation(kind, chance.choice(_RULES[kind].arguments), disturbance)
        if is_up and str(wanted) in COMMANDS and chance.random() < _MEETS:
            plan += meeting(str(wanted), chance.choice([*COMMANDS]), chance)
        else:
            plan.append(wanted)
        is_up = plan[-1].kind is not Kind.DOWN
    return plan


COMMANDS: Final[Mapping[str, int]] = {
    **{"sweep": 30, "renew": 60, "rotate:cloudProvider": 60, "recover": 90, "up": 60, "down": 60}
}
"""The commands that meet each other, and about how many requests each sends to ARM and Graph."""
_MEETS_WITHIN: Final = 8  # writes
_MEETS: Final = 0.7
"""How many of the drawn commands that nobody kills meet another one."""


def meeting(first: str, other: str, chance: random.Random) -> list[Operation]:
    """Two commands at once, which meet where `chance` draws it; after `down`, another stack."""
    until = chance.choice((0, chance.randint(1, _MEETS_WITHIN)))
    [wanted], [beside] = Operation.parse(first), Operation.parse(other)
    met = replace(wanted, meeting=Meeting(chance.randint(1, COMMANDS[first]), beside, until))
    return [met, *([Operation(Kind.UP)] if Kind.DOWN in (wanted.kind, beside.kind) else [])]


def _disturbance(chance: random.Random, kind: Kind, writes: int) -> Disturbance:
    victim = chance.choice(_VICTIMS.get(kind, tuple(Victim)))
    draw: Callable[[], int] = lambda: chance.choice((0, 100, chance.randint(1, 99)))  # noqa: E731
    return Disturbance(
        victim, chance.randint(1, writes), chance.choice(tuple(Recovery)), draw() if victim is Victim.MACHINE else 100
    )


def written(plan: Sequence[Operation]) -> str:
    """The text of a plan, of which `parsed` makes the plan again."""
    counted = ((str(operation), len(list(same))) for operation, same in groupby(plan))
    return " ".join(word if times == 1 else f"{word}*{times}" for word, times in counted)


def parsed(text: str) -> list[Operation]:
    """The plan of a text; raises ValueError if a word of it is no operation."""
    return [operation for word in text.split() for operation in Operation.parse(word)]
