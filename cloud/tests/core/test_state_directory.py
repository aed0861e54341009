"""The directory on tmpfs goes with its state directory, also after somebody removed that by hand."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from localcloud.core import state_directory
from localcloud.core.state_directory import StateDirectory


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
