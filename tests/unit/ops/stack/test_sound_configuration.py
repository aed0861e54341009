"""The stack's file is judged before anything else is asked: no plugin, no login, no network, no local cloud."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from ops.stack import environment
from ops.stack.engine import Engine
from ops.stack.environment import ROOT
from ops.stack.errors import CommandError
from ops.stack.settings import require_sound_configuration
from tests.unit.ops.conftest import Idstack


@pytest.fixture
def nothing_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that is not there, no plugin, no local cloud."""
    (tmp_path / "engine.json").write_text(json.dumps({"bin": str(tmp_path / "nowhere")}))
    monkeypatch.setattr(environment, "_ENGINE_RECORD", tmp_path / "engine.json")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LOCALCLOUD_STATE_DIR", str(tmp_path / "state"))


@pytest.mark.parametrize(
    "words",
    [("up",), ("preview",), ("import", "azure-native:keyvault:Vault", "vault", "/id")],
    ids=lambda words: words[0],
)
@pytest.mark.usefixtures("nothing_starts")
def test_the_report_comes_before_login_and_plugins(idstack: Idstack, words: tuple[str, ...]) -> None:
    printed = idstack(*words, "--stack", "dev")

    assert (printed.code, printed.output) == (1, "")
    assert printed.error.startswith("idstack: The stack's configuration has ")
    assert "fix:      `idstack pulumi --stack dev -- config set tenantId <uuid>`" in printed.error


@pytest.mark.parametrize("command", ["up", "preview", "status", "down", "doctor", "rotate", "renew", "graph", "backup"])
@pytest.mark.usefixtures("nothing_starts")
def test_a_typing_error_in_the_stack_comes_first_of_all(idstack: Idstack, command: str) -> None:
    printed = idstack(command, "--stack", "dve")

    assert (printed.code, printed.output) == (1, "")
    assert printed.error.startswith("idstack: there is no stack dve: the project has no Pulumi.dve.yaml; did you mean")


@pytest.mark.usefixtures("nothing_starts")
def test_the_local_sample_is_sound_before_there_is_a_local_cloud() -> None:
    require_sound_configuration(Engine("local", ROOT))


@pytest.mark.usefixtures("nothing_starts")
def test_a_date_is_a_text_and_a_key_without_a_value_is_left_out(tmp_path: Path) -> None:
    sample = (ROOT / "Pulumi.local.yaml").read_text()
    tagged = sample.replace("    environment: local\n", "    made: 2026-11-26\n  idstack:keyVaultUserScope:\n")
    (tmp_path / "Pulumi.local.yaml").write_text(tagged)

    require_sound_configuration(Engine("local", tmp_path))


@pytest.mark.usefixtures("nothing_starts")
def test_a_local_stack_with_another_cloud_is_refused(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.local.yaml").write_text("config:\n  idstack:cloud: AzurePublicCloud\n")

    with pytest.raises(CommandError, match="its stack has the name of a local stack"):
        require_sound_configuration(Engine("local", tmp_path))


@pytest.mark.usefixtures("nothing_starts")
def test_what_the_file_has_encrypted_is_left_to_the_program(tmp_path: Path) -> None:
    document = yaml.safe_load((ROOT / "Pulumi.dev.yaml").read_text())
    document["config"]["idstack:location"] = {"secure": "v1:abc"}
    (tmp_path / "Pulumi.dev.yaml").write_text(yaml.safe_dump(document))

    require_sound_configuration(Engine("dev", tmp_path))
