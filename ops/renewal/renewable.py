"""The resources of an identity's renewal by their URNs, existing and future ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from identity import resource_types
from ops.stack.state import StateResource, name_of
from ops.world.ownership import ResourceOwner, by_owner


class RenewedType(StrEnum):
    """The types of all resources of a renewal."""

    SCHEDULE = resource_types.RENEWAL_SCHEDULE
    CERTIFICATE = resource_types.CERTIFICATE
    REGISTRATION = resource_types.REGISTERED_CERTIFICATE
    GATE = resource_types.SIGN_IN_GATE
    SECRET = resource_types.CREDENTIAL_SECRET


# The part of their names before the slot (`components/azure/entra_application.py`). The resources of the second slot
# are not in the state before the first renewal.
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

    `schedule` and `secret` are in the state; `secret` is None before the first one is written. `targets` has the type
    of each existing or future resource by its URN. `dependents` are the URNs of the other resources in the state that
    depend on a target, with their children.
    """

    owner: ResourceOwner
    schedule: StateResource
    secret: StateResource | None
    targets: Mapping[str, RenewedType]
    dependents: frozenset[str]

    @property
    def name(self) -> str:
        """Cluster and field (`hc1/ingress`), as in `--identity` and messages."""
        return self.owner.name

    @property
    def schedule_name(self) -> str:
        """The schedule's name in the program."""
        return name_of(self.schedule["urn"])

    def accounts_for(self, urn: str) -> bool:
        """Whether the resource is a target of this identity, or depends on one."""
        return urn in self.targets or urn in self.dependents

    @property
    def as_targets(self) -> list[str]:
        """The `targets` as options of the engine.

        It refuses a URN that is neither in the state nor registered by the program, such as those of a slot without a
        certificate. A pattern may match nothing: with a star each of these URNs matches only itself.
        """
        return [f"{urn}*" if kind in _OF_A_SLOT else urn for urn, kind in self.targets.items()]

    def of_slot(self, slot: str) -> list[str]:
        """The URNs of a slot's resources."""
        return [urn for urn, kind in self.targets.items() if kind in _OF_A_SLOT and urn.endswith(f"-{slot}")]


def other_slot(urn: str) -> str:
    """The URN of the same resource of the other slot."""
    return urn[:-1] + _OTHER_SLOT[urn[-1]]


def renewable(resources: Collection[StateResource]) -> list[Renewable]:
    """The identities with a schedule in the state, in the order of the state."""
    secrets = by_owner(resources, RenewedType.SECRET)
    dependents = _dependents(resources)
    identities = []
    for owner, schedules in by_owner(resources, RenewedType.SCHEDULE).items():
        for schedule in schedules:
            secret = next(iter(secrets.get(owner, ())), None)
            targets = {schedule["urn"]: RenewedType.SCHEDULE, **_slots(schedule["urn"])}
            targets |= {secret["urn"]: RenewedType.SECRET} if secret else {}
            others = frozenset(_closure(targets, dependents) - targets.keys())
            identities.append(Renewable(owner, schedule, secret, targets, others))
    return identities


def _slots(schedule: str) -> dict[str, RenewedType]:
    """The types of both slots' resources, siblings of the schedule, by URN."""
    parent, _, name = schedule.rpartition(f"${RenewedType.SCHEDULE}::")
    stem = name.removesuffix("schedule")
    return {f"{parent}${kind}::{stem}{part}-{slot}": kind for slot in SLOTS for kind, part in _OF_A_SLOT.items()}


def _dependents(resources: Iterable[StateResource]) -> Mapping[str, set[str]]:
    """The dependents of each URN."""
    dependents = defaultdict(set)
    for resource in resources:
        properties = (resource.get("propertyDependencies") or {}).values()
        parents = [resource["parent"]] if resource.get("parent") else []
        inputs = (urn for urns in properties for urn in urns or ())
        for urn in (*parents, *(resource.get("dependencies") or ()), *inputs):
            dependents[urn].add(resource["urn"])
    return dependents


def _closure(urns: Iterable[str], dependents: Mapping[str, set[str]]) -> set[str]:
    closure: set[str] = set()
    pending = list(urns)
    while pending:
        urn = pending.pop()
        if urn not in closure:
            closure.add(urn)
            pending.extend(dependents.get(urn, ()))
    return closure
