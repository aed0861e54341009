"""An empty passphrase, which the engine accepts, is refused before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.stack_document import require_passphrase
from tests.unit.ops.conftest import FakeEngine

_KEY = "secretsprovider: azurekeyvault://kv.vault.azure.net/keys/pulumi\nencryptedkey: x\n"


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    """A stack's file, which names no key service."""
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text("encryptionsalt: v1:x\nconfig:\n  idstack:cloud: AzurePublicCloud\n", encoding="utf-8")
    return file


@pytest.mark.parametrize("value", ["", "  ", "\n"])
@pytest.mark.parametrize("provider", ["", "secretsprovider: passphrase\n", "secretsprovider: default\n"])
def test_an_empty_passphrase_is_refused_with_the_way_to_a_key(configuration: Path, provider: str, value: str) -> None:
    configuration.write_text(provider + configuration.read_text(encoding="utf-8"), encoding="utf-8")

    with pytest.raises(
        CommandError, match=r"the stack dev has no key service .*, and PULUMI_CONFIG_PASSPHRASE is empty"
    ):
        require_passphrase(configuration, "dev", {"PULUMI_CONFIG_PASSPHRASE": value})

    file = configuration.with_name("passphrase")
    file.write_text(value, encoding="utf-8")
    with pytest.raises(
        CommandError, match=r"the file of PULUMI_CONFIG_PASSPHRASE_FILE is empty: .*change-secrets-prov"
    ):
        require_passphrase(configuration, "dev", {"PULUMI_CONFIG_PASSPHRASE_FILE": str(file)})
    configuration.write_text(_KEY, encoding="utf-8")
    require_passphrase(configuration, "dev", {"PULUMI_CONFIG_PASSPHRASE": value})


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"PULUMI_CONFIG_PASSPHRASE": "one"},
        {"PULUMI_CONFIG_PASSPHRASE": "one", "PULUMI_CONFIG_PASSPHRASE_FILE": "/dev/null"},
        {"PULUMI_CONFIG_PASSPHRASE_FILE": ""},
        {"PULUMI_CONFIG_PASSPHRASE_FILE": "/nowhere/at/all"},
    ],
)
def test_what_the_engine_reads_or_refuses_itself_passes(configuration: Path, environment: Mapping[str, str]) -> None:
    require_passphrase(configuration, "dev", environment)


def test_up_refuses_before_the_engine_runs(
    engine: FakeEngine, configuration: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "")
    dev = Engine("dev", configuration.parent)

    for command in (dev.up, dev.preview):
        with pytest.raises(CommandError, match="PULUMI_CONFIG_PASSPHRASE is empty"):
            command()
    assert engine.calls == []

    dev.destroy()
    assert engine.calls == ["destroy --stack dev"]
