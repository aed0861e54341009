"""What a backup takes, refuses and gives back; `tests/engine/test_backup.py` loses a real backend."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ops.stack import backup
from ops.stack.backup import Backup
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from tests.unit.ops.conftest import FakeEngine, Idstack

ROOT = {"urn": "urn:pulumi:dev::idstack::pulumi:pulumi:Stack::idstack-dev", "type": "pulumi:pulumi:Stack"}
COMMIT = "0123456789abcdef0123456789abcdef01234567"

DEPLOYMENT = f'"deployment":{{"resources":[{json.dumps(ROOT, separators=(",", ":"))}]}}'
MALFORMED = (
    '"deployment":[]',
    '"deployment":null',
    '"deployment":{"resources":"all"}',
    '"deployment":{"resources":[1]}',
    '"deployment":{"resources":[{"urn":1,"type":"x"}]}',
    '"other":1',
)


@pytest.fixture
def project(project: Path) -> Path:
    """A project with the configuration of `dev`."""
    (project / "Pulumi.dev.yaml").write_text("config: {}\n")
    return project


def made(**changes: Any) -> Backup:
    """A backup of `dev` with one resource."""
    values: dict[str, Any] = {
        "stack": "dev",
        "created": datetime(2026, 11, 23, 5, tzinfo=UTC),
        "commit": COMMIT,
        "configuration": "config: {}\n",
        "state": {"version": 3, "deployment": {"resources": [ROOT]}},
        **changes,
    }
    return Backup(**values)


def test_a_backup_has_state_configuration_and_commit(engine: FakeEngine, project: Path) -> None:
    engine.has_resources({**ROOT, "outputs": {"commit": COMMIT}})

    taken = backup.take(Engine("dev", project))

    assert (taken.stack, taken.commit, taken.configuration) == ("dev", COMMIT, "config: {}\n")
    assert taken.state == json.loads((engine.folder / "state.json").read_text())


def test_an_empty_state_or_operations_that_were_cut_short_are_not_kept(engine: FakeEngine, project: Path) -> None:
    with pytest.raises(CommandError, match="has nothing to back up"):
        backup.take(Engine("dev", project))
    pending = {"resources": [ROOT], "pending_operations": [{"resource": ROOT, "type": "creating"}]}
    (engine.folder / "state.json").write_text(json.dumps({"version": 3, "deployment": pending}))

    with pytest.raises(CommandError, match=r"`.venv/bin/idstack recover --stack dev` settles them"):
        backup.take(Engine("dev", project))


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"", "the document"),
        (b"{}", "stack: Field required"),
        (made().model_dump_json().replace('"format":1', '"format":2').encode(), "format: Input should be 1"),
        (made().model_dump_json().replace('"stack":"dev"', '"stack":"dev","key":"s3cret"').encode(), "key: Extra"),
        *((made().model_dump_json().replace(DEPLOYMENT, part).encode(), "state: ") for part in MALFORMED),
    ],
)
def test_another_file_is_refused_by_its_place_and_not_shown(tmp_path: Path, content: bytes, place: str) -> None:
    file = tmp_path / "backup.json"
    file.write_bytes(content)

    with pytest.raises(CommandError) as refused:
        backup.read(file, "dev")

    assert f"backup.json is not a backup of this release: {place}" in str(refused.value)
    assert "s3cret" not in str(refused.value)
    file.write_text(made().model_dump_json())
    assert backup.read(file, "dev") == made(), "what was written is read as it was"
    with pytest.raises(CommandError, match=r"the backup .*/nowhere cannot be read: no such file or directory$"):
        backup.read(tmp_path / "nowhere", "dev")


def test_a_lost_stack_is_made_with_the_key_of_its_file_and_one_that_is_there_keeps_its_resources(
    engine: FakeEngine, project: Path
) -> None:
    key = "azurekeyvault://kv.vault.azure.net/keys/k"
    (project / "Pulumi.dev.yaml").write_text(f"secretsprovider: {key}\n")

    backup.restore(Engine("dev", project), made())

    assert f"stack init dev --no-select --secrets-provider {key} --non-interactive" in engine.calls
    assert engine.calls[-1] == "stack import --stack dev --non-interactive"
    engine.has_stacks("dev")
    backup.restore(Engine("dev", project), made())
    engine.has_resources(ROOT)
    with pytest.raises(CommandError, match="has 1 resources, which a restore would forget"):
        backup.restore(Engine("dev", project), made())
    asked = [" ".join(call.split()[:2]) for call in engine.calls]
    assert (asked.count("stack init"), asked.count("stack import")) == (1, 2)


def test_a_state_that_is_cut_short_on_azure_counts_as_lost(
    engine: FakeEngine, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "backend/.pulumi/stacks/idstack/dev.json"
    file.parent.mkdir(parents=True)
    file.touch()
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"{(tmp_path / 'backend').as_uri()}?metadata=skip")
    executable = engine.folder / "pulumi"
    whole = executable.read_text()
    fails = 'echo "error: failed to load checkpoint: place 1: unexpected end of JSON input" >&2; exit 255'
    executable.write_text(
        whole.replace('case "$1 $2 $3" in', f'case "$1 $2 $3" in\n    "stack ls"*|"stack export"*) {fails} ;;', 1)
    )

    backup.restore(Engine("dev", project), made())

    assert engine.calls[-1] == "stack import --stack dev --non-interactive"


def test_a_restore_says_what_comes_next_and_refuses_the_backup_of_another_stack(
    engine: FakeEngine, idstack: Idstack, tmp_path: Path
) -> None:
    file = tmp_path / "dev.json"
    file.write_text(made().model_dump_json())

    other = idstack("restore", "--stack", "other", str(file))

    error = "idstack: the backup is of the stack dev, not of other: give --stack dev\n"
    assert (other.code, other.error, engine.calls) == (1, error, [])
    printed = idstack("restore", "--stack", "dev", str(file))
    assert printed.code == 0, printed.error
    for told in (
        "dev has the 1 resources of 2026-11-23T05:00:00Z again; nothing has changed in Azure",
        f"Its configuration has changed since the backup (commit {COMMIT})",
        "`.venv/bin/idstack recover --stack dev`",
    ):
        assert told in printed.output


def test_the_command_writes_a_file_and_names_the_way_back(engine: FakeEngine, idstack: Idstack, tmp_path: Path) -> None:
    engine.has_resources({**ROOT, "outputs": {}})
    file = tmp_path / "dev.json"
    file.write_text("the backup before, for everybody")

    printed = idstack("backup", "--stack", "dev", "--output", str(file))

    assert printed.code == 0, printed.error
    assert f"idstack restore --stack dev {file}" in printed.output
    assert backup.read(file, "dev").commit is None
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.glob("*dev*")] == ["dev.json"]
    missing = idstack("backup", "--stack", "dev", "--output", str(tmp_path / "nowhere/dev.json"))
    assert missing.code == 1
    assert missing.error.startswith("idstack: the backup cannot be written: ")
