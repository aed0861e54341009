"""Conditions of role assignments (Azure ABAC, version 2.0): parsed when they are written, evaluated at each request.

What is known is what Microsoft documents for role assignments that are delegated (azure-docs
`role-based-access-control/conditions-format.md` and `conditions-authorization-actions-attributes.md`): ActionMatches,
and the three attributes of a role assignment with their operators. Everything else is refused as Azure refuses it, so
a condition that is accepted here is evaluated as a whole.

Own rules, where the documents are silent: a comparison with an attribute that a request does not have is false,
whatever its operator; AND and OR side by side need parentheses, as the page on the format asks for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeAlias

from localcloud.core.arm_ids import is_uuid

# Longest condition (azure-docs `conditions-faq.md`).
MAX_LENGTH: Final = 8 * 1024
# Deeper than any real condition; protects the interpreter's stack.
_MAX_DEPTH: Final = 50

REQUEST: Final = "Request"
RESOURCE: Final = "Resource"
_ATTRIBUTE: Final = "Microsoft.Authorization/roleAssignments:"


class InvalidConditionError(ValueError):
    """Text that is not a condition, or uses something unknown."""


@dataclass(frozen=True)
class Facts:
    """The facts for a condition: the action, and attributes (`PrincipalType`: `User`) by source."""

    action: str
    request: Mapping[str, str]
    resource: Mapping[str, str]

    def value(self, source: str, attribute: str) -> str | None:
        """The attribute's value, None if the request or the resource has none."""
        return (self.request if source == REQUEST else self.resource).get(attribute)


@dataclass(frozen=True)
class ActionMatches:
    """Whether the action matches a pattern; `*` is any text."""

    pattern: str

    def holds(self, facts: Facts) -> bool:
        return action_matches(self.pattern, facts.action)


@dataclass(frozen=True)
class Comparison:
    """An attribute, compared with values; `attribute` and `operator` in Azure's own letter case."""

    source: str
    attribute: str
    operator: str
    values: tuple[str, ...]

    def holds(self, facts: Facts) -> bool:
        actual = facts.value(self.source, self.attribute)
        if actual is None:
            return False
        is_among = actual.lower() in {value.lower() for value in self.values}
        return is_among is not ("Not" in self.operator)


@dataclass(frozen=True)
class Not:
    operand: Expression

    def holds(self, facts: Facts) -> bool:
        return not self.operand.holds(facts)


@dataclass(frozen=True)
class Junction:
    """Several expressions, joined by AND or by OR (`word`)."""

    word: str
    operands: tuple[Expression, ...]

    def holds(self, facts: Facts) -> bool:
        return (all if self.word == "AND" else any)(operand.holds(facts) for operand in self.operands)


Expression: TypeAlias = ActionMatches | Comparison | Not | Junction


def _guid(text: str) -> str:
    if not is_uuid(text):
        raise InvalidConditionError(f"{text!r} is not a GUID")
    return text


_PRINCIPAL_TYPES: Final = {name.lower(): name for name in ("User", "Group", "ServicePrincipal")}


def _principal_type(text: str) -> str:
    if text.lower() not in _PRINCIPAL_TYPES:
        raise InvalidConditionError(f"{text!r} is not a principal type")
    return text


@dataclass(frozen=True)
class _Attribute:
    """An attribute of a role assignment: its name, its operators, and what its values are."""

    name: str
    operators: tuple[str, ...]
    check: Callable[[str], str]


_GUIDS: Final = ("GuidEquals", "GuidNotEquals", "ForAnyOfAnyValues:GuidEquals", "ForAnyOfAllValues:GuidNotEquals")
_STRINGS: Final = (
    "StringEqualsIgnoreCase",
    "StringNotEqualsIgnoreCase",
    "ForAnyOfAnyValues:StringEqualsIgnoreCase",
    "ForAnyOfAllValues:StringNotEqualsIgnoreCase",
)
_ATTRIBUTES: Final = {
    f"{_ATTRIBUTE}{attribute.name}".lower(): attribute
    for attribute in (
        _Attribute("RoleDefinitionId", _GUIDS, _guid),
        _Attribute("PrincipalId", _GUIDS, _guid),
        _Attribute("PrincipalType", _STRINGS, _principal_type),
    )
}

_TOKEN: Final = re.compile(
    r"""\s*(?:
      (?P<string>'[^']*')
    | (?P<attribute>@[A-Za-z]+\[[^\]]*\])
    | (?P<symbol>&&|\|\||[!(){},])
    | (?P<word>[A-Za-z0-9][A-Za-z0-9:.\-]*)
    )""",
    re.VERBOSE,
)
_AND: Final = frozenset({"and", "&&"})
_OR: Final = frozenset({"or", "||"})
_NOT: Final = frozenset({"not", "!"})


@cache
def parse(text: str) -> Expression:
    """The condition; raises InvalidConditionError for everything else."""
    if len(text) > MAX_LENGTH:
        raise InvalidConditionError(f"{len(text)} characters; {MAX_LENGTH} are the most")
    parser = _Parser(_tokens(text))
    expression = parser.expression(0)
    parser.end()
    return expression


def _tokens(text: str) -> list[str]:
    tokens, position, stripped = [], 0, text.rstrip()
    while position < len(stripped):
        match = _TOKEN.match(stripped, position)
        if match is None:
            raise InvalidConditionError(f"nothing known begins at {stripped[position : position + 20]!r}")
        tokens.append(match[0].strip())
        position = match.end()
    return tokens


class _Parser:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._position = 0

    def expression(self, depth: int) -> Expression:
        if depth > _MAX_DEPTH:
            raise InvalidConditionError("too many parentheses")
        operands = [self._operand(depth)]
        if self._next() not in _AND | _OR:
            return operands[0]
        words = _AND if self._next() in _AND else _OR
        while self._next() in words:
            self._take()
            operands.append(self._operand(depth))
        if self._next() in _AND | _OR:
            raise InvalidConditionError("AND and OR side by side need parentheses")
        return Junction("AND" if words is _AND else "OR", tuple(operands))

    def end(self) -> None:
        if self._next():
            raise InvalidConditionError(f"{self._next()!r} is one too many")

    def _operand(self, depth: int) -> Expression:
        if self._next() in _NOT:
            self._take()
            if depth > _MAX_DEPTH:
                raise InvalidConditionError("too many negations")
            return Not(self._operand(depth + 1))
        if self._next() == "(":
            self._take()
            expression = self.expression(depth + 1)
            self._expect(")")
            return expression
        if self._next() == "actionmatches":
            self._take()
            self._expect("{")
            pattern = _string(self._take())
            self._expect("}")
            return ActionMatches(pattern)
        return self._comparison()

    def _comparison(self) -> Comparison:
        match = re.fullmatch(r"@([A-Za-z]+)\[(.*)\]", self._take())
        if match is None:
            raise InvalidConditionError("an attribute, ActionMatches or a parenthesis is expected")
        source = {source.lower(): source for source in (REQUEST, RESOURCE)}.get(match[1].lower())
        attribute = _ATTRIBUTES.get(match[2].lower())
        if source is None or attribute is None:
            raise InvalidConditionError(f"the attribute {match[0]} is not known")
        asked = self._take()
        operator = {operator.lower(): operator for operator in attribute.operators}.get(asked.lower())
        if operator is None:
            raise InvalidConditionError(f"{attribute.name} has no operator {asked!r}")
        values = self._listed() if operator.startswith("For") else (self._take(),)
        plain = (
            _string(value) if value.startswith("'") or attribute.operators is _STRINGS else value for value in values
        )
        return Comparison(source, attribute.name, operator, tuple(map(attribute.check, plain)))

    def _listed(self) -> tuple[str, ...]:
        """`{a, b}`, never empty."""
        self._expect("{")
        values = [self._take()]
        while self._next() == ",":
            self._take()
            values.append(self._take())
        self._expect("}")
        return tuple(values)

    def _next(self) -> str:
        """The next token in lower case, empty at the end."""
        return self._tokens[self._position].lower() if self._position < len(self._tokens) else ""

    def _take(self) -> str:
        if not self._next():
            raise InvalidConditionError("it ends too early")
        self._position += 1
        return self._tokens[self._position - 1]

    def _expect(self, token: str) -> None:
        if self._take() != token:
            raise InvalidConditionError(f"{token!r} is expected")


def _string(token: str) -> str:
    if len(token) < len("''") or token[0] != "'":
        raise InvalidConditionError(f"{token!r} is not a string in single quotes")
    return token[1:-1]


def action_matches(pattern: str, action: str) -> bool:
    """Whether a pattern of a role or of a condition, where `*` is any text, names the action in any letter case."""
    return _compiled(pattern).fullmatch(action) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in pattern.split("*")), re.IGNORECASE)
