"""A backend of files whose disk is full or read-only: what the engine's messages mean, and what it leaves behind.

Before it begins, the engine writes its lock; if that fails, it leaves a draft of it in the folder of the locks, empty
or truncated, which every later engine takes for a lock and cannot read (gocloud.dev/blob/fileblob, pulumi/pulumi
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

_NO_WRITE: Final = re.compile(
    r"(?P<file>/\S+?)?(: )?(?P<why>no space left on device|disk quota exceeded|file too large|read-only file system)"
)
_BEGUN_LOCK: Final = re.compile(r"(?P<file>/\S+/\.pulumi/locks/\S+\.tmp): ")


def directory(backend: str | None) -> Path | None:
    """The folder `.pulumi` of a backend of files, None for any other backend."""
    if backend is None or (address := urlsplit(backend)).scheme != "file":
        return None
    return Path(unquote(f"{address.netloc}{address.path}")).expanduser() / ".pulumi"


def failure(errors: str, stack: str) -> CommandError | None:
    """What to say if the disk of the backend is why the engine failed, else None.

    The drafts of its own locks are deleted, so that the next run finds none. `errors` is its standard error, the engine
    has ended.
    """
    found = _NO_WRITE.search(errors)
    if found is None:
        return None
    begun = [Path(each["file"]) for each in _BEGUN_LOCK.finditer(errors)]
    for draft in begun:
        with suppress(OSError):  # on a disk that is read-only there is none
            draft.unlink()
    what = f"the backend's disk is full or read-only ({found['why']}: {found['file'] or 'the engine names no file'})"
    help_ = "make it writable" if "read-only" in found["why"] else "free some space there"
    if begun:
        return CommandError(f"{what}; nothing has begun. To go on, {help_} and run the command again")
    return CommandError(
        f"{what}, so the state may lack what was done last. To go on, {help_}; then `make recover STACK={stack}` finds "
        "what is missing from the state, and brings the stack up"
    )


def unreadable_locks(backend: str | None, stack: str) -> list[Path]:
    """Files among the stack's locks that are truncated, of an engine that could not write them."""
    found = directory(backend)
    if found is None:
        return []
    return sorted(file for file in found.glob(f"locks/*/*/{stack}/*") if not _is_lock(file))


def _is_lock(file: Path) -> bool:
    try:
        return bool(json.loads(file.read_bytes()))
    except FileNotFoundError:
        return True  # its engine has ended meanwhile
    except ValueError:
        return False
