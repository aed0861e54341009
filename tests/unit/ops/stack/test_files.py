"""Files that several commands have in common: whole at every moment."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ops.stack.stack_document import replace_file, write_once


def test_a_reader_never_finds_a_file_half_written(tmp_path: Path) -> None:
    file, texts = tmp_path / "Pulumi.yaml", {"a" * 100_000, "b" * 200_000}
    file.write_text(min(texts))
    found, ended = set(), threading.Event()

    def read() -> None:
        while not ended.is_set():
            found.add(file.read_text())

    with ThreadPoolExecutor(1) as reader:
        reading = reader.submit(read)
        for _ in range(30):
            for text in texts:
                replace_file(file, text)
        ended.set()
        reading.result()
    assert found <= texts
    assert [path.name for path in tmp_path.iterdir()] == ["Pulumi.yaml"], "no draft is left"


def test_what_a_file_holds_already_is_not_written_again(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.yaml"
    replace_file(file, "name: idstack\n", mode=0o700)
    before = file.stat()
    replace_file(file, "name: idstack\n")
    after = file.stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_mode) == (before.st_ino, before.st_mtime_ns, before.st_mode)
    assert stat.S_IMODE(before.st_mode) == 0o700


def test_of_two_that_write_once_the_first_one_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, synced = tmp_path / "passphrase", os.fsync

    def overtake(handle: int) -> None:
        """The other process writes between the look for a file and the write."""
        synced(handle)
        if not file.exists():
            file.write_text("first")

    monkeypatch.setattr(os, "fsync", overtake)
    write_once(file, "second")
    assert file.read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["passphrase"]


@pytest.mark.parametrize("write", [replace_file, write_once])
def test_content_is_on_the_disk_before_its_name_and_both_before_the_return(
    write: Callable[[Path, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str | list[str]] = []

    def fsync(handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        synced.append([file.name for file in path.iterdir()] if path.is_dir() else path.read_text())

    monkeypatch.setattr(os, "fsync", fsync)
    write(tmp_path / "passphrase", "correct horse")
    assert synced == ["correct horse", ["passphrase"]]
