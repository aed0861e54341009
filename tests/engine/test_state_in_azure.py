"""The engine keeps its state in a storage account and encrypts it with a vault's key, signed in with a pod's token."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from ops.fleet.workspace.__main__ import command as workspace_command
from ops.stack.engine import Engine
from ops.stack.failures import backend_failure
from ops.stack.lock import is_locked
from ops.world.reader import read_locks
from ops.world.seen import known
from tests.engine.state_in_azure import FAULTS, KEY, EngineOnAzure, StateInAzure
from tests.harness import empty_project

pytestmark = pytest.mark.nightly

_STATE = ".pulumi/stacks/state/dev.json"


@pytest.fixture(scope="module")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StateInAzure]:
    stack = empty_project(tmp_path_factory.mktemp("state"), **FAULTS)
    try:
        stack.local_cloud("start")
        stack.administer()
        yield StateInAzure(stack)
    finally:
        stack.local_cloud("stop", "--remove")


@pytest.fixture(scope="module")
def writer(azure: StateInAzure, tmp_path_factory: pytest.TempPathFactory) -> EngineOnAzure:
    """The deployer, whose stack has been brought up once."""
    engine = azure.writer(tmp_path_factory.mktemp("writer") / "project")
    engine.run("stack", "init", "dev", "--secrets-provider", KEY)
    engine.run("config", "set", "--secret", "word", "xyzzy", "--stack", "dev")
    engine.run("up", "--yes", "--stack", "dev")
    return engine


def test_a_stack_comes_up_and_its_state_has_no_secret_in_clear(azure: StateInAzure, writer: EngineOnAzure) -> None:
    assert writer.run("stack", "output", "word", "--show-secrets", "--stack", "dev").stdout == "xyzzy\n"
    assert "dev" in writer.run("stack", "ls").stdout

    blobs = azure.blobs()
    assert _STATE in blobs
    assert not [name for name in blobs if "/locks/" in name]
    assert b'"ciphertext"' in blobs[_STATE]
    assert not [name for name, content in blobs.items() if b"xyzzy" in content]


def test_a_preview_needs_to_read_the_state_and_to_decrypt_and_no_more(
    azure: StateInAzure, writer: EngineOnAzure, tmp_path: Path
) -> None:
    reader = azure.reader(tmp_path / "project")
    reader.with_configuration_of(writer)
    before = azure.blobs()

    assert "1 unchanged" in reader.run("preview", "--stack", "dev").stdout

    assert azure.blobs() == before, "a preview writes nothing"
    refused = reader.run("up", "--yes", "--skip-preview", "--stack", "dev", check=False)
    assert azure.blobs() == before
    told = str(backend_failure(refused.stderr, "dev", None))
    assert "could not be written to its container, and the engine crashed" in told, (
        "the library names the reason: simplify the error"
    )
    assert told.endswith("Nothing was started: correct that and run the command again")


def test_a_workspace_of_the_operator_goes_on_with_the_states_key(writer: EngineOnAzure, tmp_path: Path) -> None:
    """Each run has a new one, and its stack's file has the configuration alone."""
    workspace = writer.elsewhere(tmp_path / "workspace")
    written = yaml.safe_load((writer.folder / "Pulumi.dev.yaml").read_text())
    (workspace.folder / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": written["config"]}))
    assert "passphrase must be set" in workspace.run("preview", "--stack", "dev", check=False).stderr

    _, workspace.environment = workspace_command([], workspace.environment)

    assert "1 unchanged" in workspace.run("preview", "--stack", "dev").stdout


def test_an_identity_without_a_role_sees_no_state(azure: StateInAzure, writer: EngineOnAzure, tmp_path: Path) -> None:
    nobody = azure.nobody(tmp_path / "project")
    nobody.with_configuration_of(writer)

    refused = nobody.run("preview", "--stack", "dev", check=False)

    assert str(backend_failure(refused.stderr, "dev", None)).startswith(
        "the signed-in identity may not use the container of the state, "
        "stidstackstate.blob.core.windows.net/pulumi-state. "
    )


def test_a_killed_run_leaves_a_lock_that_is_read_and_cancelled(
    azure: StateInAzure, writer: EngineOnAzure, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.killed("up", "--yes", "--skip-preview", "--stack", "dev")
    for name, value in writer.environment.items():
        monkeypatch.setenv(name, value)

    [lock] = known(read_locks(Engine("dev", writer.folder), azure.client))

    assert (lock.runs, socket.gethostname() in lock.owner) == (None, True), "nothing of this program has started it"
    locked = writer.run("up", "--yes", "--stack", "dev", check=False).stderr
    assert is_locked(locked)
    writer.run("cancel", "--yes", "dev")
    assert known(read_locks(Engine("dev", writer.folder), azure.client)) == ()
    assert "1 unchanged" in writer.run("up", "--yes", "--stack", "dev").stdout


def test_a_stack_that_is_gone_leaves_its_history_alone(azure: StateInAzure, writer: EngineOnAzure) -> None:
    writer.run("stack", "init", "other", "--secrets-provider", KEY)
    writer.run("stack", "rename", "another", "--stack", "other")
    writer.run("stack", "rm", "another", "--yes")

    assert [name for name in azure.blobs() if "/stacks/" in name and name.endswith(".json")] == [_STATE]
