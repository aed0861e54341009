"""Finds the truncated or overwritten file of a stack's state, and its replacement.

The engine names no file. A file backend keeps, beside `stacks/<project>/<stack>.json`, the previous version (`.bak`),
and one of each finished run in `backups` (pulumi/pulumi `pkg/backend/diy/state.go`). A full disk leaves the file
truncated, because the draft replaces it nevertheless. The file of a new stack is written twice, so that one without a
`.bak` was truncated before its first run.
"""

from __future__ import annotations

import json
import re
import shutil
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from identity.credentials import rfc3339
from identity.settings.schema.problems import NAMESPACE
from ops.stack.errors import CommandError, message
from ops.stack.stack_document import backend_folder, sync

# Messages of Go's encoding/json, which the engine prints.
_UNSOUND: Final = re.compile(r"unexpected end of JSON input|invalid character .+ (looking for|after|in) ")


class StateDamagedError(CommandError):
    """The engine cannot read the state; the message names the file and its replacement.

    In a file backend `file` is the damaged file, `copy` the newest sound copy, if there is one. Without a copy, `file`
    is set only if no run of the stack has ended, so that the stack may start with an empty state; `made` is then the
    message about resources of a first run, None if none has begun.
    """

    def __init__(
        self, message: str, file: Path | None = None, copy: Path | None = None, made: str | None = None
    ) -> None:
        super().__init__(message)
        self.file = file
        self.copy = copy
        self.made = made

    def put_back(self) -> str:
        """Replace the damaged file by the copy, or remove it if the stack may start empty; returns what was done.

        The damaged file is kept as `<file>.damaged`. Raises itself if neither is possible, and CommandError if the
        files cannot be written.
        """
        if self.file is None:
            raise self
        damaged = self.file.with_name(f"{self.file.name}.damaged")
        if self.copy is None:
            try:
                self.file.replace(damaged)
            except OSError as error:
                raise CommandError(f"the truncated state cannot be moved: {error}") from None
            return f"the state was truncated before any run ended, and is empty now; the file is kept as {damaged}"
        draft = self.file.with_name(f"{self.file.name}.draft")
        try:
            shutil.copyfile(self.copy, draft)
            self.file.replace(damaged)
            draft.replace(self.file)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise CommandError(f"the copy {self.copy} cannot replace the state: {error}") from None
        return f"the state was truncated, and was replaced by that of {_date(self.copy)}: {self.copy}"


def is_unsound(errors: str) -> bool:
    return _UNSOUND.search(errors) is not None


def find(stack: str, backend: str | None) -> StateDamagedError | None:
    """The damage of the state's file; None for a sound one, and for a backend that is not a folder."""
    return _first_damage(backend, f"{stack}.json")


def _first_damage(backend: str | None, name: str) -> StateDamagedError | None:
    directory = backend_folder(backend)
    files = [] if directory is None else sorted((directory / "stacks").rglob(name))
    return next((found for file in files if directory and (found := _damage(file, directory))), None)


def keep(stack: str, backend: str | None) -> None:
    """Sync the state in a folder, and its previous version; the engine does not, so that a loss of power takes both."""
    directory = backend_folder(backend)
    for file in [] if directory is None else (directory / "stacks").rglob(f"{stack}.json*"):
        with suppress(OSError):  # a disk that takes no sync has taken the state nevertheless
            sync(file)
            sync(file.parent)


def damage(errors: str, stack: str, backend: str | None) -> StateDamagedError | None:
    """The error if the engine failed because of a truncated state, or left one, else None.

    Args:
        errors: the engine's standard error.
        stack: the stack of the run; `pulumi stack ls` fails because of the file of any stack.
        backend: the backend's address; None for the one that the engine is signed in to.
    """
    if own := find(stack, backend):
        return own
    if not is_unsound(errors):
        return None
    if backend_folder(backend) is not None:
        return _first_damage(backend, "*.json")
    if "failed to load checkpoint" not in errors:
        return None
    where = f".pulumi/stacks/{NAMESPACE}/{stack}.json in {backend or 'the backend'}"
    return StateDamagedError(message("state_file.remote", stack=stack, where=where))


def _damage(path: Path, directory: Path) -> StateDamagedError | None:
    """The error about a state's file in the folder of a backend, None if it is sound.

    `backups` there has the engine's copies of finished runs, `history` their records.
    """
    if not path.exists() or _is_sound(path):
        return None
    stack, place = path.stem, path.parent.relative_to(directory / "stacks") / path.stem
    what = f"the state of {stack} cannot be read: {path} is truncated or overwritten ({path.stat().st_size} bytes)"
    previous = path.with_name(f"{path.name}.bak")
    copies = [previous, *(directory / "backups" / place).glob(f"{stack}.*.json")]
    copy = max(filter(_is_sound, copies), key=lambda file: file.stat().st_mtime, default=None)
    if copy is not None:
        repairable = message("state_file.repairable", what=what, stack=stack, date=_date(copy), copy=copy)
        return StateDamagedError(repairable, path, copy)
    if len(copies) > 1 or any((directory / "history" / place).glob("*")):
        return StateDamagedError(message("state_file.beyond-repair", what=what, stack=stack))
    if not previous.exists():
        return StateDamagedError(message("state_file.before-first-run", what=what, stack=stack), path)
    in_first_run = message("state_file.in-first-run", what=what, stack=stack)
    return StateDamagedError(in_first_run, path, made=message("state_file.emptied", stack=stack))


def _date(file: Path) -> str:
    return rfc3339.render(datetime.fromtimestamp(int(file.stat().st_mtime), UTC))


def _is_sound(file: Path) -> bool:
    try:
        return "checkpoint" in json.loads(file.read_bytes())
    except (OSError, ValueError, TypeError):
        return False
