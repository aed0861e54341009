"""A directory is watched again when it is another one, and a watch that cannot begin leaves nothing behind."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from pathlib import Path

import pytest
from watchdog.observers import Observer

from identity.credentials import mounted_file
from identity.credentials.mounted_file import DirectoryWatch
from tests.unit.identity.credentials.watching import PATIENCE


@pytest.fixture(autouse=True)
def _looking_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounted_file, "_CHECK_EVERY", timedelta(milliseconds=10))


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """Released each time a directory begins to be watched."""
    begun = threading.Semaphore(0)

    class Telling(Observer):  # type: ignore[misc, valid-type]  # which class it is depends on the system
        def start(self) -> None:
            super().start()
            begun.release()

    monkeypatch.setattr(mounted_file, "Observer", Telling)
    return begun


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Path]:
    """A directory that is watched, and does not exist."""
    directory = tmp_path / "mnt"
    watch = DirectoryWatch(directory)
    thread = threading.Thread(target=lambda: [None for _ in watch.changes(lambda: False)])
    thread.start()
    yield directory
    watch.stop()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_a_directory_that_comes_late_or_is_replaced_is_watched(watched: Path, begun: threading.Semaphore) -> None:
    watched.mkdir()
    assert begun.acquire(timeout=PATIENCE)
    watched.rename(watched.with_name("before"))
    watched.mkdir()
    assert begun.acquire(timeout=PATIENCE)


def test_a_watch_that_cannot_begin_leaves_no_thread_and_no_descriptor(tmp_path: Path) -> None:
    def held() -> tuple[int, int]:
        return threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))

    watch = DirectoryWatch(tmp_path / "missing")
    gc.collect()  # what earlier tests have left would be closed meanwhile
    before = held()
    changes = watch.changes(lambda: False)
    assert len(list(islice(changes, 20))) == 20
    assert held() == before


def test_a_pending_change_shortens_the_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounted_file, "_CHECK_EVERY", timedelta(hours=1))
    monkeypatch.setattr(mounted_file, "_CHECK_OFTEN", timedelta(milliseconds=10))
    assert len(list(islice(DirectoryWatch(tmp_path).changes(lambda: True), 3))) == 3
