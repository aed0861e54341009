"""The exceptions of the commands, and the words of the long messages."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

# The controls of a terminal, but for tab and newline, and those that reverse the direction of text.
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """A text for a terminal, which may have names and tags of others: what would control the terminal is replaced."""
    return _CONTROLS.sub("\ufffd", text)


class CommandError(Exception):
    """A problem that a person has to fix; the lines of the message state the problem and the fix.

    `idstack` prints it without a trace and exits with its `exit_code`. typer would print an exception of its own in a
    box that breaks long lines.
    """

    exit_code: int = 1

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))


class WrongUsageError(CommandError):
    """An argument of the command line that is unknown, not accepted or missing."""

    exit_code = 2


class NoManagementClusterError(CommandError):
    """The stack's configuration has no management cluster."""


class RunInterruptedError(CommandError):
    """The engine was interrupted, by a signal or at a time limit; the message states how to resume."""

    def __init__(self, message: str, by: str = "") -> None:
        """`by`: the name of the signal, with which the command ends as a shell reports it."""
        super().__init__(message)
        if by in signal.Signals.__members__:
            self.exit_code = 128 + signal.Signals[by]


def message(case: str, /, **words: object) -> str:
    """The text of the row `case` (`<module>.<row>`) of a `messages.yaml`, with these words in its braces."""
    return _messages()[case].format_map(words)


@cache
def _messages() -> Mapping[str, str]:
    """The rows of the tables of all packages, in which modules of one name have different rows."""
    from identity import yaml_text  # slow, and `idstack token` runs at each sign-in of kubectl

    files = Path(__file__).parents[1].glob("*/messages.yaml")
    tables = (yaml_text.load(file.read_text(encoding="utf-8")).items() for file in files)
    return {f"{module}.{row}": text for table in tables for module, rows in table for row, text in rows.items()}


@contextmanager
def writing(what: str) -> Iterator[None]:
    """Let an OSError within the block be a CommandError: `what` cannot be written."""
    try:
        yield
    except OSError as error:
        raise CommandError(f"{what} cannot be written: {error}") from None


def why_unreadable(error: OSError | UnicodeDecodeError) -> str:
    """Why a file cannot be read, by the system's message without its number: `no such file or directory`."""
    text = error.strerror if isinstance(error, OSError) else "it is not encoded in UTF-8"
    return (text or "it cannot be opened").replace("No such", "no such", 1)
