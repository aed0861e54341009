"""A stack's state in the backend whose file is truncated or overwritten: which one it is, and what takes its place.

The engine names no file. A backend of files keeps, beside `stacks/<project>/<stack>.json`, the file as it was before
the last write (`.bak`), and one of each finished run in `backups` (pulumi/pulumi `pkg/backend/diy/state.go`). A disk
that is full while the engine writes leaves the file truncated: the draft takes its place all the same. A stack that is
made has its file written twice, so one without a `.bak` was truncated before anything but the stack was made.
"""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from identity.credentials import rfc3339
from identity.settings.schema.problems import NAMESPACE
from ops.stack import disk
from ops.stack.errors import CommandError

# Of Go's encoding/json, which the engine passes on.
_UNSOUND: Final = re.compile(r"unexpected end of JSON input|invalid character .+ (looking for|after|in) ")
_CHECKPOINT: Final = "failed to load checkpoint"


class StateDamagedError(CommandError):
    """The engine cannot read the state; the message names the file and what to put in its place.

    `file` and `copy` are in a backend of files: what is damaged, and the newest copy that is whole, if there is one.
    Without a copy the file is given only if no run of the stack has ended, so that it may begin again; `made` is what
    to say then of what a run may have made, None if none has begun.
    """

    def __init__(
        self, message: str, file: Path | None = None, copy: Path | None = None, made: str | None = None
    ) -> None:
        super().__init__(message)
        self.file = file
        self.copy = copy
        self.made = made

    def put_back(self) -> str:
        """Put the copy in its place, or nothing if the stack may begin again; returns what was done.

        What was there is kept as `<file>.damaged`. Raises itself if there is neither, and CommandError if the disk does
        not take it.
        """
        if self.file is None:
            raise self
        damaged = self.file.with_name(f"{self.file.name}.damaged")
        if self.copy is None:
            try:
                self.file.replace(damaged)
            except OSError as error:
                raise CommandError(f"the truncated state cannot be put aside: {error}") from None
            return f"the state was truncated before any run ended, and begins again, empty; it is kept as {damaged}"
        draft = self.file.with_name(f"{self.file.name}.draft")
        try:
            shutil.copyfile(self.copy, draft)
            self.file.replace(damaged)
            draft.replace(self.file)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise CommandError(f"the copy {self.copy} cannot be put in its place: {error}") from None
        return f"the state was truncated, and is that of {_date(self.copy)} again: {self.copy}"


@dataclass(frozen=True)
class _StateFile:
    """The state of one stack in a backend of files.

    `backups` has the engine's copies of finished runs, `history` a record of each.
    """

    path: Path
    backups: Path
    history: Path

    @property
    def stack(self) -> str:
        return self.path.stem

    def damage(self) -> StateDamagedError | None:
        """What to say of it, None if it is whole or gone."""
        if not self.path.exists() or _is_whole(self.path):
            return None
        size = self.path.stat().st_size
        what = f"the state of {self.stack} cannot be read: {self.path} is truncated or overwritten ({size} bytes)"
        restore = f"`.venv/bin/idstack restore --stack {self.stack} <file>` gives it the state of a backup"
        before = self.path.with_name(f"{self.path.name}.bak")
        copies = [before, *self.backups.glob(f"{self.stack}.*.json")]
        copy = max((each for each in copies if _is_whole(each)), key=lambda each: each.stat().st_mtime, default=None)
        if copy is None and (len(copies) > 1 or any(self.history.glob("*"))):
            return StateDamagedError(
                f"{what}, and no copy beside it is whole. {restore}; without one see docs/guides/disaster.md"
            )
        if copy is None and before.exists():
            return StateDamagedError(
                f"{what}, its copy as well, and no run of the stack has ended. `make recover STACK={self.stack}` makes "
                "it empty, and says how to find what was made; free some space first",
                self.path,
                made=f"the state of {self.stack} is empty now, and what its first run had made is not in it. "
                f"`.venv/bin/idstack sweep --stack {self.stack}` lists the applications and managed identities that "
                "carry the program's tags, each with its owner id. The run's have one owner id and this stack's name: "
                f"`.venv/bin/idstack recover --stack {self.stack} --no-up --owner <owner id>` makes them this stack's, "
                "and `sweep --yes` deletes them then, so that none is made twice. Then `make up "
                f"STACK={self.stack}` brings it up, and names the line that adopts whatever else exists",
            )
        if copy is None:
            return StateDamagedError(
                f"{what}. It was never written whole, so nothing but the stack has been made. `make recover "
                f"STACK={self.stack}` makes it again and brings it up; free some space first",
                self.path,
            )
        return StateDamagedError(
            f"{what}, as by a full disk. `make recover STACK={self.stack}` puts the copy of {_date(copy)} in its place "
            f"({copy}), and finds what was made since; free some space first. Or {restore}",
            self.path,
            copy,
        )


def is_unsound(errors: str) -> bool:
    """Whether the engine's standard error says that it has read what is not JSON."""
    return _UNSOUND.search(errors) is not None


def find(stack: str, backend: str | None) -> StateDamagedError | None:
    """What is wrong with the state's file; None if nothing is, or if the backend is no folder of this machine."""
    directory = disk.directory(backend)
    files = [] if directory is None else _files(directory)
    return next((damage for file in files if file.stack == stack and (damage := file.damage())), None)


def damage(errors: str, stack: str, backend: str | None) -> StateDamagedError | None:
    """What to say if a truncated state is why the engine failed, or is what it left, else None.

    Args:
        errors: the engine's standard error.
        stack: the stack it was run for; `pulumi stack ls` fails with the file of any stack.
        backend: the backend's address; None for the one that the engine is signed in to.
    """
    if found := find(stack, backend):
        return found
    if not is_unsound(errors):
        return None
    directory = disk.directory(backend)
    if directory is not None:
        return next((found for file in _files(directory) if (found := file.damage())), None)
    if _CHECKPOINT not in errors:
        return None
    return StateDamagedError(
        f"the state of {stack} cannot be read: .pulumi/stacks/{NAMESPACE}/{stack}.json in {backend or 'the backend'} "
        "is truncated or overwritten. Put an earlier version of it back, or its copy of the write before, which has "
        f".bak behind its name; then `make recover STACK={stack}` finds what was made since. Or `.venv/bin/idstack "
        f"restore --stack {stack} <file>` gives it the state of a backup"
    )


def _files(directory: Path) -> list[_StateFile]:
    stacks, backups, history = (directory / each for each in ("stacks", "backups", "history"))
    places = {path: path.parent.relative_to(stacks) / path.stem for path in sorted(stacks.rglob("*.json"))}
    return [_StateFile(path, backups / place, history / place) for path, place in places.items()]


def _date(file: Path) -> str:
    return rfc3339.render(datetime.fromtimestamp(int(file.stat().st_mtime), UTC))


def _is_whole(file: Path) -> bool:
    try:
        return "checkpoint" in json.loads(file.read_bytes())
    except (OSError, ValueError, TypeError):
        return False
