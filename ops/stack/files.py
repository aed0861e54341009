"""Writes files that several commands use at the same time: complete at every moment, also after a loss of power."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def replace(file: Path, text: str, *, mode: int = 0o600) -> None:
    """Write a file atomically, unless it has the text already."""
    if not file.exists() or file.read_bytes() != text.encode():
        _draft(file, text, mode).replace(file)
        _sync(file.parent)


def write_once(file: Path, text: str) -> None:
    """Write a file for its owner alone, unless it exists: two processes at once both find the file of the first."""
    if file.exists():
        return
    draft = _draft(file, text, 0o600)
    with suppress(FileExistsError):
        os.link(draft, file)  # unlike a rename, a link never replaces a file
    draft.unlink()
    _sync(file.parent)


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


def _sync(directory: Path) -> None:
    """Sync a directory: without it a new file could be missing after a loss of power."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
