"""One check of the doctor, the fixes that several use, and the first broken check of each chain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from identity import yaml_text
from identity.symptoms import GENERIC_PLACEHOLDERS, Symptom
from ops.world.expected import Identity, StateRole
from ops.world.reader import EVERYTHING, Subject
from ops.world.seen import NotReadError, Part, StackWorld, entry, known


class Stage(StrEnum):
    """The stages in order. `configuration` to `proof-call` are those of the identity flow.

    An identity has a certificate (`vault` to `document`) or trusts service accounts (`federation`).
    """

    ENGINE = "engine"
    BACKEND = "backend"
    ACCESS = "access"
    APPLICATIONS = "applications"
    CONFIGURATION = "configuration"
    VAULT = "vault"
    CLASS = "class"
    MOUNT = "mount"
    VOLUME = "volume"
    DOCUMENT = "document"
    FEDERATION = "federation"
    SIGN_IN = "sign-in"
    PROOF_CALL = "proof-call"
    HOSTED_CLUSTERS = "hosted-clusters"

    @property
    def is_in_the_chain(self) -> bool:
        """Whether a fault of this stage explains those of later stages."""
        return self not in (Stage.BACKEND, Stage.ACCESS, Stage.APPLICATIONS)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault: its evidence and its fix. `cluster` narrows one of the whole stack."""

    evidence: str
    fix: str
    cluster: str | None = None


FINDINGS: Final[Mapping[str, Mapping[str, str]]] = yaml_text.load(
    Path(__file__).with_name("findings.yaml").read_text(encoding="utf-8")
)


def fault(world: StackWorld, finding: str, *, cluster: str | None = None, **words: object) -> Fault:
    """The fault of a row of `findings.yaml`, with the words for the braces in its texts."""
    known = {"stack": world.stack, "up": world.command("up"), "recover": world.command("recover"), **words}
    found, fix = (FINDINGS[finding][text].format(repair=world.repair, **known) for text in ("found", "fix"))
    return Fault(evidence=found, fix=fix, cluster=cluster)


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check. `places` lists its subjects, `find` the faults of one; both raise NotReadError.

    `needs` are the parts that it reads, the main one first. A fault of it makes the parts in `hides` unreadable.
    """

    stage: Stage
    name: str
    needs: tuple[Part, ...]
    places: Callable[[StackWorld], Iterable[Subject]]
    find: Callable[[StackWorld, Any], Iterator[Fault]]
    hides: Set[Part] = frozenset()


P = TypeVar("P", bound=Subject)
_Finder: TypeAlias = Callable[[StackWorld, P], Iterator[Fault]]


def _named(find: Callable[..., Iterator[Fault]]) -> str:
    """The name of a check in the report: that of its function, in kebab case."""
    return find.__name__.strip("_").replace("_", "-")


def of_stack(
    stage: Stage, *needs: Part, hides: Set[Part] = frozenset()
) -> Callable[[Callable[[StackWorld], Iterator[Fault]]], Check]:
    """Makes a function the check of a whole stack."""
    return lambda find: Check(
        stage=stage,
        name=_named(find),
        needs=needs,
        hides=hides,
        places=lambda _: (EVERYTHING,),
        find=lambda w, _: find(w),
    )


def of_each(places: Callable[[StackWorld], Iterable[P]]) -> Callable[..., Callable[[_Finder[P]], Check]]:
    """Makes a function a check of each such place, with its stage and the parts that it reads besides the state."""

    def declare(stage: Stage, *needs: Part) -> Callable[[_Finder[P]], Check]:
        return lambda find: Check(stage=stage, name=_named(find), needs=(*needs, Part.STATE), places=places, find=find)

    return declare


of_cluster = of_each(lambda world: known(world.state).clusters)
of_identity = of_each(lambda world: known(world.state).identities)
"""Of each control-plane identity."""
of_federated = of_each(lambda world: known(world.state).guests)
"""Of each managed identity that service accounts of a hosted cluster use."""
of_principal = of_each(lambda world: known(world.state).principals)
"""Of each identity of both planes."""


class CheckStatus(StrEnum):
    """The result of a check. `skipped`: it failed or was not possible because of an earlier stage of its chain."""

    OK = "ok"
    BROKEN = "broken"
    SKIPPED = "skipped"
    NOT_CHECKED = "not-checked"


class ExitCode(IntEnum):
    """The exit codes of `idstack doctor`; 2 is wrong usage."""

    SOUND = 0
    BROKEN = 1
    NOT_CHECKED = 3  # nothing is broken, but some checks were not possible


@dataclass(frozen=True)
class CheckResult:
    """The result of a check in one place: its evidence, or why it was not possible, and the fix of a fault."""

    cluster: str | None
    identity: str | None
    stage: Stage
    check: str
    status: CheckStatus
    evidence: str = ""
    fix: str = ""

    def to_json(self) -> dict[str, str | None]:
        return dict(vars(self))


def diagnose(world: StackWorld, checks: Iterable[Check]) -> list[CheckResult]:
    """The results of every check, in their order, one for each fault."""
    results: list[CheckResult] = []
    hidden: set[Part] = set()
    for check in checks:
        # All faults of one check are shown.
        broken = tuple(
            result for result in results if result.status is CheckStatus.BROKEN and result.stage.is_in_the_chain
        )
        own = list(_results(world, check, broken, is_hidden=not hidden.isdisjoint(check.needs)))
        if any(result.status is CheckStatus.BROKEN for result in own):
            hidden |= check.hides
        results += own
    return results


def exit_code(results: Iterable[CheckResult]) -> ExitCode:
    statuses = {result.status for result in results}
    if CheckStatus.BROKEN in statuses:
        return ExitCode.BROKEN
    return ExitCode.NOT_CHECKED if CheckStatus.NOT_CHECKED in statuses else ExitCode.SOUND


def _results(
    world: StackWorld, check: Check, broken: tuple[CheckResult, ...], *, is_hidden: bool
) -> Iterator[CheckResult]:
    """The results of one check; `is_hidden`: an earlier fault hides the parts that it needs."""

    def unmade(cluster: str | None, identity: str | None) -> CheckStatus:
        is_explained = is_hidden or _is_explained(broken, cluster, identity)
        return CheckStatus.SKIPPED if is_explained else CheckStatus.NOT_CHECKED

    def result(place: Subject, status: CheckStatus, evidence: str = "", fix: str = "") -> CheckResult:
        return CheckResult(place.cluster, place.identity, check.stage, check.name, status, evidence, fix)

    try:
        places = list(check.places(world))
    except NotReadError as reason:
        yield result(EVERYTHING, unmade(None, None), str(reason))
        return
    for place in places:
        try:
            faults = list(check.find(world, place))
        except NotReadError as reason:
            status = unmade(place.cluster, place.identity)
            missing = f" (requires {check.needs[0]})" if reason.is_forbidden else ""
            yield result(place, status, f"{reason}{missing}")
            continue
        if not faults:
            yield result(place, CheckStatus.OK)
        for fault in faults:
            cluster = fault.cluster or place.cluster
            is_explained = _is_explained(broken, cluster, place.identity)
            status = CheckStatus.SKIPPED if is_explained else CheckStatus.BROKEN
            yield replace(result(place, status, fault.evidence, fault.fix), cluster=cluster)


def _is_explained(broken: Iterable[CheckResult], cluster: str | None, identity: str | None) -> bool:
    """Whether a broken check explains a fault in this place.

    A fault of the stack, or of a cluster, explains those of its parts. A fault of any identity explains one of its
    cluster.
    """
    return any(
        result.cluster is None
        or (result.cluster == cluster and (identity is None or result.identity in (None, identity)))
        for result in broken
    )


def role_fault(world: StackWorld, role: StateRole) -> str:
    """What differs in ARM from an assignment of the state; empty if nothing does. Raises NotReadError."""
    assignment = entry(world.roles, role.id)
    name = f"the role assignment {role.resource} ({role.name}) at {role.scope}"
    if assignment is None:
        return f"{name} does not exist"
    if assignment.principal_id != role.principal_id:
        return f"{name} is of the principal {assignment.principal_id}; the stack gave it to {role.principal_id}"
    if assignment.role != role.role:
        return f"{name} has the role {assignment.role}; the stack gave it {role.role}"
    return ""


def renewal(world: StackWorld, identity: Identity) -> str:
    """The command, if the stack issues the identity's certificates; otherwise the steps with the other tool."""
    if identity.generation is None:
        return f"issue the credential again with the tool that issued it, then {world.command('up')}"
    return world.command("rotate", "--identity", f"{identity.cluster}/{identity.identity}", "--force")


def of_cluster_side(world: StackWorld, name: str, ours: str) -> str:
    """The fix of an object in the control plane's namespace: `ours` if the stack creates it."""
    if known(world.state).cluster_side == "stack":
        return ours
    return f"check the log of HyperShift's operators: HyperShift creates {name}"


def of_symptom(world: StackWorld, identity: Identity, symptom: Symptom) -> str:
    """The fix of a symptom, for this identity. Raises NotReadError."""
    state = known(world.state)
    return symptom.fix.format(
        up=world.command("up"),
        repair=world.repair,
        objects=of_cluster_side(world, "it", world.repair),
        recover=world.command("recover"),
        renewal=renewal(world, identity),
        rotate=world.command("rotate", "--identity", f"{identity.cluster}/{identity.identity}").strip("`"),
        attach=f"`{state.attach_command}`" if state.attach_command else GENERIC_PLACEHOLDERS["attach"],
        client=identity.client_id,
        secret=f"--vault-name {state.vault_name} --name {identity.secret}",
    )
