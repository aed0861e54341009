"""The stack's file is judged before anything else is asked: no plugin, no login, no network, no local cloud."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final
from uuid import UUID

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
    [("up",), ("preview",), ("import", "azure-native:keyvault:Vault", "vault", "/id"), ("rbac", str(UUID(int=1)))],
    ids=lambda words: words[0],
)
@pytest.mark.usefixtures("nothing_starts")
def test_the_report_comes_before_login_and_plugins(idstack: Idstack, words: tuple[str, ...]) -> None:
    printed = idstack(*words, "--stack", "dev")

    assert (printed.code, printed.output) == (1, "")
    assert printed.error.startswith(
        "idstack: Pulumi.dev.yaml is an example, whose placeholders nobody has filled in. `.venv/bin/idstack init <"
    )
    assert "fix:      `.venv/bin/idstack pulumi --stack dev -- config set tenantId <uuid>`" in printed.error


@pytest.mark.parametrize("command", ["up", "preview", "status", "down", "doctor", "rotate", "renew", "graph", "backup"])
@pytest.mark.usefixtures("nothing_starts")
def test_a_typing_error_in_the_stack_comes_first_of_all(idstack: Idstack, command: str) -> None:
    printed = idstack(command, "--stack", "dve")

    assert (printed.code, printed.output) == (1, "")
    assert printed.error.startswith("idstack: there is no stack dve: the project has no Pulumi.dve.yaml; did you mean")


_SAMPLE: Final = (ROOT / "Pulumi.local.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"\ufeff{_SAMPLE}", "Pulumi.local.yaml begins with a byte order mark; save it as UTF-8 without one"),
        (
            f"{_SAMPLE}  idstack:cloud: local\n",
            "Pulumi.local.yaml cannot be read: .*: the key idstack:cloud occurs",
        ),
        ("", "Pulumi.local.yaml is empty, or has nothing under `config:`; copy Pulumi.local.yaml"),
        ("config:\n", "Pulumi.local.yaml is empty"),
        (f"{_SAMPLE}  idstak:tags: {{}}\n", "idstak:tags\n  found:    a key that nothing reads\n(?s:.*) idstack:tags$"),
        (f"{_SAMPLE}  aws:region: x\n", None),
        (_SAMPLE, None),
        # A date is a text, and a key without a value is left out.
        (_SAMPLE.replace("    environment: local\n", "    made: 2026-11-26\n  idstack:keyVaultUserScope:\n"), None),
        ("config:\n  idstack:cloud: AzurePublicCloud\n", "its stack has the name of a local stack"),
    ],
)
@pytest.mark.usefixtures("nothing_starts")
def test_what_an_editor_makes_of_a_file_is_refused_by_its_name(tmp_path: Path, text: str, said: str | None) -> None:
    (tmp_path / "Pulumi.local.yaml").write_text(text, encoding="utf-8")

    with pytest.raises(CommandError, match=said) if said else nullcontext():
        require_sound_configuration(Engine("local", tmp_path))
    document = yaml.safe_load((ROOT / "Pulumi.dev.yaml").read_text())
    document["config"]["idstack:location"] = {"secure": "v1:abc"}
    (tmp_path / "Pulumi.dev.yaml").write_text(yaml.safe_dump(document))
    require_sound_configuration(Engine("dev", tmp_path))  # what is encrypted is left to the program


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.usefixtures("nothing_starts")
def test_what_never_changes_is_said_before_what_the_change_would_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    changed = _SAMPLE.replace("    - name: hc1\n", "    - name: hc1\n      authentication: workload-identities\n")
    (tmp_path / "Pulumi.local.yaml").write_text(changed, encoding="utf-8")

    def outputs(_: Engine) -> object:
        if not is_known:
            raise CommandError("there is no login")
        azure: dict[str, Any] = {"azureAuthenticationConfig": {"managedIdentities": {}}}
        return {"hostedClusters": {"hc1": {"hostedClusterSpec": {"platform": {"azure": azure}}}}}

    monkeypatch.setattr(Engine, "outputs", outputs)

    with pytest.raises(CommandError) as refused:
        require_sound_configuration(Engine("local", tmp_path))

    never = "found:    workload-identities, but hc1 was made with managed-identities"
    other = "accepted: nothing with authentication: workload-identities"
    assert (never in str(refused.value), other in str(refused.value)) == (is_known, not is_known)
