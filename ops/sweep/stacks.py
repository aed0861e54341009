"""What the stacks of a backend still have: everything that their states, outputs included, name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.state import StateResource

_STACK: Final = "pulumi:pulumi:Stack"


@dataclass(frozen=True)
class Stacks:
    """The stacks of a backend.

    Attributes:
        names: of all of them.
        named: every text in the resources of those that could be read, in lower case.
        infra_ids: infrastructure ids of their hosted clusters, and names of their vaults: what HyperShift's names of
            role assignments begin with.
        unreadable: why, by name, for those that could not be read or are half done.
    """

    names: tuple[str, ...]
    named: frozenset[str]
    infra_ids: frozenset[str]
    unreadable: Mapping[str, str]

    @classmethod
    def read(cls, engine: Engine) -> Self:
        """Read the states of all stacks in the backend of `engine`'s; raises CommandError if they cannot be listed."""
        names = sorted({engine.stack, *engine.stacks()})
        named: set[str] = set()
        infra_ids: set[str] = set()
        unreadable: dict[str, str] = {}
        for name in names:
            try:
                state = Engine(name, engine.root, output=engine.output).state()
            except CommandError as error:
                unreadable[name] = str(error)
                continue
            if state["deployment"].get("pending_operations"):
                unreadable[name] = f"a run was killed; `make recover STACK={name}` finishes it"
            resources = state["deployment"].get("resources") or []
            named.update(text.lower() for each in resources for text in _texts(each))
            infra_ids.update(_infra_ids(resources))
        return cls(tuple(names), frozenset(named), frozenset(infra_ids), unreadable)

    def name(self, *identifiers: str) -> bool:
        """Whether a stack names one of these: an ARM id, an object id, a client id."""
        return any(each.lower() in self.named for each in identifiers)


def _texts(resource: StateResource) -> Iterator[str]:
    yield from _strings({key: resource.get(key) for key in ("id", "inputs", "outputs")})


def _strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
            # azuread's ids are paths: `/applications/<object id>`.
            if value.startswith("/") and value.count("/") == len(("", "")):
                yield value.rpartition("/")[2]
        case Mapping():
            for each in value.values():
                yield from _strings(each)
        case list():
            for each in value:
                yield from _strings(each)


def _infra_ids(resources: Sequence[StateResource]) -> Iterator[str]:
    for each in resources:
        if each["type"] != _STACK:
            continue
        outputs = each.get("outputs") or {}
        yield from filter(None, [outputs.get("keyVaultName")])
        for cluster in (outputs.get("hostedClusters") or {}).values():
            yield from filter(None, [(cluster.get("hostedClusterSpec") or {}).get("infraID")])
