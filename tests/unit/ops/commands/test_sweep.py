"""`idstack sweep`: lists by default, deletes what is ours with `--yes`, and nothing while a stack cannot be read."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml

from ops.commands import sweep
from ops.stack.errors import CommandError
from ops.sweep.left_over import LeftOver, Swept
from ops.world.stacks import Stacks
from tests.unit.components.world import configuration
from tests.unit.ops.conftest import FakeEngine, Idstack

OURS = LeftOver(Swept.ROLE_ASSIGNMENT, "/s/a", "a at hc1-managed", "its principal is gone")
THEIRS = LeftOver(Swept.APPLICATION, "/applications/b", "b", "it has the tag idstack:x:b", "its stack x is elsewhere")
USED = LeftOver(Swept.REGISTRATION, "/applications/c/certificate/d", "AB of c", "none has it", too_soon="until x")
VAULT = "/subscriptions/s/resourceGroups/g/providers/Microsoft.KeyVault/vaults/kv"


class Azure:
    """Notes what was looked for and deleted."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.deleted: list[str] = []
        self.refuses = False
        self.meanwhile: Callable[[], object] = lambda: None
        self.found = [OURS, THEIRS, USED]

    def delete(self, found: LeftOver) -> None:
        if self.refuses:
            raise CommandError(f"DELETE {found.id}: 403 AuthorizationFailed")
        self.deleted.append(found.id)


@pytest.fixture
def azure(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Azure:
    """A backend with two stacks, both as they should be, and an Azure with one thing of ours and one of others."""
    monkeypatch.setenv("PULUMI_BACKEND_URL", tmp_path.as_uri())
    noted = Azure()

    def find(
        client: Azure, settings: Any, project: str, vault_id: str, stacks: Stacks, infra_ids: Any, now: Any
    ) -> list[LeftOver]:
        client.asked.append({"project": project, "vault": vault_id, "stacks": stacks, "infra_ids": list(infra_ids)})
        listed = list(client.found)
        client.meanwhile()
        return listed

    monkeypatch.setattr(sweep, "deployer", lambda _: nullcontext(noted))
    monkeypatch.setattr(sweep, "find", find)
    monkeypatch.setattr(sweep, "delete", lambda client, leftover: client.delete(leftover))
    engine.configures(**{key: yaml.safe_load(value) for key, value in configuration().items()})
    engine.has_stacks("dev", "prod")
    clusters = {"hc1": {"hostedClusterSpec": {"infraID": "hc1-infra"}}}
    outputs = {"keyVaultId": VAULT, "keyVaultName": "kv-1", "hostedClusters": clusters}
    engine.has(outputs)
    engine.has_resources(
        {"type": "pulumi:pulumi:Stack", "urn": "u", "outputs": outputs},
        {"type": "azuread:index/application:Application", "urn": "v", "id": "/applications/Object-1"},
    )
    return noted


def test_it_lists_what_is_left_over_and_deletes_nothing(azure: Azure, idstack: Idstack) -> None:
    done = idstack("sweep", "--stack", "dev")

    assert (done.code, azure.deleted) == (0, [])
    for leftover in (OURS, THEIRS, USED):
        assert leftover.name in done.output
        assert leftover.reason in done.output
    assert "no: its stack x is elsewhere" in done.output
    assert "yes; until x" in done.output
    assert "nothing was deleted; `.venv/bin/idstack sweep --stack dev --yes` deletes the owned ones" in done.output


@pytest.mark.parametrize("is_told", [False, True], ids=["listed", "deleted"])
def test_scripts_get_a_document_of_what_is_ours_and_what_was_deleted(
    azure: Azure, idstack: Idstack, is_told: bool
) -> None:
    done = idstack("sweep", "--stack", "dev", "--json", *(["--yes"] if is_told else []))

    document = json.loads(done.output)
    assert [(leftover["id"], leftover["ours"], leftover["deleted"]) for leftover in document["leftovers"]] == [
        (OURS.id, True, is_told),
        (THEIRS.id, False, False),
        (USED.id, True, False),
    ]
    assert (document["unread"], azure.deleted) == ({}, [OURS.id] if is_told else [])
    assert (f"deleted the role assignment {OURS.name}" in done.error) == is_told
    azure.refuses = True
    refused = idstack("sweep", "--stack", "dev", "--json", "--yes")
    assert refused.code == 1
    assert not any(leftover["deleted"] for leftover in json.loads(refused.output)["leftovers"])


def test_every_stack_of_the_backend_is_read(azure: Azure, idstack: Idstack, engine: FakeEngine) -> None:
    idstack("sweep", "--stack", "dev", "--infra-id", "hc9-infra")

    [asked] = azure.asked
    stacks = asked["stacks"]
    assert sorted(call for call in engine.calls if call.startswith("stack export")) == [
        f"stack export --stack {name} --non-interactive" for name in ("dev", "prod")
    ]
    assert (sorted(stacks.contents), stacks.infra_ids) == (["dev", "prod"], {"kv-1", "hc1-infra"})
    assert stacks.mentions("OBJECT-1")
    assert not stacks.mentions("object-2")
    assert (asked["project"], asked["vault"], asked["infra_ids"]) == ("idstack", VAULT, ["hc9-infra"])


@pytest.mark.parametrize("state", ["", '{"deployment": {"pending_operations": [{"type": "creating"}]}}'])
def test_nothing_is_deleted_while_a_stack_cannot_be_read(
    azure: Azure, idstack: Idstack, engine: FakeEngine, state: str
) -> None:
    file = engine.folder / "state.json"
    file.write_text(state) if state else file.unlink()

    refused, listed = idstack("sweep", "--stack", "dev", "--yes"), idstack("sweep", "--stack", "dev")

    assert (refused.code, azure.deleted) == (1, [])
    assert "nothing was deleted, because these stacks cannot be read and may have the resources: dev (" in refused.error
    assert "; prod (" in refused.error
    assert "not read, so that its resources may be listed: prod (" in listed.output


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        (".pulumi/locks/organization/idstack/prod/a.json", "{}", "nothing more was deleted: a run has locked prod"),
        (
            "engine/stacks.json",
            json.dumps([{"name": "dev"}, {"name": "prod", "lastUpdate": "2026-11-27T10:00:00.000Z"}]),
            "since the states were read, a run has changed prod",
        ),
    ],
    ids=["lock", "state"],
)
@pytest.mark.parametrize("look", [1, 2])
def test_nothing_is_deleted_once_a_run_has_the_lock_or_has_changed_a_state(
    azure: Azure, idstack: Idstack, tmp_path: Path, look: int, file: str, text: str, told: str
) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    azure.meanwhile = lambda: (tmp_path / file).write_text(text) if len(azure.asked) == look else None

    done = idstack("sweep", "--stack", "dev", "--yes")

    assert (done.code, azure.deleted, told in done.error) == (1, [], True)


@pytest.mark.parametrize("backend", ["s3://states", ""])
def test_while_locks_cannot_be_read_nothing_is_deleted_without_a_persons_word(
    azure: Azure, idstack: Idstack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    (tmp_path / ".pulumi/locks/organization/idstack/prod/a.json").mkdir(parents=True)  # no file
    monkeypatch.setenv("PULUMI_BACKEND_URL", backend or tmp_path.as_uri())

    done = idstack("sweep", "--stack", "dev", "--yes")

    assert (done.code, azure.deleted) == (1, [])
    assert "nothing more was deleted: a run may have locked " in done.error
    assert "prod (the locks " in done.error
    assert idstack("sweep", "--stack", "dev", "--yes", "--no-run").code == 0
    assert azure.deleted == [OURS.id]


def test_what_is_in_use_by_now_is_left_alone(azure: Azure, idstack: Idstack) -> None:
    azure.meanwhile = lambda: azure.found.__setitem__(slice(None), [THEIRS, USED])

    done = idstack("sweep", "--stack", "dev", "--yes")

    assert (done.code, azure.deleted) == (0, [])
    assert f"left alone, because it has changed: the role assignment {OURS.name}" in done.output
