"""A check: what it looks at, what it needs to see, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from ops.world.expected import Cluster, FederatedIdentity, GrantedPrincipal, Identity
from ops.world.parts import Part
from ops.world.seen import known
from ops.world.stack_world import StackWorld


class Stage(StrEnum):
    """Where a check belongs, in order. `configuration` to `proof-call` are the stages of the identity flow.

    An identity has a certificate (`vault` to `document`) or trusts service accounts (`federation`).
    """

    ENGINE = "engine"
    BACKEND = "backend"
    ACCESS = "access"
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
        """Whether what is broken there explains what is wrong behind it: without its state a stack has nothing else."""
        return self not in (Stage.BACKEND, Stage.ACCESS)


class Place(Protocol):
    """What a check is about: a stack (both None), a hosted cluster, or one of its identities."""

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
    """What a check found: the evidence, and what fixes it. `cluster` narrows a finding about the whole stack."""

    evidence: str
    fix: str
    cluster: str | None = None


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check. `places` lists what it is about, `find` what is wrong there; both raise NotReadError.

    `needs` are the parts that must be read for it; the first is the one that it is about. While it finds something, the
    parts in `hides` cannot be read.
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
    """A check that is made once."""
    return Check(
        stage=stage, name=name, needs=needs, places=lambda _: (WholeStack(),), find=find, hides=frozenset(hides)
    )


def of_cluster(
    stage: Stage, name: str, needs: tuple[Part, ...], find: Callable[[StackWorld, Cluster], Iterator[Fault]]
) -> Check:
    """A check of each hosted cluster."""
    needs = (*needs, Part.STATE)
    return Check(stage=stage, name=name, needs=needs, places=lambda world: known(world.state).clusters, find=find)


def of_principal(
    stage: Stage, name: str, needs: tuple[Part, ...], find: Callable[[StackWorld, GrantedPrincipal], Iterator[Fault]]
) -> Check:
    """A check of each identity of each hosted cluster, of both planes."""
    needs = (*needs, Part.STATE)
    return Check(stage=stage, name=name, needs=needs, places=lambda world: known(world.state).principals, find=find)


def of_federated(
    stage: Stage, name: str, needs: tuple[Part, ...], find: Callable[[StackWorld, FederatedIdentity], Iterator[Fault]]
) -> Check:
    """A check of each managed identity that service accounts of a hosted cluster use."""
    needs = (*needs, Part.STATE)
    return Check(stage=stage, name=name, needs=needs, places=lambda world: known(world.state).guests, find=find)


def of_identity(
    stage: Stage, name: str, needs: tuple[Part, ...], find: Callable[[StackWorld, Identity], Iterator[Fault]]
) -> Check:
    """A check of each control-plane identity of each hosted cluster."""
    needs = (*needs, Part.STATE)
    return Check(stage=stage, name=name, needs=needs, places=lambda world: known(world.state).identities, find=find)
