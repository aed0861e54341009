"""Files of the local cloud: a loss of power leaves the earlier content or the new one, never a part."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from localcloud.core import files
from localcloud.core.store import seal_key

Write = Callable[[Path, bytes], None]
_writers = pytest.mark.parametrize("write", [files.write_private, files.write_public, files.write_once])


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bytes]]:
    """Name and content of each file at the moment when it is synced, of a directory its entries."""
    found: list[tuple[str, bytes]] = []

    def fsync(handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        names = b" ".join(sorted(os.fsencode(file.name) for file in path.iterdir())) if path.is_dir() else b""
        found.append((path.name, names or path.read_bytes()))

    monkeypatch.setattr(os, "fsync", fsync)
    return found


@_writers
def test_content_is_on_the_disk_before_its_name_and_both_before_the_return(
    write: Write, tmp_path: Path, synced: list[tuple[str, bytes]]
) -> None:
    write(tmp_path / "file", b"content")

    assert synced == [(f"file.{os.getpid()}", b"content"), (tmp_path.name, b"file")]
    assert (tmp_path / "file").read_bytes() == b"content"


@pytest.mark.parametrize(
    ("write", "mode"), [(files.write_private, 0o600), (files.write_public, 0o644), (files.write_once, 0o600)]
)
def test_a_file_is_only_for_whom_it_is_meant(write: Write, mode: int, tmp_path: Path) -> None:
    write(tmp_path / "file", b"content")

    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode


def test_what_is_written_once_stays(tmp_path: Path) -> None:
    files.write_once(tmp_path / "file", b"first")
    files.write_once(tmp_path / "file", b"second")

    assert (tmp_path / "file").read_bytes() == b"first"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_draft_that_a_killed_process_left_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / f"file.{os.getpid()}").write_bytes(b"half")

    files.write_private(tmp_path / "file", b"content")

    assert (tmp_path / "file").read_bytes() == b"content"


def test_the_key_that_opens_the_vaults_is_synced_before_anything_is_sealed(
    tmp_path: Path, synced: list[tuple[str, bytes]]
) -> None:
    key = seal_key(tmp_path / "seal.key")

    assert synced == [(f"seal.key.{os.getpid()}", key), (tmp_path.name, b"seal.key")]
