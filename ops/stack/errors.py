"""The exceptions that the commands end with."""

from __future__ import annotations

import typer


class CommandError(typer.TyperException):
    """Something that a person has to fix; the message states what was found and what to do.

    `idstack` prints it without a trace and exits with its `exit_code`, 1. The base class is the one that typer exports:
    typer carries its own copy of click, prints that copy's `ClickException` in a box that breaks long lines, and knows
    nothing of the `ClickException` of the package click.
    """


class MissingRightError(CommandError):
    """Azure knows who asks and does not allow it."""


class NoManagementClusterError(CommandError):
    """The stack's configuration has no management cluster."""


class RunInterruptedError(CommandError):
    """The engine was interrupted, by a signal or at a time limit; the message states how to go on."""


def why_unreadable(error: OSError | UnicodeDecodeError) -> str:
    """Why a file cannot be read, in the system's words and without its number: `no such file or directory`."""
    text = error.strerror if isinstance(error, OSError) else "it is not encoded in UTF-8"
    return (text or "it cannot be opened").replace("No such", "no such", 1)
