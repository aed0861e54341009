"""The report of a refused configuration: every problem with place, found value, accepted values and fix."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pydantic import BaseModel

# A place in the configuration: keys and list indexes from the top, as the stack file spells them.
Place: TypeAlias = tuple[str | int, ...]

NAMESPACE: Final = "idstack"
# The engine's CLI, with the backend, home and plugins of the stack.
CLI: Final = ".venv/bin/idstack pulumi --"
_LONGEST_SHOWN: Final = 160


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One refused value. `rule` is the id of the rule it breaks, stable for tests; `found` never shows a secret."""

    place: Place
    rule: str
    found: str
    accepted: str
    fix: str

    @property
    def heading(self) -> str:
        """The place, as a report names it."""
        return f"{'' if ':' in str(self.place[0]) else f'{NAMESPACE}:'}{path_of(self.place)}"

    def __str__(self) -> str:
        return f"{self.heading}\n  found:    {self.found}\n  accepted: {self.accepted}\n  fix:      {self.fix}"


def report_of(subject: str, problems: Sequence[Problem]) -> str:
    """The report that `subject` is refused, with every problem."""
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    report = "\n\n".join([f"{subject} has {count}; nothing was changed.", *map(str, problems)])
    # JSON and YAML can spell halves of characters (\ud800), which no terminal takes.
    return report.encode("utf-8", "backslashreplace").decode("utf-8")


class ConfigurationError(Exception):
    """The configuration of the stack is refused; `str()` is the whole report."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(report_of("The stack's configuration", self.problems))


def path_of(place: Place) -> str:
    """`hostedClusters[0].vnetID`, the form that `pulumi config set --path` takes; a key alone stays as it is."""
    if len(place) == 1:
        return str(place[0])
    path = ""
    for step in place:
        if isinstance(step, int):
            path += f"[{step}]"
        elif re.fullmatch(r"[\w-]+", step):
            path += f".{step}" if path else step
        else:
            path += f"[{json.dumps(step, ensure_ascii=False)}]"
    return path


def value_at(document: Any, place: Place) -> Any:
    """The value at a place in a document of JSON or YAML, or in settings; None without one."""
    for step in place:
        if isinstance(document, BaseModel):
            names = {info.alias: name for name, info in type(document).model_fields.items()}
            document = getattr(document, names[str(step)])
        elif isinstance(document, Mapping):
            document = document.get(step)
        elif isinstance(document, list | tuple) and isinstance(step, int) and step < len(document):
            document = document[step]
        else:
            return None
    return document


def to_set(place: Place, value: str, *, options: str = "") -> str:
    """The command that sets a value, in backticks; placeholders are in angle brackets."""
    return _command("set", options, place, value)


def to_remove(place: Place) -> str:
    """The command that removes a value, in backticks."""
    return _command("rm", "", place, "")


def _command(verb: str, options: str, place: Place, value: str) -> str:
    path = path_of(place)
    quoted = path if re.fullmatch(r"[\w.-]+", path) else shlex.quote(path)
    words = (f"{CLI} config", verb, options, "--path" if len(place) > 1 else "", quoted, value)
    return f"`{' '.join(word for word in words if word)}`"


def show(value: object) -> str:
    """A value as a user can recognise it: a long string is cut, a structure only named."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            shown = json.dumps(value, ensure_ascii=False)
            return shown if len(shown) <= _LONGEST_SHOWN else f'{shown[:_LONGEST_SHOWN]}…" ({len(value)} characters)'
        case int() | float():
            return f"the number {value}"
        case _:
            return kind_of(value)


def kind_of(value: object) -> str:
    """The kind of a value, in words."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false"
        case str():
            return "a string"
        case dict() | BaseModel():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case _:
            return "a number"


def enumerate_words(words: Iterable[str], *, last: str = "and") -> str:
    """`a, b and c`."""
    *head, tail = words
    return f"{', '.join(head)} {last} {tail}" if head else tail


_UNNAMED: Final = re.compile(r"`\.venv/bin/idstack (?:pulumi|up|preview)(?= -- | --refresh|`)")


def for_stack(text: str, stack: str) -> str:
    """The text with the stack's name in each command of `idstack` that acts on a stack and names none."""
    return _UNNAMED.sub(rf"\g<0> --stack {stack}", text).replace("--stack <stack>", f"--stack {stack}")
