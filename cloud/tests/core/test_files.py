"""Files of the local cloud: a loss of power leaves the earlier content or the new one, never a part."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from localcloud.core import files, processes, state_directory
from localcloud.core.state_directory import StateDirectory
from localcloud.core.store import seal_key

# The directory on tmpfs goes with its state directory, also after somebody removed that by hand.


@pytest.fixture
def tmpfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "shm"
    folder.mkdir()
    monkeypatch.setattr(state_directory, "_TMPFS", folder)
    return folder


def made(root: Path) -> StateDirectory:
    state = StateDirectory(root)
    state.create()
    state.deployer_file.write_text("a private key")
    return state


def test_the_next_start_deletes_what_a_removed_state_directory_left(tmpfs: Path, tmp_path: Path) -> None:
    gone, stays = made(tmp_path / "gone"), made(tmp_path / "stays")
    shutil.rmtree(gone.root)

    made(tmp_path / "next")

    assert len(list(tmpfs.iterdir())) == 2
    assert stays.deployer_file.read_text() == "a private key"


def test_a_new_state_directory_does_not_keep_the_old_one(tmpfs: Path, tmp_path: Path) -> None:
    shutil.rmtree(made(tmp_path / "state").root)
    again = made(tmp_path / "state")

    assert list(tmpfs.iterdir()) == [again.run.readlink()]


def test_what_a_running_daemon_uses_stays(tmpfs: Path, tmp_path: Path) -> None:
    state = made(tmp_path / "elsewhere")
    directory = state.run.readlink()
    with state.in_use():
        shutil.rmtree(state.root)
        made(tmp_path / "next")
        assert (directory / "deployer.pem").exists()
    made(tmp_path / "third")
    assert not directory.exists()


def test_what_is_not_known_to_be_left_over_stays(tmpfs: Path, tmp_path: Path) -> None:
    for name in ("localcloud-unknown", "other"):
        (tmpfs / name).mkdir()
    (tmpfs / "other/owner").write_text("/nowhere")
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "owner").write_text("/nowhere")
    (tmpfs / "localcloud-link").symlink_to(victim)

    made(tmp_path / "next")

    assert {path.name for path in tmpfs.iterdir()} >= {"localcloud-unknown", "other", "localcloud-link"}
    assert victim.exists()


# Records of processes: the recorded one is ended, another one with its id never.

STUBBORN = "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); signal.pause()"


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


def test_a_recorded_process_is_found_and_ended(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    processes.record(tmp_path / "pids", "daemon", sleeper.pid)

    found = processes.alive(tmp_path / "pids", "daemon")

    assert found is not None
    assert found.end(grace=10)
    assert sleeper.wait(60) == -15
    assert processes.alive(tmp_path / "pids", "daemon") is None
    assert list((tmp_path / "pids").iterdir()) == []


def test_a_process_that_has_the_id_of_a_recorded_one_is_left_alone(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    record = processes.record(tmp_path / "pids", "daemon", sleeper.pid)
    earlier = json.loads(record.file.read_text()) | {"startTime": "an-earlier-boot/12345"}
    record.file.write_text(json.dumps(earlier))

    assert processes.alive(tmp_path / "pids", "daemon") is None
    assert not processes.RecordedProcess(record.file, sleeper.pid, "an-earlier-boot/12345").end(grace=10)
    assert sleeper.poll() is None


@pytest.mark.parametrize("kept", [0, 9])
def test_a_record_that_a_loss_of_power_cut_off_is_of_no_process(
    kept: int, tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    record = processes.record(tmp_path / "pids", "daemon", sleeper.pid)
    record.file.write_bytes(record.file.read_bytes()[:kept])

    assert processes.alive(tmp_path / "pids", "daemon") is None


def test_a_process_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE) as stubborn:
        assert stubborn.stdout is not None
        stubborn.stdout.readline()
        assert processes.record(tmp_path / "pids", "daemon", stubborn.pid).end(grace=0.1)
        assert stubborn.wait(60) == -9


def test_an_ended_process_cannot_be_recorded_and_is_not_alive(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    record = processes.record(tmp_path / "pids", "daemon", sleeper.pid)
    sleeper.kill()
    sleeper.wait()

    assert not record.is_alive()
    assert not record.end(grace=1)
    with pytest.raises(ProcessLookupError):
        processes.record(tmp_path / "pids", "daemon", sleeper.pid)


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
