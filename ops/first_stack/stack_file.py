"""Writes the file of a new stack, and never overwrites the user's file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from identity import yaml_text
from identity.settings import ConfigurationError, Settings
from identity.settings.problems import for_stack
from identity.settings.stack_file import written
from ops.first_stack.template import SAMPLE, Answers, stack_text
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.settings import settings_of, validated
from ops.stack.stack_document import BACKEND_KEY, document_in, replace_file, with_backend

_READABLE: Final = 0o644


def has_own(file: Path) -> bool:
    """Whether the file is the user's: it exists, and is not this project's sample."""
    return file.exists() and file.read_bytes() != stack_text(SAMPLE).encode()


def secrets_provider_in(file: Path) -> str | None:
    """The secrets provider in the user's file; None without one."""
    if not has_own(file):
        return None
    provider = document_in(file).get("secretsprovider")
    return provider if isinstance(provider, str) else None


def write(file: Path, answers: Answers) -> bool:
    """Write the file of these answers; returns whether that changed it.

    The engine's additions (`encryptionsalt`, `encryptedkey`) stay. Raises CommandError for a user's file with another
    configuration, and for answers that contradict each other.
    """
    if (name := answers.too_long) is not None:
        raise CommandError(
            f'--prefix: "{answers.prefix}" results in the name {name} of {len(name)} characters; accepted: names of '
            "at most 24. Use a shorter --prefix, --cluster or stack name; nothing was written"
        )
    text = stack_text(answers)
    try:
        validated(written(text), None)
    except ConfigurationError as error:
        raise CommandError(
            f"these options contradict each other; nothing was written. {for_stack(str(error), answers.stack)}"
        ) from None
    if not has_own(file):
        replace_file(file, text, mode=_READABLE)
        return True
    if document_in(file).get("config") != yaml_text.load(text)["config"]:
        raise CommandError(
            f"{file.name} exists and differs from these options; it was not changed. Without them `idstack init "
            f"{answers.stack}` continues with the file. To start again, move it away: `mv {file.name} {file.name}.old`"
        )
    return False


def record_backend(file: Path, backend: str) -> bool:
    """Record the backend in a file without one; returns whether that changed it.

    Raises CommandError for a file with another backend, or without the block for it.
    """
    known = (document_in(file).get("config") or {}).get(BACKEND_KEY)
    if known == backend:
        return False
    if known is not None:
        raise CommandError(
            f"{file.name} has {BACKEND_KEY}: {known}, and the backend given is {backend}; nothing was "
            "written. Leave out --backend and PULUMI_BACKEND_URL, or correct the file"
        )
    try:
        text = with_backend(file.read_text(encoding="utf-8"), backend)
    except ValueError as error:
        raise CommandError(f"{file.name}: {error}; nothing was written") from None
    replace_file(file, text, mode=_READABLE)
    return True


def settings_in(engine: Engine) -> Settings:
    """The settings in the stack's file, without an engine and a login; raises CommandError with the report."""
    try:
        return settings_of(engine)
    except CommandError as error:
        raise CommandError(
            f"{error}\n\nCorrect {engine.file.name}; then `idstack init {engine.stack}` continues"
        ) from None
