"""The base of every model of the configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVarTuple

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

_Arguments = TypeVarTuple("_Arguments")


class RefusedValueError(Exception):
    """A rule needed a value that was refused already: a second complaint about it would not help."""


def unless_refused() -> AbstractContextManager[None]:
    """End a rule, or one step of it, at the first value that was refused already."""
    return suppress(RefusedValueError)


def apply(rules: Iterable[Callable[[*_Arguments], None]], *arguments: *_Arguments) -> None:
    """Apply every rule; one that reads a refused value ends there."""
    for rule in rules:
        with unless_refused():
            rule(*arguments)


@dataclass(frozen=True)
class FilledIn:
    """Metadata of a key whose default is not a constant: `default` describes it, for the reference."""

    default: str


class Model(BaseModel):
    """Frozen, camelCase in the stack file, no unknown keys. It lacks a field whose value was refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, hide_input_in_errors=True)

    if not TYPE_CHECKING:  # for mypy every model would have every attribute

        def __getattr__(self, name: str) -> Any:
            if name in type(self).model_fields:
                raise RefusedValueError
            return super().__getattr__(name)
