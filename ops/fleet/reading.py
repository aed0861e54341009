"""Parses the text of a fleet file into `FleetSettings`, or reports every problem of its form."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from identity.settings.schema.problems import CLI, Place, Problem, enumerate_words, path_of, report_of, show
from identity.settings.schema.schema_node import CREDENTIAL, REFUSED, SchemaNode
from identity.similar import similar
from ops.fleet.model import FleetSettings
from ops.stack.errors import CommandError

_FLEET: Final = SchemaNode(FleetSettings)
_TIMESTAMP: Final = "tag:yaml.org,2002:timestamp"
_MERGE: Final = "tag:yaml.org,2002:merge"


def read(text: str, file: str) -> FleetSettings:
    """The fleet in the text of a file; `file` is its name. Raises FleetFileError."""
    report = FleetReport()
    raw = _parsed(text, file)
    if not isinstance(raw, dict):
        report.refuse(
            (), raw, rule="structure", accepted=_FLEET.accepted, fix="see the example in docs/guides/fleet.md"
        )
        raise FleetFileError(file, report.problems)
    try:
        return FleetSettings.model_validate(raw)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            _describe(detail, report)
        raise FleetFileError(file, report.problems) from None


class _Loader(yaml.SafeLoader):
    """YAML with unique keys that are strings; what looks like a date is a string."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Refuse a duplicate key: PyYAML would silently take the last one."""
        names: set[object] = set()
        for key, _ in node.value:
            if key.tag == _MERGE:
                continue
            name = self.construct_object(key, deep=True)
            if not isinstance(name, str):
                raise yaml.constructor.ConstructorError(None, None, f"the key {name!r} is not a string", key.start_mark)
            if name in names:
                raise yaml.constructor.ConstructorError(None, None, f"the key {name!r} occurs twice", key.start_mark)
            names.add(name)
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _parsed(text: str, file: str) -> Any:
    report = FleetReport()
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        line = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        reason = f"{error.problem}{line}"
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = str(error).partition("\n")[0] or "nested too deeply"
    report.refuse((), {}, rule="yaml", accepted="YAML", fix="correct it there", reason=reason)
    raise FleetFileError(file, report.problems)


def _describe(error: ErrorDetails, report: FleetReport) -> None:
    place: Place = error["loc"]
    node = _FLEET.at(place)
    if node is None:
        _refuse_unknown_key(place, report)
        return
    is_missing = error["type"] == "missing"
    value = None if is_missing else error["input"]
    fix = f"write it as YAML at {path_of(place)}"
    if node.spec:
        guess = node.spec.guessed(value)
        hint = f"; {node.spec.hint}" if node.spec.hint and not guess else ""
        fix = f"`{path_of(place)}: {guess or node.spec.blank}`{hint}"
    reason = error["ctx"]["reason"] if error["type"] in {REFUSED, CREDENTIAL} else ""
    rule = "missing" if is_missing else node.rule
    if error["type"] == CREDENTIAL:
        value = {}  # not shown
    report.refuse(place, value, rule=rule, accepted=node.accepted, fix=fix, reason=reason)


def _refuse_unknown_key(place: Place, report: FleetReport) -> None:
    *parents, key = place
    holder = _FLEET.at(tuple(parents))
    known = holder.keys if holder else ()
    close = similar(str(key), known)
    report.refuse(
        place,
        "a key that nothing reads",
        rule="unknown-key",
        accepted=f"the keys {enumerate_words(known)}",
        fix=f"rename it to {path_of((*parents, close))}" if close else "remove it",
    )


# The commands in the fixes of `identity/settings`: verb, path (maybe quoted), value.
_COMMAND: Final = re.compile(rf"`{CLI} config (set|rm) (?:--plaintext )?(?:--path )?('[^']*'|\S+?)(?: ([^`]*))?`")


@dataclass(frozen=True, kw_only=True)
class FleetProblem(Problem):
    """One refused value. `place` is in the fleet file; `of` names the stacks whose settings it breaks, if any."""

    of: tuple[str, ...] = ()

    @property
    def heading(self) -> str:
        """The place, as a report names it, with the stacks."""
        place = path_of(self.place) if self.place else "the whole file"
        if not self.of:
            return place
        more = f" and {len(self.of) - 1} more" if len(self.of) > 1 else ""
        return f"{place} (stack {self.of[0]}{more})"


class FleetFileError(CommandError):
    """A fleet file is refused; the message is the whole report of `problems`."""

    def __init__(self, file: str, problems: Sequence[FleetProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__(report_of(file, self.problems))


@dataclass
class FleetReport:
    """Collects problems; the same one in several stacks is one problem."""

    problems: list[FleetProblem] = field(default_factory=list)

    def refuse(
        self, place: Place, value: object, *, rule: str, accepted: str, fix: str | None = None, reason: str = ""
    ) -> None:
        """Refuse a value of the fleet file; without a `fix` it is to be removed.

        A `reason` says what is wrong with the value if `accepted` does not.
        """
        found = show(value) + (f": {reason}" if reason else "")
        fix = f"remove {path_of(place)}" if fix is None else fix
        self.problems.append(FleetProblem(place=place, rule=rule, found=found, accepted=accepted, fix=fix))

    def refuse_setting(self, problem: Problem, stack: str, place: Place, sources: Mapping[str, str]) -> None:
        """Refuse a setting of a stack, which the fleet file spells at `place`.

        `sources` has the paths of the fleet file by those of the stack's settings, to rewrite the commands in the fix.
        """
        for index, known in enumerate(self.problems):
            if (known.place, known.rule) == (place, problem.rule) and known.of:
                self.problems[index] = replace(known, of=tuple(dict.fromkeys((*known.of, stack))))
                return
        self.problems.append(
            FleetProblem(
                place=place,
                rule=problem.rule,
                found=problem.found,
                accepted=problem.accepted,
                fix=_in_the_file(problem, place, sources),
                of=(stack,),
            )
        )


def _in_the_file(problem: Problem, place: Place, sources: Mapping[str, str]) -> str:
    """The fix with each command that would write a stack's file as a line of the fleet file."""
    own = {path_of(problem.place): path_of(place)}

    def line(command: re.Match[str]) -> str:
        verb, path, value = command.groups()
        path = path.strip("'")
        where = own.get(path) or sources.get(path) or f"{path} (in the settings of the stack)"
        return f"remove {where}" if verb == "rm" else f"`{where}: {value}`"

    return _COMMAND.sub(line, problem.fix).replace("in the stack file", "in the fleet file")
