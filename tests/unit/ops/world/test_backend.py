"""The locks of a backend of files, the last run, and whether secrets can be decrypted."""

from __future__ import annotations

import json
import os
import socket
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from identity.azure.client import AzureClient
from identity.azure.errors import AzureRefusedError
from identity.clouds import CLOUDS, Cloud
from ops.stack.engine import Engine
from ops.stack.lock import StartedEngine
from ops.world.reader import read_configuration, read_decryption, read_last_run, read_locks
from ops.world.seen import SeenRun, Unread, known
from tests.unit.identity.settings.world import configuration
from tests.unit.ops.conftest import FakeEngine

HERE = socket.gethostname()
SINCE = "2026-11-23T04:30:00.123456789Z"


@pytest.fixture
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: FakeEngine) -> Path:
    """The folder with the lock files of the stack dev."""
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"{(tmp_path / 'back end').as_uri()}?metadata=skip")
    folder = tmp_path / "back end/.pulumi/locks/organization/idstack/dev"
    folder.mkdir(parents=True)
    return folder


def lock(folder: Path, name: str, **content: Any) -> None:
    whole = {"pid": 4711, "username": "eve", "hostname": HERE, "timestamp": SINCE, **content}
    (folder / f"{name}.json").write_text(json.dumps(whole))


def test_a_lock_has_its_owner_its_age_and_whether_it_runs(locks: Path) -> None:
    lock(locks, "a", pid=2**22 + 1)
    lock(locks, "b", hostname="ci-7")
    lock(locks, "c", pid=os.getpid())  # of this machine, or of another one with its name
    ended = StartedEngine("dev", 2**22 + 1, "1", SINCE, SINCE, HERE, "", "", "")
    Engine("dev").engines.write(ended)

    dead, elsewhere, alike = known(read_locks(Engine("dev"), nobody))

    assert (dead.owner, dead.runs) == (f"eve@{HERE} (pid {2**22 + 1})", False)
    assert dead.since == datetime(2026, 11, 23, 4, 30, 0, 123456, UTC)
    assert (elsewhere.owner, elsewhere.runs, alike.runs) == ("eve@ci-7 (pid 4711)", None, None)
    assert known(read_locks(Engine("other"), nobody)) == (), "they are of another stack"


def test_a_lock_that_is_cut_short_is_of_an_engine_that_has_ended(locks: Path) -> None:
    (locks / "a.json").write_text("")
    (locks / "b.json").write_text("{")
    (locks / "c.json.18ea9f.tmp").write_text('{"pid"')

    found = known(read_locks(Engine("dev"), nobody))

    assert [(seen.owner, seen.runs) for seen in found] == 3 * [("an engine that could not write its lock", False)]
    assert all(seen.since.tzinfo is UTC for seen in found)


@dataclass
class FakeStorage:
    """A storage account of the public cloud: blobs by address; `refused` is the answer to everything."""

    blobs: dict[str, bytes]
    refused: AzureRefusedError | None = None
    cloud: Cloud = CLOUDS["AzurePublicCloud"]

    def blob_names(self, container: str, prefix: str) -> list[str]:
        if self.refused is not None:
            raise self.refused
        names = [blob.removeprefix(f"{container}/") for blob in self.blobs if blob.startswith(f"{container}/")]
        return [name for name in names if name.startswith(prefix)]

    def blob(self, url: str) -> bytes:
        return self.blobs[url]

    def __call__(self) -> AbstractContextManager[AzureClient]:
        return nullcontext(cast("AzureClient", self))


ACCOUNT = "https://stidstackprod.blob.core.windows.net/pulumi-state"


@pytest.mark.parametrize("prefix", ["", "team/"])
def test_locks_of_blobs_are_those_of_the_storage_account(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    query = "storage_account=stidstackprod" + (f"&prefix={prefix}" if prefix else "")
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"azblob://pulumi-state?{query}")
    content = json.dumps({"pid": 4711, "username": "eve", "hostname": "ci-7", "timestamp": SINCE}).encode()
    folder = f"{ACCOUNT}/{prefix}.pulumi/locks/organization/idstack"
    storage = FakeStorage({f"{folder}/dev/a.json": content, f"{folder}/dev2/b.json": b"{}"})

    [found] = known(read_locks(Engine("dev"), storage))

    assert (found.owner, found.runs) == ("eve@ci-7 (pid 4711)", None)


def test_without_a_right_to_list_the_blobs_or_an_account_that_is_the_reason(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_BACKEND_URL", "azblob://pulumi-state?storage_account=stidstackprod")
    refused = AzureRefusedError("reading x: 403 AuthorizationPermissionMismatch", 403)

    assert read_locks(Engine("dev"), FakeStorage({}, refused)) == Unread(str(refused), is_forbidden=True)
    monkeypatch.setenv("PULUMI_BACKEND_URL", "azblob://pulumi-state")
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT", raising=False)
    found = read_locks(Engine("dev"), FakeStorage({}))
    assert isinstance(found, Unread)
    assert "names no storage_account" in found.why


def nobody() -> AbstractContextManager[AzureClient]:
    """Azure, where nobody may ask it."""
    raise AssertionError("a folder needs no Azure")


def test_the_backend_of_a_login_is_asked_for(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PULUMI_BACKEND_URL", raising=False)

    found = read_locks(Engine("dev"), nobody)

    assert isinstance(found, Unread)
    assert "https://api.pulumi.com" in found.why
    assert engine.calls == ["whoami --json --non-interactive"]


def test_a_state_is_decrypted_with_its_output_thrown_away(
    engine: FakeEngine, capfd: pytest.CaptureFixture[str]
) -> None:
    assert read_decryption(Engine("dev")) is None
    assert engine.calls == ["stack export --show-secrets --stack dev --non-interactive"]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("kind", "result", "changes", "has_failed"),
    [
        ("update", "succeeded", {"create": 1}, False),
        ("destroy", "failed", {"same": 1, "delete": 1}, True),
        ("update", "failed", {"same": 9}, False),
        ("refresh", "failed", {"update": 1}, None),
    ],
    ids=["completed", "failed", "refused", "refresh"],
)
def test_the_last_run_is_the_last_that_changed_the_stack(
    engine: FakeEngine, kind: str, result: str, changes: dict[str, int], has_failed: bool | None
) -> None:
    engine.last_run(kind, result, **changes)
    seen = None if has_failed is None else SeenRun(kind=kind, started="2026-11-21T16:40:00.000Z", has_failed=has_failed)
    assert read_last_run(Engine("dev")) == seen


FAILED, REFUSED = ("update", "failed", {"create": 3}, False), ("update", "failed", {"same": 9}, False)
RENEWED, UNRENEWED = ("update", "succeeded", {"update": 1}, True), ("update", "failed", {"update": 1}, True)
UP = ("update", "succeeded", {"same": 9}, False)


@pytest.mark.parametrize(
    ("runs", "is_incomplete"),
    [
        ([REFUSED, FAILED, UP], True),
        ([RENEWED, FAILED, UP], True),
        ([RENEWED] * 20 + [FAILED, UP], True),
        ([RENEWED, UP, FAILED], False),
        ([REFUSED, UP, FAILED], False),
        ([UNRENEWED, UP], True),
        ([RENEWED, UNRENEWED, UP], False),
        ([RENEWED, UNRENEWED, FAILED, UP], True),
        ([RENEWED], False),
    ],
)
def test_only_a_complete_run_makes_up_for_one_that_failed(
    engine: FakeEngine, runs: list[tuple[str, str, dict[str, int], bool]], is_incomplete: bool
) -> None:
    engine.has_history(runs)

    found = known(read_last_run(Engine("dev")))

    assert found is not None
    assert found.has_failed == is_incomplete
    engine.fails("error: no access")
    refused = read_last_run(Engine("dev"))
    assert isinstance(refused, Unread)
    assert refused.why.endswith("error: no access")


def test_a_refused_value_belongs_to_its_hosted_cluster(engine: FakeEngine) -> None:
    engine.configures(**configuration())
    sound = known(read_configuration(Engine("dev")))
    assert (sound.refused, set(sound.identities), "ingress" in sound.identities["hc1"]) == ((), {"hc1"}, True)
    whole = configuration()
    whole["hostedClusters"][0]["vnetID"] = "vnet-1"
    engine.configures(**whole)

    found = known(read_configuration(Engine("dev")))

    [refused] = [value for value in found.refused if value.place == ("hostedClusters", 0, "vnetID")]
    assert (found.cluster_of(refused), refused.found, found.identities) == ("hc1", '"vnet-1"', {})


def test_a_secret_key_is_named_and_not_decrypted(engine: FakeEngine) -> None:
    engine.configures(**{**configuration(), "hostedClusters": {"secure": "v1:abc"}})

    found = read_configuration(Engine("dev"))

    assert isinstance(found, Unread)
    assert found.why.startswith("Pulumi.dev.yaml has an encrypted value in idstack:hostedClusters")
    assert engine.calls == []
