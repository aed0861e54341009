"""The report about a refused fleet file: every problem, each as four facts, like the report about settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from identity.settings.schema.problems import CLI, Place, Problem, path_of, report_of, show
from ops.stack.errors import CommandError

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
