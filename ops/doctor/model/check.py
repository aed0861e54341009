"""A check: its places, the parts of the world that it needs, and its faults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, TypeAlias, TypeVar

from ops.world.expected import StackState
from ops.world.seen import Part, known
from ops.world.stack_world import StackWorld


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


class Place(Protocol):
    """The subject of a check: a stack (both None), a hosted cluster, or one of its identities."""

    @property
    def cluster(self) -> str | None: ...
    @property
    def identity(self) -> str | None: ...


@dataclass(frozen=True)
class WholeStack:
    """The stack itself."""

    cluster: None = None
    identity: None = None


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault: its evidence and its fix. `cluster` narrows one of the whole stack."""

    evidence: str
    fix: str
    cluster: str | None = None


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check. `places` lists its subjects, `find` the faults of one; both raise NotReadError.

    `needs` are the parts that it reads, the main one first. A fault of it makes the parts in `hides` unreadable.
    """

    stage: Stage
    name: str
    needs: tuple[Part, ...]
    places: Callable[[StackWorld], Iterable[Place]]
    find: Callable[[StackWorld, Any], Iterator[Fault]]
    hides: frozenset[Part] = frozenset()


def of_stack(
    stage: Stage,
    name: str,
    needs: tuple[Part, ...],
    find: Callable[[StackWorld, WholeStack], Iterator[Fault]],
    hides: Iterable[Part] = (),
) -> Check:
    """A check of the whole stack."""
    return Check(
        stage=stage, name=name, needs=needs, places=lambda _: (WholeStack(),), find=find, hides=frozenset(hides)
    )


P = TypeVar("P", bound=Place)
_Finder: TypeAlias = Callable[[StackWorld, P], Iterator[Fault]]


def _of_each(
    places: Callable[[StackState], Iterable[P]],
) -> Callable[[Stage, str, tuple[Part, ...], _Finder[P]], Check]:
    """Makes checks of each such place of a stack: of its stage, with its name and the parts that it reads."""

    def check(stage: Stage, name: str, needs: tuple[Part, ...], find: _Finder[P]) -> Check:
        needs = (*needs, Part.STATE)
        return Check(stage=stage, name=name, needs=needs, places=lambda world: places(known(world.state)), find=find)

    return check


of_cluster = _of_each(lambda state: state.clusters)
of_identity = _of_each(lambda state: state.identities)
"""Of each control-plane identity."""
of_federated = _of_each(lambda state: state.guests)
"""Of each managed identity that service accounts of a hosted cluster use."""
of_principal = _of_each(lambda state: state.principals)
"""Of each identity of both planes."""
