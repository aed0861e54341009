"""Reads the expressions of `$filter` that Graph and ARM take (OData 4.01, part 2, section 5.1.1, without arithmetic).

Blanks between words do not count, nor does the letter case of operators and functions. What an operation does with the
terms is its own business: it refuses those that it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

_TOKEN: Final = re.compile(r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<word>[\w./$@-]+)|(?P<sign>[(),:]))")
_COMPARISONS: Final = frozenset({"eq", "ne", "gt", "ge", "lt", "le"})
_NAMED: Final = {"null": None, "true": True, "false": False}

Value: TypeAlias = str | bool | None


class InvalidFilterError(ValueError):
    """An invalid expression; the message names the place."""


@dataclass(frozen=True)
class Path:
    """A member of the resource, `a` or `a/b`."""

    name: str


@dataclass(frozen=True)
class Compared:
    """`member eq 'value'`; `operator` in lower case."""

    member: str
    operator: str
    value: Value


@dataclass(frozen=True)
class OneOf:
    """`member in ('a', 'b')`."""

    member: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Called:
    """`startswith(member, 'a')`; the function's name in lower case."""

    function: str
    arguments: tuple[Path | Value, ...]


@dataclass(frozen=True)
class AnyOf:
    """`member/any(x: …)`: the condition with the members of `x` and `x` itself (as `variable`)."""

    member: str
    variable: str
    condition: Expression


@dataclass(frozen=True)
class Negated:
    """`not …`."""

    condition: Expression


@dataclass(frozen=True)
class Joined:
    """Conditions with `and` or `or` between them."""

    operator: str
    conditions: tuple[Expression, ...]


Expression: TypeAlias = Compared | OneOf | Called | AnyOf | Negated | Joined


def parse(text: str) -> Expression:
    """The expression that a `$filter` has; raises InvalidFilterError."""
    reader = _Reader(list(_tokens(text)))
    expression = reader.expression()
    if reader.left:
        raise InvalidFilterError(f"'{reader.left}' is not expected")
    return expression


def terms(expression: Expression) -> tuple[Expression, ...]:
    """The conditions that all have to hold."""
    is_all = isinstance(expression, Joined) and expression.operator == "and"
    return expression.conditions if isinstance(expression, Joined) and is_all else (expression,)


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise InvalidFilterError(f"'{text[at:].strip()}' is not expected")
        yield match[0].strip()
        at = match.end()


class _Reader:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens

    @property
    def left(self) -> str:
        """The unread rest."""
        return " ".join(self._tokens)

    def expression(self) -> Expression:
        return self._joined("or", lambda: self._joined("and", self._term))

    def _joined(self, operator: str, read: Callable[[], Expression]) -> Expression:
        operands = [read()]
        while self._next().lower() == operator:
            self._take()
            operands.append(read())
        return operands[0] if len(operands) == 1 else Joined(operator, tuple(operands))

    def _term(self) -> Expression:
        if self._next() == "(":
            self._take("(")
            inner = self.expression()
            self._take(")")
            return inner
        if self._next().lower() == "not":
            self._take()
            return Negated(self._term())
        name = self._member()
        if self._next() == "(":
            self._take("(")
            return self._lambda(name) if name.lower().endswith("/any") else self._called(name)
        operator = self._take().lower()
        if operator == "in":
            self._take("(")
            return OneOf(name, self._values())
        if operator not in _COMPARISONS:
            raise InvalidFilterError(f"'{operator}' is not a comparison")
        return Compared(name, operator, self._value())

    def _lambda(self, name: str) -> Expression:
        variable = self._member()
        self._take(":")
        condition = self.expression()
        self._take(")")
        return AnyOf(name[: -len("/any")], variable, condition)

    def _called(self, name: str) -> Expression:
        arguments: list[Path | Value] = []
        while self._next() != ")":
            is_value = self._next().startswith("'") or self._next().lower() in _NAMED
            arguments.append(self._value() if is_value else Path(self._member()))
            if self._next() != ")":
                self._take(",")
        self._take(")")
        return Called(name.lower(), tuple(arguments))

    def _values(self) -> tuple[Value, ...]:
        values = [self._value()]
        while self._next() == ",":
            self._take(",")
            values.append(self._value())
        self._take(")")
        return tuple(values)

    def _value(self) -> Value:
        token = self._take()
        if token.startswith("'"):
            return token[1:-1].replace("''", "'")
        if not token[:1].isalnum():
            raise InvalidFilterError(f"a value is expected, not '{token}'")
        return _NAMED.get(token.lower(), token)

    def _member(self) -> str:
        token = self._take()
        if not re.match(r"[A-Za-z_@]", token):
            raise InvalidFilterError(f"a name is expected, not '{token}'")
        return token

    def _next(self) -> str:
        return self._tokens[0] if self._tokens else ""

    def _take(self, expected: str = "") -> str:
        if not self._tokens or (expected and self._tokens[0] != expected):
            raise InvalidFilterError(f"{f'{expected!r}' if expected else 'more'} is expected, not '{self._next()}'")
        return self._tokens.pop(0)
