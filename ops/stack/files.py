"""Files that several commands read and write at the same time: each is whole at every moment, and after a kill or a
loss of power.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def replace(file: Path, text: str, *, mode: int = 0o600) -> None:
    """Write a file in a single step, unless it holds the text already."""
    if not file.exists() or file.read_bytes() != text.encode():
        _draft(file, text, mode).replace(file)
        _sync(file.parent)


def write_once(file: Path, text: str) -> None:
    """Write a file for its owner alone, unless there is one: of two processes at once, both find the first one's."""
    if file.exists():
        return
    draft = _draft(file, text, 0o600)
    with suppress(FileExistsError):
        os.link(draft, file)  # unlike a rename, a link never replaces what is there
    draft.unlink()
    _sync(file.parent)


def _draft(file: Path, text: str, mode: int) -> Path:
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        # A rename may reach the disk before the content: after a loss of power the file would be empty.
        os.fsync(stream.fileno())
    return draft


def _sync(directory: Path) -> None:
    """Bring the names in a directory to the disk: after a loss of power a new file could be missing."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
