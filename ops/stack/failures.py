"""Why an engine run failed, in words with a remedy: the order in which the reasons in `failures.yaml` are tried."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from identity import yaml_text
from identity.aks.azure_rbac import DENIAL
from identity.symptoms import GENERIC_PLACEHOLDERS, Family, symptoms
from ops.stack import state_file
from ops.stack.errors import CommandError, message
from ops.stack.lock import LockedError, StartedEngines, is_locked, owners, stack_of, truncated_locks
from ops.stack.stack_document import BACKEND_VARIABLE


class NoSuchStackError(CommandError):
    """The backend has no stack of this name."""


class VanishedDraftError(CommandError):
    """The backend cannot be listed now, because another engine has replaced a file meanwhile."""


@dataclass(frozen=True)
class EngineFailure:
    """A reason for a failed run: a row of `failures.yaml`."""

    pattern: str
    message: str
    error: str = ""
    backend: str = ""


_ERRORS: Final = {"no such stack": NoSuchStackError, "vanished draft": VanishedDraftError}


@cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = yaml_text.load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    return document


def _rows(part: str) -> Iterator[EngineFailure]:
    return (EngineFailure(**row) for row in _document()[part])


def _of_a_run() -> Iterator[EngineFailure]:
    yield EngineFailure(re.escape(DENIAL), "{denied}")
    for symptom in (row for row in symptoms() if row.family is Family.RUN):
        fix = symptom.fix.format_map(GENERIC_PLACEHOLDERS).replace("<stack>", "{stack}")
        yield EngineFailure("|".join(symptom.words or (symptom.name,)), f"{symptom.cause}: {fix}")
    yield from _rows("ofARun")


def failure_of(errors: str, said: str, stack: str, environment: Mapping[str, str], command: str = "") -> CommandError:
    """The error for a failed engine.

    Args:
        errors: the engine's standard error.
        said: the message for a reason that is not known.
        stack: the stack of the command.
        environment: that of the engine.
        command: the engine's command, if it locks the stack.
    """
    backend = environment.get(BACKEND_VARIABLE)
    if is_locked(errors):
        named = stack_of(errors) or stack  # a move of a state has two stacks
        return LockedError(owners(errors), StartedEngines.of(named, environment), command)
    if failure := (
        state_file.damage(errors, stack, backend)
        or disk_failure(errors, stack)
        or backend_failure(errors, stack, backend)
    ):
        return failure
    if state_file.is_unsound(errors) and (files := truncated_locks(backend, stack)):
        return LockedError((), StartedEngines.of(stack, environment), command, files)
    return CommandError(said)


def backend_failure(errors: str, stack: str, backend: str | None) -> CommandError | None:
    """The first reason of the backend in `failures.yaml`; `backend` is its address, None for that of the login."""
    where = "the backend that you are logged in to" if backend is None else f"the backend {backend}"
    rows = (row for row in _rows("ofTheBackend") if (backend or "").startswith(row.backend))
    return next(_explained(rows, errors, {"stack": stack, "where": where}), None)


def remedies(lines: Iterable[str], stack: str, command: str) -> Iterator[str]:
    """Every reason of a run, by the event log of `pulumi up` or `destroy`."""
    resume = f"The resource in progress may exist: `.venv/bin/idstack recover --stack {stack}` finds it, and continues"
    if command == "destroy":
        resume = f"Run `.venv/bin/idstack down --stack {stack}` again, which continues"
    yield from map(str, _explained(_of_a_run(), "\n".join(lines), {"stack": stack, "resume": resume}))


def _explained(rows: Iterable[EngineFailure], text: str, fields: Mapping[str, str]) -> Iterator[CommandError]:
    texts: dict[str, str] = _document()["texts"]
    for row in rows:
        if found := list(re.finditer(row.pattern, text)):
            names = found[0].re.groupindex
            known = {**fields, **{name: ", ".join(dict.fromkeys(match[name] for match in found)) for name in names}}
            shared = {name: shared_text.format_map(known) for name, shared_text in texts.items()}
            yield _ERRORS.get(row.error, CommandError)(row.message.format_map({**known, **shared}))


_NO_WRITE: Final = re.compile(r"no space left on device|disk quota exceeded|file too large|read-only file system")
_FILE: Final = re.compile(r"/\S+(?=: $)")
_DRAFT: Final = re.compile(r"/\.pulumi/locks/.+\.tmp$")
_LONGEST_PATH: Final = 4096  # linux/limits.h


def disk_failure(errors: str, stack: str) -> CommandError | None:
    """The error if the engine failed because of the backend's disk, else None.

    `errors` is its standard error or its event log. Deletes the drafts of the engine's own locks, so that the next run
    finds none.
    """
    reasons = list(_NO_WRITE.finditer(errors))
    if not reasons:
        return None
    # A search in all of an event log would take a minute.
    paths = [_FILE.search(errors, max(0, reason.start() - _LONGEST_PATH), reason.start()) for reason in reasons]
    files = [path[0] if path else "" for path in paths]
    why, file = reasons[0][0], files[0]
    drafts = [file for file in files if _DRAFT.search(file)]
    for draft in drafts:
        with suppress(OSError):  # a read-only disk has none
            Path(draft).unlink()
    problem = f"the backend's disk is full or read-only ({why}: {file or 'the engine names no file'})"
    help_ = "make it writable" if "read-only" in why else "free some space there"
    if drafts:
        return CommandError(f"{problem}; nothing was started. To continue, {help_} and run the command again")
    return CommandError(message("failures.unwritten", problem=problem, help=help_, stack=stack))
