"""Files that are whole whatever happens: a kill or a loss of power leaves the earlier content or the new one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_PRIVATE: Final = 0o600
_PUBLIC: Final = 0o644


def write_private(file: Path, content: bytes) -> None:
    """Write a file that only its owner may read, replacing an earlier one in a single step; it is on the disk then."""
    _replace(file, content, _PRIVATE)


def write_public(file: Path, content: bytes) -> None:
    """As `write_private`, for everybody to read."""
    _replace(file, content, _PUBLIC)


def write_if_changed(file: Path, text: str) -> None:
    """As `write_private`, for a string, unless the file already holds it."""
    if not file.exists() or file.read_bytes() != text.encode():
        write_private(file, text.encode())


def write_once(file: Path, content: bytes) -> None:
    """As `write_private`, unless there is a file: of two processes that write at once, both find the same content."""
    draft = _draft(file, content, _PRIVATE)
    with suppress(FileExistsError):
        os.link(draft, file)  # unlike a rename, a link never replaces what is there already
    draft.unlink()
    _sync(file.parent)


@contextmanager
def opened(descriptor: int) -> Iterator[int]:
    """A file descriptor, which is closed at the end of the block."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _replace(file: Path, content: bytes, mode: int) -> None:
    _draft(file, content, mode).replace(file)
    _sync(file.parent)


def _draft(file: Path, content: bytes, mode: int) -> Path:
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as stream:
        stream.write(content)
        stream.flush()
        # A rename may reach the disk before the content: after a loss of power the file would be empty.
        os.fsync(stream.fileno())
    return draft


def _sync(directory: Path) -> None:
    with opened(os.open(directory, os.O_RDONLY | os.O_DIRECTORY)) as descriptor:
        os.fsync(descriptor)
