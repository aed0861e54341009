"""Chooses the identities to renew, and tells the steps of a renewal in a plan from other changes.

A plan of the same targets precedes each renewal. An identity with other changes waits for `idstack up`. Decision record
0025.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from identity import resource_types
from ops.stack.state import Plan, PlanStep, StateResource, errors_of, name_of, type_of
from ops.world.ownership import ResourceOwner, by_owner


class RenewedType(StrEnum):
    """The types of all resources of a renewal."""

    SCHEDULE = resource_types.RENEWAL_SCHEDULE
    CERTIFICATE = resource_types.CERTIFICATE
    REGISTRATION = resource_types.REGISTERED_CERTIFICATE
    GATE = resource_types.SIGN_IN_GATE
    SECRET = resource_types.CREDENTIAL_SECRET


# The part of their names before the slot (`components/azure/control_plane_identity.py`). The resources of the second
# slot are not in the state before the first renewal.
_OF_A_SLOT: Final = {
    RenewedType.CERTIFICATE: "certificate",
    RenewedType.REGISTRATION: "registration",
    RenewedType.GATE: "gate",
}
SLOTS: Final = ("a", "b")


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
        return [urn for urn, kind in self.targets.items() if kind in _OF_A_SLOT and urn.endswith(f"-{slot}")]


def other_slot(urn: str) -> str:
    return urn[:-1] + {"a": "b", "b": "a"}[urn[-1]]


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
            reached = set(targets)
            while further := {urn for target in reached for urn in dependents.get(target, ())} - reached:
                reached |= further
            others = frozenset(reached - targets.keys())
            identities.append(Renewable(owner, schedule, secret, targets, others))
    return identities


def _slots(schedule: str) -> dict[str, RenewedType]:
    """The types of both slots' resources, siblings of the schedule, by URN."""
    parent, _, name = schedule.rpartition(f"${RenewedType.SCHEDULE}::")
    stem = name.removesuffix("schedule")
    return {f"{parent}${kind}::{stem}{part}-{slot}": kind for slot in SLOTS for kind, part in _OF_A_SLOT.items()}


def _dependents(resources: Iterable[StateResource]) -> Mapping[str, set[str]]:
    dependents = defaultdict(set)
    for resource in resources:
        properties = (resource.get("propertyDependencies") or {}).values()
        parents = [resource["parent"]] if resource.get("parent") else []
        inputs = (urn for urns in properties for urn in urns or ())
        for urn in (*parents, *(resource.get("dependencies") or ()), *inputs):
            dependents[urn].add(resource["urn"])
    return dependents


# Steps without a change.
_NOTHING: Final = frozenset({"same", "read", "refresh"})
_CREATION: Final = frozenset({"create"})
# A slot's certificate is replaced, or a killed run's replacement is finished.
_REPLACEMENT: Final = frozenset(
    {"replace", "create-replacement", "delete-replaced", "remove-pending-replace", "discard-replaced"}
)
_UPDATE: Final = frozenset({"update"})


@dataclass(frozen=True)
class _Rule:
    """What a renewal does with a resource: the operations, and the inputs that may change, with their members."""

    operations: frozenset[str]
    inputs: frozenset[str]


_RULES: Final[Mapping[RenewedType, _Rule]] = {
    RenewedType.SCHEDULE: _Rule(_UPDATE, frozenset({"current", *SLOTS, "renewal", "delivered"})),
    RenewedType.CERTIFICATE: _Rule(_CREATION | _REPLACEMENT, frozenset({"generation", "notBefore"})),
    RenewedType.REGISTRATION: _Rule(_CREATION | _REPLACEMENT, frozenset({"value", "startDate", "endDate", "keyId"})),
    RenewedType.GATE: _Rule(_CREATION | _UPDATE, frozenset({"thumbprint", "registration"})),
    RenewedType.SECRET: _Rule(
        _UPDATE,
        frozenset(
            {
                *("thumbprint", "generation", "provenAt", "interrupted"),
                *("notBefore", "notAfter", "renewAfter", "cannotRenewAfter"),
            }
        ),
    ),
}
# A certificate keeps these inputs, so that a change is brought up with the next one.
_AS_ISSUED: Final = frozenset({"commonName", "keySize", "lifetimeDays"})


@dataclass(frozen=True)
class Verdict:
    """The judgement of a plan with several identities' renewals.

    `renewed` are the identities that the plan renews. `refused` has the reasons of each one to leave out, by name;
    `failed` are those of them whose renewal cannot be planned at all, with the errors as reasons. `blocked` are the
    reasons that belong to no identity.
    """

    renewed: tuple[Renewable, ...]
    refused: Mapping[str, Sequence[str]]
    blocked: tuple[str, ...]
    failed: frozenset[str] = frozenset()


def judge(identities: Sequence[Renewable], plan: Plan, state: Iterable[StateResource], *, is_settled: bool) -> Verdict:
    """Judge the plan of these identities' targets, made in this state.

    `is_settled`: the program is that of the commit that was brought up last. Then a certificate's key size may change
    with the renewal, because that change was already brought up.
    """
    resources = {resource["urn"]: resource for resource in state}
    refused: dict[str, list[str]] = defaultdict(list)
    blocked: list[str] = []
    changing: set[str] = set()
    errors = [(error.get("urn", ""), " ".join(error["message"].split())) for error in errors_of(plan)]
    failed = frozenset(identity.name for identity in identities for urn, _ in errors if identity.accounts_for(urn))
    for urn, reason in (*_findings(identities, plan, resources, is_settled=is_settled), *errors):
        accountable = [identity for identity in identities if identity.accounts_for(urn)]
        if reason is None:
            changing.update(identity.name for identity in accountable)
        elif not accountable:
            blocked.append(reason)
        for identity in accountable if reason else ():
            if reason not in refused[identity.name] and (identity.name not in failed or (urn, reason) in errors):
                refused[identity.name].append(str(reason))
    return Verdict(
        renewed=tuple(
            identity for identity in identities if identity.name in changing and identity.name not in refused
        ),
        refused={name: tuple(reasons) for name, reasons in refused.items()},
        blocked=tuple(dict.fromkeys(blocked)),
        failed=failed,
    )


def _findings(
    identities: Sequence[Renewable], plan: Plan, state: Mapping[str, StateResource], *, is_settled: bool
) -> Iterator[tuple[str, str | None]]:
    """The URN of each step with a change, and the reason to refuse it; None for a renewal's step."""
    kinds = {urn: kind for identity in identities for urn, kind in identity.targets.items()}
    steps = {step["urn"]: step for step in plan["steps"]}
    withdrawn = {urn for identity in identities for urn in _withdrawn(identity, steps.get(identity.schedule["urn"]))}
    for step in plan["steps"]:
        if step["op"] == "delete" and step["urn"] in withdrawn:
            yield step["urn"], None
        elif step["op"] not in _NOTHING and not _is_engines_own(step):
            kind = kinds.get(step["urn"])
            yield step["urn"], _refusal(step, kind, state, is_settled=is_settled)


def _withdrawn(identity: Renewable, planned: PlanStep | None) -> Iterator[str]:
    """The URNs of the slots whose certificate the schedule removes."""
    after = planned.get("newState") if planned is not None else None
    inputs = (after or identity.schedule).get("inputs") or {}
    for slot in SLOTS:
        if inputs and not inputs.get(slot) and inputs.get("current") != slot:
            yield from identity.of_slot(slot)


def _is_engines_own(step: PlanStep) -> bool:
    """Whether the step is part of every run: one of the stack itself, or of a provider."""
    kind = type_of(step["urn"])
    return kind == resource_types.STACK or (
        kind.startswith(resource_types.PROVIDER) and step["op"] in _CREATION | _UPDATE
    )


def _refusal(
    step: PlanStep, kind: RenewedType | None, state: Mapping[str, StateResource], *, is_settled: bool
) -> str | None:
    name, operation = name_of(step["urn"]), step["op"]
    if kind is None or operation not in _RULES[kind].operations:
        return f"{operation} {name}"
    if operation in ("delete-replaced", "remove-pending-replace", "discard-replaced"):
        return None  # its creation step is judged
    before = (
        step.get("oldState")
        or state.get(step["urn"])
        or (state.get(other_slot(step["urn"])) if operation in _CREATION else None)
    )
    if before is None:
        # What a certificate needs at Entra ID follows from it, and may have been taken out, or lost by the state.
        is_lost = kind in (RenewedType.REGISTRATION, RenewedType.GATE)
        return None if is_lost else f"{operation} {name}, the first of its kind"
    allowed = _RULES[kind].inputs | (_AS_ISSUED if is_settled and kind is RenewedType.CERTIFICATE else frozenset())
    paths = changed_inputs(before.get("inputs") or {}, (step.get("newState") or before).get("inputs") or {})
    foreign = sorted(
        path for path in paths if not any(path == prefix or path.startswith(f"{prefix}.") for prefix in allowed)
    )
    return f"{', '.join(foreign)} of {name}" if foreign else None


def changed_inputs(before: Mapping[str, Any], now: Mapping[str, Any]) -> set[str]:
    """Paths (`tags.team`, `tags["cost.center"]`) of the inputs that differ, without the engine's `__defaults`."""
    paths = set()
    for key in (before.keys() | now.keys()) - {"__defaults"}:
        old, new = before.get(key), now.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            paths |= {f"{key}{path}" if path[0] == "[" else f"{key}.{path}" for path in changed_inputs(old, new)}
        elif old != new:
            paths.add(f'["{key}"]' if not key or set(key) & set('."[]') else key)
    return paths
