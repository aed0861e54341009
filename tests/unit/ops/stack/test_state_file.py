"""A state whose file is truncated: the file, the copy that takes its place, and the words for a person."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.stack import state_file
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.state_file import StateDamagedError
from tests.unit.ops.conftest import FakeEngine

WHOLE = json.dumps({"version": 3, "checkpoint": {"latest": {"resources": []}}})
# Pulumi 3.259.
CUT_SHORT = "error: failed to load checkpoint: place 1: unexpected end of JSON input"
LISTED = "error: place 1: unexpected end of JSON input"
OVERWRITTEN = "error: failed to load checkpoint: invalid character 'x' looking for beginning of value"


class Folder:
    """A backend of files with the stack `dev`, and a copy of each kind."""

    def __init__(self, root: Path) -> None:
        self.url = f"{root.as_uri()}?metadata=skip"
        self.state = root / ".pulumi/stacks/idstack/dev.json"
        self.before = root / ".pulumi/stacks/idstack/dev.json.bak"
        self.finished = root / ".pulumi/backups/idstack/dev/dev.1795422149821247812.json"
        self.history = root / ".pulumi/history/idstack/dev/dev-1795422149821247812.history.json"
        for age, file in enumerate((self.state, self.finished, self.before)):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(WHOLE)
            os.utime(file, (1_795_422_149 - age, 1_795_422_149 - age))

    def cut(self, file: Path, size: int = 20) -> None:
        file.write_text(WHOLE[:size])

    def damage(self) -> StateDamagedError:
        """That of the state, which there must be."""
        found = state_file.find("dev", self.url)
        assert found is not None
        return found


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "back end")


@pytest.mark.parametrize("size", [0, 1, 20, len(WHOLE) - 1])
def test_a_state_that_is_cut_short_is_named_with_the_newest_copy(folder: Folder, size: int) -> None:
    folder.cut(folder.state, size)

    found = folder.damage()
    assert f"the state of dev cannot be read: {folder.state} is truncated or overwritten ({size} bytes)" in str(found)
    assert (
        f"`.venv/bin/idstack recover --stack dev` replaces it by the copy of 2026-11-23T08:22:28Z ({folder.finished})"
        in str(found)
    )
    assert "`.venv/bin/idstack restore --stack dev <file>`" in str(found)


def test_the_copy_takes_its_place_and_nothing_is_thrown_away(folder: Folder) -> None:
    folder.state.write_text("overwritten")
    folder.cut(folder.finished)
    found = folder.damage()

    assert f"was replaced by that of 2026-11-23T08:22:27Z: {folder.before}" in found.put_back()
    assert folder.state.read_text() == WHOLE
    assert folder.state.with_name("dev.json.damaged").read_text() == "overwritten"
    assert state_file.find("dev", folder.url) is None


@pytest.mark.parametrize("size", [0, 1, 20, len(WHOLE) - 1])
def test_a_stack_that_was_never_written_whole_is_created_again(folder: Folder, size: int) -> None:
    folder.before.unlink()
    folder.finished.unlink()
    folder.cut(folder.state, size)

    found = folder.damage()
    assert (
        "truncated before the first run, which has created nothing. `.venv/bin/idstack recover --stack dev` creates "
        "the stack again" in str(found)
    )
    assert found.made is None
    assert f"is empty now; the file is kept as {folder.state}.damaged" in found.put_back()
    assert not folder.state.exists()
    assert folder.state.with_name("dev.json.damaged").read_text() == WHOLE[:size]


def test_a_first_run_that_left_no_whole_copy_says_how_to_find_what_it_made(folder: Folder) -> None:
    folder.finished.unlink()
    folder.cut(folder.before)
    folder.cut(folder.state, 0)

    found = folder.damage()
    assert (
        "its copy as well, and no run of the stack has ended. `.venv/bin/idstack recover --stack dev` makes it empty"
        in str(found)
    )
    assert found.made is not None
    assert "`.venv/bin/idstack sweep --stack dev`" in found.made
    found.put_back()
    assert not folder.state.exists()


@pytest.mark.parametrize("trace", ["copies", "backup", "history"])
def test_a_stack_with_a_run_that_has_ended_is_never_emptied(folder: Folder, trace: str) -> None:
    folder.before.unlink()
    folder.finished.unlink()
    for kept in {"copies": [folder.before, folder.finished], "backup": [folder.finished]}.get(trace, [folder.history]):
        kept.parent.mkdir(parents=True, exist_ok=True)
        folder.cut(kept)
    folder.cut(folder.state, 0)

    found = folder.damage()
    assert "no copy beside it is sound. `.venv/bin/idstack restore --stack dev <file>`" in str(found)
    with pytest.raises(StateDamagedError, match="no copy beside it"):
        found.put_back()
    assert folder.state.exists()


def test_a_disk_that_takes_no_copy_is_named_and_changes_nothing(folder: Folder) -> None:
    folder.cut(folder.state)
    draft = folder.state.with_name("dev.json.draft")
    draft.symlink_to("/dev/full")

    with pytest.raises(CommandError, match=r"cannot replace the state: .*No space left on device"):
        folder.damage().put_back()
    assert folder.state.read_text() == WHOLE[:20]
    for copy in (folder.before, folder.finished):
        copy.unlink()
    folder.state.with_name("dev.json.damaged").mkdir()
    with pytest.raises(CommandError, match="cannot be moved"):
        folder.damage().put_back()


def test_a_list_of_stacks_names_the_one_whose_state_it_is_and_a_whole_one_is_no_damage(folder: Folder) -> None:
    assert state_file.find("dev", folder.url) is state_file.find("stage", folder.url) is None
    assert state_file.damage(CUT_SHORT, "dev", folder.url) is None
    folder.cut(folder.state)

    assert "the state of dev cannot be read" in str(state_file.damage(LISTED, "stage", folder.url))
    assert state_file.damage("error: update failed", "stage", folder.url) is None


@pytest.mark.parametrize("errors", [CUT_SHORT, OVERWRITTEN])
@pytest.mark.parametrize("backend", [None, "azblob://state?storage_account=stidstack"])
def test_a_state_in_a_container_has_its_blobs_named(errors: str, backend: str | None) -> None:
    found = state_file.damage(errors, "dev", backend)

    assert found is not None
    assert f".pulumi/stacks/idstack/dev.json in {backend or 'the backend'} is truncated" in str(found)
    assert "which has .bak behind its name; then `.venv/bin/idstack recover --stack dev`" in str(found)
    assert state_file.damage(LISTED, "dev", backend) is None


@given(st.binary(max_size=200))
def test_no_content_of_the_file_is_too_odd(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = Folder(tmp_path_factory.mktemp("odd"))
    folder.state.write_bytes(content)

    folder.damage()


def test_every_run_of_the_engine_names_the_file(
    folder: Folder, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PULUMI_BACKEND_URL", folder.url)
    folder.cut(folder.state)
    engine.fails(CUT_SHORT)

    for run in (lambda: Engine("dev").outputs(), lambda: Engine("dev").refresh(), lambda: Engine("dev").stacks()):
        with pytest.raises(StateDamagedError, match="replaces it by the copy of"):
            run()
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("errors", ["", "error: refused"])
def test_after_a_run_the_state_and_its_previous_version_are_on_the_disk(
    folder: Folder, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, errors: str
) -> None:
    monkeypatch.setenv("PULUMI_BACKEND_URL", folder.url)
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_ino))
    if errors:
        engine.fails(errors)

    with suppress(CommandError):
        Engine("dev").refresh()
    assert {place.stat().st_ino for place in (folder.state, folder.before, folder.state.parent)} <= {*synced}
