"""A file backend whose disk is full or read-only: explains the engine's messages, and removes its drafts of locks.

The engine first writes its lock; if that fails, it leaves an empty or truncated draft in the folder of the locks, which
every later engine takes for a lock and cannot read (gocloud.dev/blob/fileblob, pulumi/pulumi
`pkg/backend/diy/lock.go`).
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from ops.stack.errors import CommandError

_NO_WRITE: Final = re.compile(r"no space left on device|disk quota exceeded|file too large|read-only file system")
_FILE: Final = re.compile(r"/\S+(?=: $)")
_DRAFT: Final = re.compile(r"/\.pulumi/locks/.+\.tmp$")
_LONGEST_PATH: Final = 4096  # linux/limits.h


def directory(backend: str | None) -> Path | None:
    """The folder `.pulumi` of a backend of files, None for any other backend."""
    if backend is None or (address := urlsplit(backend)).scheme != "file":
        return None
    return Path(unquote(f"{address.netloc}{address.path}")).expanduser() / ".pulumi"


def failure(errors: str, stack: str) -> CommandError | None:
    """The error if the engine failed because of the backend's disk, else None.

    `errors` is its standard error or its event log. Deletes the drafts of the engine's own locks, so that the next run
    finds none.
    """
    reasons = [(match[0], _file_before(errors, match.start())) for match in _NO_WRITE.finditer(errors)]
    if not reasons:
        return None
    why, file = reasons[0]
    drafts = [file for _, file in reasons if file and _DRAFT.search(file)]
    for draft in drafts:
        with suppress(OSError):  # a read-only disk has none
            Path(draft).unlink()
    problem = f"the backend's disk is full or read-only ({why}: {file or 'the engine names no file'})"
    help_ = "make it writable" if "read-only" in why else "free some space there"
    if drafts:
        return CommandError(f"{problem}; nothing was started. To continue, {help_} and run the command again")
    return CommandError(
        f"{problem}, so the state may lack the last changes. To continue, {help_}; then `make recover STACK={stack}` "
        "finds what the state lacks, and brings the stack up"
    )


def _file_before(errors: str, end: int) -> str | None:
    """The path with a colon that ends at `end`; a search in all of an event log would take a minute."""
    match = _FILE.search(errors, max(0, end - _LONGEST_PATH), end)
    return match[0] if match else None


def unreadable_locks(backend: str | None, stack: str) -> list[Path]:
    """The truncated locks of the stack, which an engine could not write."""
    folder = directory(backend)
    if folder is None:
        return []
    return sorted(file for file in folder.glob(f"locks/*/*/{stack}/*") if not _is_lock(file))


def _is_lock(file: Path) -> bool:
    try:
        return bool(json.loads(file.read_bytes()))
    except FileNotFoundError:
        return True  # its engine has ended meanwhile
    except ValueError:
        return False
