"""Refuses arguments that the engine does not know, before anything starts."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from identity.similar import did_you_mean
from ops.stack.chosen_stack import stack_names
from ops.stack.engine import Engine
from ops.stack.errors import WrongUsageError

# A line of `pulumi up --help`: `  -m, --message string   Optional ...`, `      --refresh string[="true"]   ...`.
_OPTION: Final = re.compile(
    r"^ +(?:(?P<short>-\w), )?(?P<long>--[\w-]+)(?: (?P<type>[^\s\[]+)(?P<optional>\[=)?)?", re.M
)


def require_known(engine: Engine, command: str, arguments: Sequence[str], own: Iterable[str] = ()) -> None:
    """Raise WrongUsageError unless `arguments` are options that the help of `pulumi <command>` lists.

    `own` are the options of the `idstack` command, for the suggestion.
    """
    if not arguments:
        return
    takes_value = _options(engine, command)
    if not takes_value:
        return
    for word in _unknown(arguments, takes_value):
        if word.startswith("-"):
            known = [*(option for option in takes_value if option.startswith("--")), *own]
            raise WrongUsageError(
                f"{word} is not an option of `idstack` or `pulumi {command}`{did_you_mean(word, known) or '.'} "
                "Nothing was started"
            )
        meant = f"; a stack is named with an option: `--stack {word}`" if word in stack_names(engine.root) else ""
        raise WrongUsageError(
            f"{word} is not an option, and `pulumi {command}` takes options alone here{meant}. Nothing was started"
        )


def _options(engine: Engine, command: str) -> dict[str, bool]:
    """The long and short options of an engine's command; True if the next word is the value."""
    done = subprocess.run(
        ["pulumi", command, "--help"], cwd=engine.root, env=engine.environment, capture_output=True, text=True
    )
    options = {}
    for match in _OPTION.finditer(done.stdout):
        takes_value = match["type"] is not None and match["optional"] is None
        options.update({name: takes_value for name in (match["long"], match["short"]) if name})
    return options


def _unknown(arguments: Sequence[str], takes_value: dict[str, bool]) -> Iterator[str]:
    words = iter(arguments)
    for word in words:
        name, equals, _ = word.partition("=")
        if name.startswith("--"):
            known = name in takes_value
        else:
            # `-y`, `-m text`, `-mtext`
            name = name[:2]
            known, equals = name in takes_value, word[2:]
        if not known:
            yield name if word.startswith("--") else word
        elif takes_value[name] and not equals:
            next(words, None)
