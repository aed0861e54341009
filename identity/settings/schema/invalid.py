"""A placeholder for refused values, so that rules over the rest of the configuration can still be checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from typing import Final, NoReturn, TypeVarTuple

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
