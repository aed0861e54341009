"""Files that change all at once, as the Secrets Store CSI driver writes them (`pkg/util/fileutil/atomic_writer.go`).

    <directory>/credential.json -> ..data/credential.json
    <directory>/..data          -> ..2026_11_21_15_04_05.k3x9
    <directory>/..2026_11_21_15_04_05.k3x9/credential.json

An update writes a new timestamped directory and renames a new link over `..data`, so a reader sees either every old
file or every new one, and a watcher must watch the directory: the file's inode is deleted, never written.
"""

from __future__ import annotations

import posixpath
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Final

_DATA: Final = "..data"
_NEW_DATA: Final = "..data_tmp"
_LONGEST_NAME: Final = 255
_LONGEST_PATH: Final = 4096


@dataclass(frozen=True, repr=False)
class File:
    """One file of a volume. Its `repr` does not show the data."""

    data: bytes
    mode: int = 0o644

    def __repr__(self) -> str:
        return f"File({len(self.data)} bytes, {self.mode:#o})"


Payload = Mapping[str, File]
"""Files by relative path."""


class InvalidPayloadError(ValueError):
    """A path that must not be written into a volume."""


def write(directory: Path, payload: Payload) -> bool:
    """Replace the files of `directory` by those of `payload`; returns whether anything changed.

    Raises:
        InvalidPayloadError: a path is absolute, too long, or begins with or contains `..`. Nothing is written.
        OSError: the file system refused. The old files are still there.
    """
    for path in payload:
        _check(path)
    payload = {posixpath.normpath(path): file for path, file in payload.items()}
    old = _current(directory)
    if old is not None and _holds(old, payload):
        return False
    fresh = Path(tempfile.mkdtemp(prefix=datetime.now(UTC).strftime("..%Y_%m_%d_%H_%M_%S."), dir=directory))
    try:
        # mkdtemp makes it 0700; the driver opens the inner directory, the volume itself stays closed.
        fresh.chmod(0o755)
        for path, file in payload.items():
            target = fresh / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.data)
            target.chmod(file.mode)
        for name in _tops(payload):
            if not (directory / name).is_symlink():
                (directory / name).symlink_to(f"{_DATA}/{name}")
        new_link = directory / _NEW_DATA
        new_link.unlink(missing_ok=True)
        new_link.symlink_to(fresh.name)
        new_link.replace(directory / _DATA)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    if old is not None:
        for name in {entry.name for entry in old.iterdir()} - _tops(payload):
            (directory / name).unlink(missing_ok=True)
        shutil.rmtree(old)
    return True


def _current(directory: Path) -> Path | None:
    try:
        return directory / (directory / _DATA).readlink()
    except FileNotFoundError:
        return None


def _holds(directory: Path, payload: Payload) -> bool:
    present = {path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()}
    return present == set(payload) and all(
        (directory / path).read_bytes() == file.data and (directory / path).stat().st_mode & 0o777 == file.mode
        for path, file in payload.items()
    )


def _tops(payload: Payload) -> set[str]:
    return {path.split("/")[0] for path in payload}


def _check(path: str) -> None:
    if not path:
        raise InvalidPayloadError(f"invalid path: must not be empty: {path!r}")
    if path.startswith("/"):
        raise InvalidPayloadError(f"invalid path: must be relative path: {path}")
    if len(path) > _LONGEST_PATH:
        raise InvalidPayloadError(f"invalid path: must be less than or equal to {_LONGEST_PATH} characters")
    for part in PurePosixPath(path).parts:
        if part == "..":
            raise InvalidPayloadError(f"invalid path: must not contain '..': {path}")
        if len(part) > _LONGEST_NAME:
            raise InvalidPayloadError(
                f"invalid path: filenames must be less than or equal to {_LONGEST_NAME} characters"
            )
    if path.startswith(".."):
        raise InvalidPayloadError(f"invalid path: must not start with '..': {path}")
