"""`idstack fleet up` and `fleet status`: what they refuse, what they show, and how they end."""

from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from identity.credentials import rfc3339
from ops.fleet.rollout import StackLog
from ops.stack.engine import Engine
from tests.unit.ops.conftest import FakeEngine, Idstack
from tests.unit.ops.fleet.world import AZURE
from tests.unit.ops.stacks import output

NOW = datetime.now(UTC)
STACKS = ("shared-dev", "hc1-dev", "hc2-dev")


@pytest.fixture
def project(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a fleet file of Azure and without a file of any stack."""
    shutil.copyfile(AZURE, project / "fleet.yaml")
    monkeypatch.chdir(project)
    monkeypatch.setattr("ops.commands.fleet.ROOT", project)
    return project


def _is_up(engine: FakeEngine, **dates: Any) -> None:
    row = output("managed-azure-ingress", "ingress-hc1-json", **dates)
    outputs = {
        "clusterSide": "hypershift",
        "commit": "0123456789abcdef-dirty",
        "hostedClusters": {"hc1": {"controlPlane": {"ingress": row}}},
    }
    root = {"urn": "urn:pulumi:hc1-dev::idstack::pulumi:pulumi:Stack::idstack-hc1-dev", "type": "pulumi:pulumi:Stack"}
    state = {"manifest": {"time": "2026-11-23T08:16:49.612728841Z"}, "resources": [{**root, "outputs": outputs}]}
    (engine.folder / "state.json").write_text(json.dumps({"deployment": state}))


def _after(days: int) -> str:
    return rfc3339.render(NOW + timedelta(days=days))


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("up --environment dev", 1, ["the stacks of dev are on Azure, and parallel runs cannot prompt"]),
        (
            "up --environment dev --yes",
            1,
            [
                "Pulumi.shared-dev.yaml, Pulumi.hc1-dev.yaml, Pulumi.hc2-dev.yaml",
                "fleet prepare --file fleet.yaml --environment dev` writes them",
            ],
        ),
        ("up --environment test", 2, ["the fleet has no environment test; it has dev, prod"]),
        ("status --environment test", 2, ["the fleet has no environment test; it has dev, prod"]),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_runs(
    project: Path, engine: FakeEngine, idstack: Idstack, words: str, code: int, told: list[str]
) -> None:
    (project / "Pulumi.hc1-dev.yaml").write_text("config: {}")
    printed = idstack("fleet", *words.split())
    assert (printed.code, engine.calls) == (code, [])
    assert [line for line in told if line not in printed.error] == []


def test_the_status_of_a_fleet_that_is_well_ends_with_0(project: Path, engine: FakeEngine, idstack: Idstack) -> None:
    engine.has_stacks(*STACKS)
    _is_up(engine, notAfter=_after(60), renewAfter=_after(15))
    printed = idstack("fleet", "status", "--environment", "dev", "--json")
    assert printed.code == 0, printed.error
    stacks = json.loads(printed.output)["stacks"]
    assert [stack["stack"] for stack in stacks] == list(STACKS)
    assert stacks[1] == {
        **{"stack": "hc1-dev", "environment": "dev", "cluster": "hc1", "wave": "wave 1", "isUp": True},
        **{"updated": "2026-11-23T08:16:49Z", "commit": "0123456789abcdef-dirty", "nearestExpiry": _after(60)},
        **{"expired": [], "overdueRenewals": [], "failedSignIn": None, "lastRunFailed": None},
    }


@pytest.mark.parametrize(
    ("days_left", "due_in", "code", "reason"),
    [
        (60, -3, 3, "renewals are overdue in these stacks: shared-dev, hc1-dev, hc2-dev."),
        (-1, -40, 1, "a sign-in in them fails: shared-dev, hc1-dev, hc2-dev"),
    ],
)
def test_what_is_overdue_or_expired_decides_the_exit_code(
    project: Path, engine: FakeEngine, idstack: Idstack, days_left: int, due_in: int, code: int, reason: str
) -> None:
    engine.has_stacks(*STACKS)
    _is_up(engine, notAfter=_after(days_left), renewAfter=_after(due_in))
    printed = idstack("fleet", "status", "--environment", "dev")
    assert printed.code == code
    assert reason in printed.error
    assert "ingress" in printed.output
    assert "0123456789-dirty" in printed.output


def test_a_stack_that_is_not_there_or_whose_run_failed_is_shown(
    project: Path, engine: FakeEngine, idstack: Idstack
) -> None:
    engine.has_stacks("shared-dev", "hc1-dev")
    _is_up(engine, notAfter=_after(60), renewAfter=_after(15))
    log = StackLog(project, "hc1-dev")
    log.begun().close()
    log.note_failure("AADSTS700027")
    failed = log.failure()
    assert failed is not None
    printed = idstack("fleet", "status", "--environment", "dev")
    assert printed.code == 1
    assert printed.error.endswith("a sign-in in them fails: hc2-dev\n")
    lines = {line.split()[0]: line for line in printed.output.splitlines() if line.strip()}
    assert "not up" in lines["hc2-dev"]
    assert "get stacks`" not in printed.output, "no operator runs them"
    assert f"failed {failed.at:%Y-%m-%d %H:%M}" in lines["hc1-dev"]
    asked = [call for call in engine.calls if "export" in call]
    assert not any("hc2-dev" in call for call in asked), "the backend does not have it"
    of_the_operator = idstack("fleet", "status", "--environment", "prod").output
    assert "`kubectl --namespace idstack-fleet get stacks`" in " ".join(of_the_operator.split())


def test_the_status_looks_for_stacks_without_a_file_in_the_fleets_backend(
    project: Path, engine: FakeEngine, idstack: Idstack, monkeypatch: pytest.MonkeyPatch
) -> None:
    backends: list[str] = []

    def stacks(one: Engine) -> list[str]:
        backends.append(one.backend())
        return []

    monkeypatch.setattr(Engine, "stacks", stacks)
    idstack("fleet", "status", "--environment", "dev")

    assert backends == ["azblob://pulumi-state?storage_account=stidstackdev"]
    assert "PULUMI_BACKEND_URL" not in os.environ


def test_preparing_writes_the_files_and_makes_what_the_backend_lacks(
    project: Path, engine: FakeEngine, idstack: Idstack
) -> None:
    engine.has_stacks("shared-dev")
    printed = idstack("fleet", "prepare", "--environment", "dev")
    assert printed.code == 0, printed.error
    assert "stacks created: hc1-dev, hc2-dev" in printed.output
    made = [call for call in engine.calls if call.startswith("stack init ")]
    key = "azurekeyvault://kv-pulumi-dev.vault.azure.net/keys/pulumi"
    options = f"--no-select --secrets-provider {key} --non-interactive"
    assert made == [f"stack init {name}-dev {options}" for name in ("hc1", "hc2")]
    assert (project / "Pulumi.hc1-dev.yaml").read_text().startswith(f"secretsprovider: {key}\nconfig:\n")

    again = idstack("fleet", "prepare", "--environment", "dev")
    assert "files written: none" in again.output
    file = project / "Pulumi.hc1-dev.yaml"
    file.write_text(f"encryptedkey: abc=\n{file.read_text()}".replace("westeurope", "elsewhere"))
    printed = idstack("fleet", "prepare", "--environment", "dev")
    assert "files written: Pulumi.hc1-dev.yaml" in printed.output
    assert file.read_text().startswith("encryptedkey: abc=\n"), "what the engine has written stays"
    assert "elsewhere" not in file.read_text()
    for text, reason in (
        ("secretsprovider: passphrase\n", "has the secrets provider passphrase, and the fleet file azurekeyvault://"),
        ("a: [", "Pulumi.shared-dev.yaml cannot be read: line 1, column 5"),
    ):
        (project / "Pulumi.shared-dev.yaml").write_text(text)
        refused = idstack("fleet", "prepare", "--environment", "dev")
        assert (refused.code, reason in refused.error) == (1, True)
        assert (project / "Pulumi.shared-dev.yaml").read_text() == text


@pytest.mark.parametrize("words", [["prepare"], ["up", "--yes"], ["status"]])
@pytest.mark.parametrize("place", ["file", "variable"])
def test_another_backend_is_refused(
    project: Path, engine: FakeEngine, idstack: Idstack, monkeypatch: pytest.MonkeyPatch, place: str, words: list[str]
) -> None:
    said = "and PULUMI_BACKEND_URL is file:///elsewhere. A stack has one backend: `unset PULUMI_"
    if place == "file":
        (project / "Pulumi.hc1-dev.yaml").write_text("config:\n  idstack:backend: azblob://x?storage_account=older\n")
        said = "- Pulumi.hc1-dev.yaml: azblob://x?storage_account=older\nIf the states are there"
    else:
        monkeypatch.setenv("PULUMI_BACKEND_URL", "file:///elsewhere")
    before = {file.name: file.read_text() for file in project.iterdir()}

    printed = idstack("fleet", *words, "--environment", "dev")

    assert (printed.code, engine.calls) == (1, [])
    assert said in printed.error
    assert {file.name: file.read_text() for file in project.iterdir()} == before
