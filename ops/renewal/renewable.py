"""The resources that a renewal of one identity touches, by their URNs: those in the state, and those that may come."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from identity import resource_types
from ops.stack.state import StateResource, name_of
from ops.world.ownership import by_owner


class RenewedType(StrEnum):
    """The types of all resources that a renewal touches."""

    SCHEDULE = resource_types.RENEWAL_SCHEDULE
    CERTIFICATE = resource_types.CERTIFICATE
    REGISTRATION = resource_types.REGISTERED_CERTIFICATE
    GATE = resource_types.SIGN_IN_GATE
    SECRET = resource_types.CREDENTIAL_SECRET


# The resources of a slot, by the part of their names before the slot (`components/azure/entra_application.py`). Those
# of the second slot come with the first renewal, so they are not looked up in the state.
_OF_A_SLOT: Final = {
    RenewedType.CERTIFICATE: "certificate",
    RenewedType.REGISTRATION: "registration",
    RenewedType.GATE: "gate",
}
SLOTS: Final = ("a", "b")
_OTHER_SLOT: Final = {"a": "b", "b": "a"}


@dataclass(frozen=True)
class Renewable:
    """One identity whose certificates the stack issues.

    `name` is `<cluster>/<field>`, `schedule` the schedule's name in the program. `targets` has the type of each
    resource by its URN, whether it exists yet or not; `secret` is the vault secret's URN, None before the first one is
    written. `dependents` are the URNs of the other resources in the state that depend on a target, children and theirs
    included.
    """

    name: str
    schedule: str
    targets: Mapping[str, RenewedType]
    secret: str | None
    dependents: frozenset[str]

    @property
    def schedule_urn(self) -> str:
        """The schedule's URN."""
        return next(urn for urn, kind in self.targets.items() if kind is RenewedType.SCHEDULE)

    def accounts_for(self, urn: str) -> bool:
        """Whether the resource is this identity's: a target, or one that depends on a target."""
        return urn in self.targets or urn in self.dependents

    @property
    def as_targets(self) -> list[str]:
        """The `targets` as the engine takes them.

        It refuses a URN that is neither in the state nor registered by the program, as those of a slot without a
        certificate are; a pattern may match nothing. With its star each of these matches itself alone.
        """
        return [f"{urn}*" if kind in _OF_A_SLOT else urn for urn, kind in self.targets.items()]

    def of_slot(self, slot: str) -> list[str]:
        """The URNs of a slot's resources."""
        return [urn for urn, kind in self.targets.items() if kind in _OF_A_SLOT and urn.endswith(f"-{slot}")]


def other_slot(urn: str) -> str:
    """The URN of the same resource of the other slot."""
    return urn[:-1] + _OTHER_SLOT[urn[-1]]


def renewable(resources: Collection[StateResource]) -> list[Renewable]:
    """The identities that have a schedule in the state, in the order of the state."""
    secrets = by_owner(resources, RenewedType.SECRET)
    dependents = _dependents(resources)
    found = []
    for owner, schedules in by_owner(resources, RenewedType.SCHEDULE).items():
        for schedule in schedules:
            secret = next((each["urn"] for each in secrets.get(owner, ())), None)
            targets = {schedule["urn"]: RenewedType.SCHEDULE, **_slots(schedule["urn"])}
            targets |= {secret: RenewedType.SECRET} if secret else {}
            found.append(
                Renewable(
                    name=owner.name,
                    schedule=name_of(schedule["urn"]),
                    targets=targets,
                    secret=secret,
                    dependents=frozenset(_closure(targets, dependents) - targets.keys()),
                )
            )
    return found


def _slots(schedule: str) -> dict[str, RenewedType]:
    """The types of both slots' resources, siblings of the schedule, by URN."""
    parent, _, name = schedule.rpartition(f"${RenewedType.SCHEDULE}::")
    stem = name.removesuffix("schedule")
    return {f"{parent}${kind}::{stem}{part}-{slot}": kind for slot in SLOTS for kind, part in _OF_A_SLOT.items()}


def _dependents(resources: Iterable[StateResource]) -> Mapping[str, set[str]]:
    """By URN, those that depend on it."""
    found = defaultdict(set)
    for each in resources:
        properties = (each.get("propertyDependencies") or {}).values()
        parents = [each["parent"]] if each.get("parent") else []
        for urn in (*parents, *(each.get("dependencies") or ()), *(urn for urns in properties for urn in urns or ())):
            found[urn].add(each["urn"])
    return found


def _closure(urns: Iterable[str], dependents: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    pending = list(urns)
    while pending:
        urn = pending.pop()
        if urn not in found:
            found.add(urn)
            pending.extend(dependents.get(urn, ()))
    return found
