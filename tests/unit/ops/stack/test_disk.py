"""A backend whose disk is full or read-only: the words for a person, and the locks that it leaves behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ops.stack.engine import Engine
from ops.stack.failures import disk_failure
from ops.stack.lock import LockedError
from tests.unit.ops.conftest import FakeEngine

# Pulumi 3.259 on a tmpfs that is full, and on one that is read-only.
AT_THE_LOCK = """error: 2 errors occurred:
    1) write {file}: no space left on device
    2) Unknown
"""
UNDER_WAY = """error: post-step event returned an error: failed to save snapshot: An IO error occurred while writing \
the new snapshot file: blob (key ".pulumi/stacks/idstack/dev.json") (code=Unknown): \
write {file}: no space left on device
"""


@pytest.fixture
def locks(tmp_path: Path) -> Path:
    folder = tmp_path / ".pulumi/locks/organization/idstack/dev"
    folder.mkdir(parents=True)
    return folder


def test_a_lock_that_could_not_be_written_is_deleted_and_nothing_has_begun(locks: Path) -> None:
    draft, other = locks / "a.json.18ea9f.tmp", locks / "b.json"
    draft.touch()
    other.write_text("{}")

    found = disk_failure(AT_THE_LOCK.format(file=draft), "dev")
    assert str(found) == (
        f"the backend's disk is full or read-only (no space left on device: {draft}); nothing was started. To "
        "continue, free some space there and run the command again"
    )
    assert list(locks.iterdir()) == [other]


def test_a_disk_that_fills_under_way_leaves_work_for_recover(tmp_path: Path) -> None:
    state = tmp_path / ".pulumi/stacks/idstack/dev.json.1f.tmp"
    state.parent.mkdir(parents=True)
    state.touch()

    found = disk_failure(UNDER_WAY.format(file=state), "dev")
    assert f"(no space left on device: {state}), so the state may lack the last changes" in str(found)
    assert "free some space there; then `make recover STACK=dev`" in str(found)
    assert state.exists()


def test_a_read_only_disk_is_to_be_made_writable() -> None:
    errors = AT_THE_LOCK.format(file="/x/.pulumi/locks/o/idstack/dev/a.json.1.tmp").replace(
        "no space left on device", "read-only file system"
    )

    assert "nothing was started. To continue, make it writable and run" in str(disk_failure(errors, "dev"))


def test_a_long_event_log_is_read_in_passing() -> None:
    log = '{"urn":"/subscriptions/x/providers/y","message":"z"}' * 40_000

    assert disk_failure(log, "dev") is None
    assert "(file too large: /a/b)" in str(disk_failure(f"{log} write /a/b: file too large", "dev"))


def test_another_failure_is_no_matter_of_the_disk() -> None:
    assert disk_failure("error: update failed", "dev") is None


@pytest.mark.parametrize("content", ["", '{"pid": 1'])
def test_a_lock_that_is_cut_short_is_named_and_recover_may_remove_it(
    locks: Path, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"{locks.parents[4].as_uri()}?metadata=skip")
    (locks / "a.json").write_text(json.dumps({"pid": 1}))
    draft = locks / "b.json.1f.tmp"
    draft.write_text(content)
    engine.fails("error: unexpected end of JSON input")

    with pytest.raises(LockedError, match=rf"has a truncated lock \({draft}\)") as locked:
        Engine("dev").refresh()
    assert locked.value.is_abandoned
    assert "`make recover STACK=dev` removes the lock" in str(locked.value)
