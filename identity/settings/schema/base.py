"""The base of every model of the configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any, Final, NoReturn, Self, TypeVarTuple

from pydantic import (
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel

_Arguments = TypeVarTuple("_Arguments")


class _DependsOnInvalidError(Exception):
    """A rule needed a value that was refused already, so there is nothing more to report."""


class _Invalid:
    """Every use of it ends the rule: a second complaint about the same value would not help."""

    def _end(self, *_: object) -> NoReturn:
        raise _DependsOnInvalidError

    __getattr__ = __getitem__ = __iter__ = __contains__ = __len__ = __bool__ = __hash__ = __eq__ = __ne__ = _end
    __lt__ = __le__ = __gt__ = __ge__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __str__ = _end


INVALID: Final = _Invalid()


def unless_refused() -> AbstractContextManager[None]:
    """End a rule, or one step of it, at the first value that was refused already."""
    return suppress(_DependsOnInvalidError)


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
    """Frozen, camelCase in the stack file, no unknown keys; `INVALID` may replace every value."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, hide_input_in_errors=True)

    @model_validator(mode="wrap")
    @classmethod
    def _let_invalid_models_pass(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Any:
        return value if value is INVALID else handler(value)

    @field_validator("*", mode="wrap")
    @classmethod
    def _let_invalid_values_pass(cls, value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        return value if value is INVALID else handler(value)
