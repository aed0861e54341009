"""What the engine prints when it fails is told in words, with what to type; the errors are those of pulumi v3.259."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from identity.aks.azure_rbac import DENIAL
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.failures import NoSuchStackError, backend_failure, disk_failure, remedies
from ops.stack.lock import LockedError
from tests.unit import cases
from tests.unit.golden_report import reviewed_file
from tests.unit.ops.conftest import FakeEngine

AZURE = "azblob://pulumi-state?storage_account=stdev"
PRINTED = cases.read(Path(__file__).with_name("failures.yaml"), {"AZURE": AZURE, "DENIAL": DENIAL})
FAILURES, REMEDIES, CRASHED = PRINTED["backend"], PRINTED["remedies"], PRINTED["crash"]
AT_THE_LOCK, UNDER_WAY = PRINTED["at the lock"], PRINTED["under way"]
GOLDEN = Path(__file__).parent / "golden/failures.txt"


def test_a_failure_and_a_refusal_in_a_run_are_told_with_what_to_do() -> None:
    """`make golden` writes the file again: read its diff as a user would."""
    told: dict[str, str] = {}
    for name, (errors, backend) in FAILURES.items():
        found = backend_failure(errors, "dev", backend)
        assert isinstance(found, NoSuchStackError) == ("no stack named" in errors)
        told[name] = str(found)
    for message in REMEDIES:
        event = json.dumps({"diagnosticEvent": {"urn": "urn:pulumi:dev::idstack::x::a", "message": message}})
        [told[message]] = remedies([event, event], "dev", "up")
    reviewed_file(GOLDEN, "\n".join(f"## {name}\n{text}\n" for name, text in told.items()))


@pytest.mark.parametrize(
    ("caller", "then"),
    [
        ("Lock", "Nothing was started: correct that and run the command again"),
        (
            "saveCheckpoint",
            "The state may lack the last changes: after the correction `.venv/bin/idstack recover --stack dev` finds "
            "them, and brings the stack up",
        ),
    ],
)
def test_a_crash_over_a_write_says_how_to_go_on(engine: FakeEngine, caller: str, then: str) -> None:
    told = str(backend_failure(CRASHED.format(caller=caller), "dev", AZURE))
    assert told.startswith("the state could not be written to its container, and the engine crashed without a reason. ")
    assert told.endswith(then)
    engine.fails(CRASHED.format(caller=caller))
    with pytest.raises(CommandError, match="could not be written to its container"):
        Engine("dev").preview()


@pytest.mark.parametrize(
    "errors",
    [
        "",
        "error: something else",
        FAILURES["no sign-in"][0],
        "PUT https://management.azure.com/x\n---\nRESPONSE 403: 403 Forbidden",
    ],
    ids=["nothing", "another", "of no backend", "of no container"],
)
def test_other_failures_stay_as_they_are(errors: str) -> None:
    assert backend_failure(errors, "dev", None) is None


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
    read_only = AT_THE_LOCK.format(file=draft).replace("no space left on device", "read-only file system")
    assert "nothing was started. To continue, make it writable and run" in str(disk_failure(read_only, "dev"))


def test_a_disk_that_fills_under_way_leaves_work_for_recover(tmp_path: Path) -> None:
    state = tmp_path / ".pulumi/stacks/idstack/dev.json.1f.tmp"
    state.parent.mkdir(parents=True)
    state.touch()

    found = disk_failure(UNDER_WAY.format(file=state), "dev")
    assert f"(no space left on device: {state}), so the state may lack the last changes" in str(found)
    assert "free some space there; then `.venv/bin/idstack recover --stack dev`" in str(found)
    assert state.exists()


def test_a_long_event_log_is_read_in_passing() -> None:
    log = '{"urn":"/subscriptions/x/providers/y","message":"z"}' * 40_000

    assert disk_failure(log, "dev") is disk_failure("error: update failed", "dev") is None
    assert "(file too large: /a/b)" in str(disk_failure(f"{log} write /a/b: file too large", "dev"))


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
    assert "`.venv/bin/idstack recover --stack dev` unlocks the stack" in str(locked.value)


def test_a_destruction_runs_again_and_other_lines_have_no_remedy() -> None:
    [remedy] = remedies(["pulumi-resource-azuread exited prematurely"], "dev", "destroy")
    assert remedy.endswith("Run `.venv/bin/idstack down --stack dev` again, which continues")
    assert list(remedies(['{"diagnosticEvent": {"message": "ContainerBeingDeleted"}}'], "dev", "up")) == []
