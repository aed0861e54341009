"""A stack's file as YAML, without an engine: its backend and secrets provider, and how a file is replaced."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from ops.stack.errors import CommandError, message, why_unreadable


def document_in(file: Path, name: str | None = None) -> dict[str, Any]:
    """The document in a stack's file, empty for a missing or empty one; raises CommandError if it cannot be read.

    `name` is the file's in the error, None for its own.
    """
    try:
        return parsed(file.read_text(encoding="utf-8"), name or file.name)
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        why = why_unreadable(error)
        raise CommandError(f"{name or file.name} cannot be read: {why}. Nothing was started") from None


def parsed(text: str, name: str) -> dict[str, Any]:
    """The document in the text of a stack's file; raises CommandError if that is not one."""
    import yaml  # slow, and `idstack token` runs at each sign-in of kubectl

    from identity import yaml_text
    from identity.settings.stack_file import require_unique_keys

    reason = "it is not a YAML document of a stack"
    if text.startswith("\ufeff"):
        raise CommandError(f"{name} begins with a byte order mark; save it as UTF-8 without one. Nothing was started")
    try:
        document = yaml_text.load(text) or {}
        require_unique_keys(text)
        config = document.get("config") or {} if isinstance(document, dict) else None
        if isinstance(config, dict) and all(isinstance(key, str) for key in config):
            return document
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        reason = f"{f'line {mark.line + 1}, column {mark.column + 1}: ' if mark else ''}{error.problem}"
    except yaml.YAMLError:
        pass
    raise CommandError(f"{name} cannot be read: {reason}. Nothing was started")


BACKEND_VARIABLE: Final = "PULUMI_BACKEND_URL"
BACKEND_KEY: Final = "idstack:backend"
_LINE: Final = re.compile(rf"^  {BACKEND_KEY}:.*\n?", re.MULTILINE)
_CONFIG: Final = re.compile(r"^config:[ \t]*(#.*)?\n", re.MULTILINE)


def recorded(stack: str, root: Path) -> str | None:
    """The backend in the stack's file; None without a file, and if it names none.

    Raises CommandError for a file that cannot be read, instead of using another backend.
    """
    backend = _backend_in(document_in(root / f"Pulumi.{stack}.yaml"))
    return backend if isinstance(backend, str) and backend else None


def backend_of(stack: str, root: Path, base: Mapping[str, str]) -> str | None:
    """The address of the stack's backend, by its file or by PULUMI_BACKEND_URL in `base`.

    None leaves it to `pulumi login`. Raises CommandError if the two differ, and as `recorded` does.
    """
    own, variable = recorded(stack, root), base.get(BACKEND_VARIABLE) or None
    if own is not None and variable is not None and own != variable:
        raise CommandError(message("stack_document.two-backends", stack=stack, own=own, variable=variable))
    return own or variable


def backend_folder(backend: str | None) -> Path | None:
    """The folder `.pulumi` of a backend of files, None for any other backend."""
    if backend is None or (address := urlsplit(backend)).scheme != "file":
        return None
    return Path(unquote(f"{address.netloc}{address.path}")).expanduser() / ".pulumi"


def with_backend(text: str, backend: str) -> str:
    """The text of a stack's file with this address as `idstack:backend`; comments and the rest stay.

    Raises ValueError for a text without a block `config:`.
    """
    line = f"  {BACKEND_KEY}: {backend}\n"
    changed, count = _LINE.subn(lambda _: line, text, count=1)
    if not count:
        changed, count = _CONFIG.subn(lambda match: match[0] + line, text, count=1)
    if not count or _backend_in(parsed(changed, "the file")) != backend:
        raise ValueError(f"{BACKEND_KEY} cannot be written into this file: it has no block `config:`")
    return changed


def _backend_in(document: Mapping[str, Any]) -> object:
    return (document.get("config") or {}).get(BACKEND_KEY)


_VALUE: Final = "PULUMI_CONFIG_PASSPHRASE"
_FILE: Final = "PULUMI_CONFIG_PASSPHRASE_FILE"
# Values of `secretsprovider` that name no key service.
_NO_KEY: Final = frozenset({None, "", "default", "passphrase"})


def require_passphrase(configuration: Path, stack: str, environment: Mapping[str, str]) -> None:
    """Raise CommandError if the stack would be encrypted with an empty passphrase, which the engine accepts.

    `configuration` is the stack's file, which may be missing; `environment` has the engine's variables. The value takes
    precedence over the file; without both the engine prompts (pulumi/pulumi `pkg/secrets/passphrase/manager.go`).
    """
    if document_in(configuration).get("secretsprovider") in _NO_KEY and (source := _empty(environment)):
        raise CommandError(message("stack_document.no-passphrase", stack=stack, source=source))


def passphrase_fault(environment: Mapping[str, str]) -> str | None:
    """Why these variables give no passphrase, for a run that cannot prompt; None if they give one."""
    if source := _empty(environment):
        return f"{source} is empty"
    file = environment.get(_FILE)
    if file and not environment.get(_VALUE) and not Path(file).is_file():
        return f"{_FILE} is {file}, which is not a file"
    return None if environment.get(_VALUE) or environment.get(_FILE) else f"neither {_VALUE} nor {_FILE} is set"


def _empty(environment: Mapping[str, str]) -> str:
    """The variable that gives an empty passphrase; empty if none does."""
    if (value := environment.get(_VALUE)) is not None:
        return "" if value.strip() else _VALUE
    try:
        file = Path(environment.get(_FILE, ""))
        return f"the file of {_FILE}" if file.is_file() and not file.read_text(encoding="utf-8").strip() else ""
    except (OSError, ValueError):
        return ""  # the engine reports it


def replace_file(file: Path, text: str, *, mode: int = 0o600) -> None:
    """Write a file atomically, unless it has the text already."""
    if not file.exists() or file.read_bytes() != text.encode():
        _draft(file, text, mode).replace(file)
        sync(file.parent)


def write_once(file: Path, text: str) -> None:
    """Write a file for its owner alone, unless it exists: two processes at once both find the file of the first."""
    if file.exists():
        return
    draft = _draft(file, text, 0o600)
    with suppress(FileExistsError):
        os.link(draft, file)  # unlike a rename, a link never replaces a file
    draft.unlink()
    sync(file.parent)


def _draft(file: Path, text: str, mode: int) -> Path:
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as stream:
            os.fchmod(stream.fileno(), mode)  # whatever the umask
            stream.write(text)
            stream.flush()
            # A rename may reach the disk before the content: after a loss of power the file would be empty.
            os.fsync(stream.fileno())
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    return draft


def sync(place: Path) -> None:
    """Sync a file, or a directory: without it a new file could be missing after a loss of power."""
    handle = os.open(place, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
