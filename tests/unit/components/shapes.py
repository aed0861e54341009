"""Configurations that together have every choice of every key on which an object of the management cluster can depend.

The choices come from the settings' own schema: each word, `true` and `false`, and each optional key once there and once
left out. `shapes.yaml` has what a choice needs beside it; as many choices as fit are put into one configuration.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, get_args, get_origin

from identity.catalogue import CONTROL_PLANE, DATA_PLANE, OPTIONAL
from identity.clouds import CLOUDS
from identity.settings import ConfigurationError
from identity.settings.schema.base import FilledIn
from identity.settings.schema.model import Settings
from identity.settings.schema.schema_node import SchemaNode
from localcloud.testing.hosted_clusters import ABSENT, changed
from tests.unit import cases
from tests.unit.components import world
from tests.unit.components.configurations import with_clusters

PRESENT: Final = object()
# What Azure alone has, how the stack gets into the management cluster, and what the run itself does.
_ELSEWHERE: Final = frozenset(
    {
        *("vault", "keyVaultUser", "keyVaultUserScope", "managementCluster", "sharedStack", "tags"),
        "backend",
        *("protect", "credentials", "allowCredentialLoss", "policyWaivers"),
    }
)
# A file has what the key beside it has, and its content is read from the disk.
_FILES: Final = (".file", ".credential")
# These decide roles in Azure alone.
_OF_ROLES: Final = (".customRole", ".routeTableID", ".natGatewayID")
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "identities": tuple(row.field for row in CONTROL_PLANE),
    "dataPlaneIdentities": tuple(row.field for row in DATA_PLANE),
}


@dataclass(frozen=True)
class Choice:
    """A value of a key, by its dotted path: a word, a boolean, `PRESENT` or `ABSENT`. `is_default`: if left out."""

    path: str
    value: Any
    is_default: bool = False

    def __str__(self) -> str:
        words = {id(PRESENT): "there", id(ABSENT): "left out"}
        return f"{self.path}: {words.get(id(self.value), self.value)}"

    def is_in(self, configuration: Mapping[str, Any]) -> bool:
        """Whether the configuration has it."""
        *above, key = self.path.split(".")
        place: Any = configuration
        for step in above:
            place = _step(place, step)
        found = _step(place, key)
        if place is ABSENT:
            return False
        if self.value is PRESENT:
            return found is not ABSENT
        return found == self.value or (found is ABSENT and self.is_default)


def choices() -> Iterator[Choice]:
    """Every choice, in the order of the keys."""
    yield from (Choice("cloud", name) for name in CLOUDS)
    yield from _choices(SchemaNode(Settings), "")


def _choices(node: SchemaNode, path: str) -> Iterator[Choice]:
    if node.model is None:
        arguments = get_args(node.annotation)
        if get_origin(node.annotation) is tuple:
            yield from _choices(SchemaNode.of(arguments[0]), f"{path}.0")
        elif get_origin(node.annotation) is dict:
            for name in _NAMES.get(path.rpartition(".")[2], ()):
                yield from _choices(SchemaNode.of(arguments[1]), f"{path}.{name}")
        return
    for field in node.model.model_fields.values():
        at = f"{path}.{field.alias}" if path else str(field.alias)
        if at in _ELSEWHERE or at.endswith((*_FILES, *_OF_ROLES)):
            continue
        below = SchemaNode.of(field.annotation, field.metadata)
        words = below.choices or ((True, False) if below.annotation is bool else ())
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        yield from (Choice(at, word, is_default=word == default) for word in words)
        may_be_left_out = not field.is_required() or any(isinstance(mark, FilledIn) for mark in field.metadata)
        if may_be_left_out and (not words or default is None):
            yield from (Choice(at, PRESENT), Choice(at, ABSENT, is_default=True))
        yield from _choices(below, at)


@cache
def shapes() -> tuple[dict[str, dict[str, Any]], list[Choice]]:
    """The configurations by name, and the choices that none of them has."""
    found: dict[str, dict[str, Any]] = {}
    missing = list(choices())
    rounds = 0
    while missing:
        before = len(missing)
        rounds += 1
        for name, base in _BASES.items():
            shape = _with(base, missing)
            left = [choice for choice in missing if not choice.is_in(shape)]
            if len(left) < len(missing):
                found[f"{name}-{rounds}"] = shape
            missing = left
        if len(missing) == before:
            break
    return found, missing


def _with(base: dict[str, Any], wanted: list[Choice]) -> dict[str, Any]:
    """The base with as many of these choices as the settings take, one at a place."""
    shape = base
    taken: set[str] = {choice.path for choice in wanted if choice.is_in(shape)}
    for choice in wanted:
        if choice.path in taken or choice.value is PRESENT:
            continue
        try:
            candidate = changed(shape, choice.path, choice.value)
        except (KeyError, IndexError, TypeError):
            continue
        if _is_valid(candidate):
            shape = candidate
            taken.add(choice.path)
    return shape


def _is_valid(configuration: dict[str, Any]) -> bool:
    try:
        world.settings(**configuration)
    except ConfigurationError:
        return False
    return True


def _step(place: Any, key: str) -> Any:
    if isinstance(place, Mapping):
        return place.get(key, ABSENT)
    if isinstance(place, list) and key.isdigit() and int(key) < len(place):
        return place[int(key)]
    return ABSENT


# The names of what a table or a list of `shapes.yaml` may have.
_EACH: Final = {
    **_NAMES,
    "workloadIdentities": tuple(row.field for row in CONTROL_PLANE if row.workload is not None),
    "managedIdentities": tuple(row.field for row in OPTIONAL),
}


def _expanded(value: Any, names: tuple[str, ...] = ()) -> Any:
    match value:
        case {"<each>": part}:
            return {name: json.loads(json.dumps(part).replace("<field>", name)) for name in names}
        case ["<each>"]:
            return list(names)
        case dict():
            return {key: _expanded(part, _EACH.get(key, ())) for key, part in value.items()}
    return value


_BASES: Final[Mapping[str, dict[str, Any]]] = {
    name: with_clusters(_expanded(shape))
    for name, shape in cases.read(Path(__file__).with_name("shapes.yaml"), vars(world)).items()
}
