"""The report about a refused fleet file: every problem, each as four facts, like the report about settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from identity.settings.schema.problems import CLI, Place, Problem, path_of, show
from ops.stack.errors import CommandError

# The commands in the fixes of `identity/settings`: verb, path (maybe quoted), value.
_COMMAND: Final = re.compile(rf"`{CLI} config (set|rm) (?:--plaintext )?(?:--path )?('[^']*'|\S+?)(?: ([^`]*))?`")


@dataclass(frozen=True, kw_only=True)
class FleetProblem:
    """One refused value. `place` is in the fleet file; `of` names the stacks whose settings it breaks, if any."""

    place: Place
    rule: str
    found: str
    accepted: str
    fix: str
    of: tuple[str, ...] = ()

    def __str__(self) -> str:
        return (
            f"{path_of(self.place) if self.place else 'the whole file'}{self._stacks()}\n"
            f"  found:    {self.found}\n"
            f"  accepted: {self.accepted}\n"
            f"  fix:      {self.fix}"
        )

    def _stacks(self) -> str:
        first, *others = self.of or ("",)
        if not first:
            return ""
        return f" (stack {first} and {len(others)} more)" if others else f" (stack {first})"


class FleetFileError(CommandError):
    """A fleet file is refused; the message is the whole report of `problems`."""

    def __init__(self, file: str, problems: Sequence[FleetProblem]) -> None:
        self.problems = tuple(problems)
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        report = "\n\n".join([f"{file} has {count}; nothing was changed.", *map(str, self.problems)])
        # YAML can spell single surrogates, which no terminal accepts.
        super().__init__(report.encode("utf-8", "backslashreplace").decode("utf-8"))


@dataclass
class FleetReport:
    """Collects problems; the same one in several stacks is one problem."""

    problems: list[FleetProblem] = field(default_factory=list)

    def refuse(self, place: Place, value: object, *, rule: str, accepted: str, fix: str, reason: str = "") -> None:
        """Refuse a value of the fleet file; a `reason` says what is wrong with it where `accepted` does not."""
        found = show(value) + (f": {reason}" if reason else "")
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
