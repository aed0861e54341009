"""What a stack's file records: one backend for every user, and a secrets provider that is none without a passphrase."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ops.stack.engine import Engine
from ops.stack.environment import ROOT
from ops.stack.errors import CommandError
from ops.stack.stack_document import BACKEND_VARIABLE, backend_of, recorded, require_passphrase, with_backend
from tests.unit.ops.conftest import FakeEngine

AZURE = "azblob://pulumi-state?storage_account=stdev"
OTHER = "file:///srv/states"
TEXT = (
    "# Of the team.\nsecretsprovider: azurekeyvault://kv/keys/k\nconfig: # ours\n  # First.\n  idstack:protect: false\n"
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a stack `dev` whose backend is recorded, and a stack `new` without one."""
    (tmp_path / "Pulumi.dev.yaml").write_text(with_backend(TEXT, AZURE), encoding="utf-8")
    (tmp_path / "Pulumi.new.yaml").write_text(TEXT, encoding="utf-8")
    return tmp_path


def test_a_recorded_backend_is_read_back_and_all_else_stays(project: Path) -> None:
    assert recorded("dev", project) == AZURE
    assert with_backend(TEXT, AZURE) == TEXT.replace(
        "config: # ours\n", f"config: # ours\n  idstack:backend: {AZURE}\n"
    )
    assert with_backend(with_backend(TEXT, AZURE), OTHER) == with_backend(TEXT, OTHER), "another takes its place"


@pytest.mark.parametrize("text", ["", "config: {}\n", "runtime: python\n"], ids=["empty", "flow", "no config"])
def test_a_file_without_a_block_of_settings_is_no_place_for_a_record(text: str) -> None:
    with pytest.raises(ValueError, match="it has no block `config:`"):
        with_backend(text, AZURE)


@pytest.mark.parametrize(
    ("stack", "variable", "expected"),
    [
        ("dev", None, AZURE),
        ("dev", "", AZURE),
        ("dev", AZURE, AZURE),
        ("new", OTHER, OTHER),
        ("new", None, None),
        ("unknown", OTHER, OTHER),
    ],
    ids=["recorded", "empty variable", "both equal", "variable", "neither", "no file"],
)
def test_the_file_or_the_variable_names_the_backend(
    project: Path, stack: str, variable: str | None, expected: str | None
) -> None:
    base = {} if variable is None else {BACKEND_VARIABLE: variable}

    assert backend_of(stack, project, base) == expected


def test_every_command_of_a_stack_has_the_backend_of_its_file_or_is_refused(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(BACKEND_VARIABLE, raising=False)
    (project / "Pulumi.hc1.yaml").write_text(with_backend(TEXT, OTHER), encoding="utf-8")
    for engine in (Engine("dev", project), Engine("hc1", project, beside="dev")):
        assert engine.environment[BACKEND_VARIABLE] == AZURE
    for stack in ("stage", "prod"):
        assert recorded(stack, ROOT) == f"azblob://pulumi-state?storage_account=example{stack}state"
    with pytest.raises(CommandError) as refused:
        backend_of("dev", project, {BACKEND_VARIABLE: OTHER})

    assert str(refused.value) == (
        f"Pulumi.dev.yaml says that the state of dev is in {AZURE}, and PULUMI_BACKEND_URL is {OTHER}. A stack has one "
        "backend: `unset PULUMI_BACKEND_URL`, or, if the state has moved there, correct idstack:backend in the file. "
        "Nothing was started"
    )


@pytest.mark.parametrize("variable", ["stack=dev", "args=--refresh", "cluster=apiserver"])
def test_make_refuses_a_variable_in_small_letters(variable: str) -> None:
    done = subprocess.run(["make", "-n", "up", variable], cwd=ROOT, capture_output=True, text=True)

    assert done.returncode == 2
    assert f"{variable} is read by nothing: write the name in capital letters" in done.stderr


_KEY = "secretsprovider: azurekeyvault://kv.vault.azure.net/keys/pulumi\nencryptedkey: x\n"
_FILE = "PULUMI_CONFIG_PASSPHRASE_FILE"


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
    one = {"PULUMI_CONFIG_PASSPHRASE": "one"}
    for found in ({}, one, {**one, _FILE: "/dev/null"}, {_FILE: ""}, {_FILE: "/nowhere/at/all"}):
        require_passphrase(configuration, "dev", found)  # the engine reads or refuses that itself

    with pytest.raises(
        CommandError, match=r"the stack dev has no key service .*, and PULUMI_CONFIG_PASSPHRASE is empty"
    ):
        require_passphrase(configuration, "dev", {"PULUMI_CONFIG_PASSPHRASE": value})

    file = configuration.with_name("passphrase")
    file.write_text(value, encoding="utf-8")
    with pytest.raises(
        CommandError, match=r"the file of PULUMI_CONFIG_PASSPHRASE_FILE is empty: .*change-secrets-prov"
    ):
        require_passphrase(configuration, "dev", {_FILE: str(file)})
    configuration.write_text(_KEY, encoding="utf-8")
    require_passphrase(configuration, "dev", {"PULUMI_CONFIG_PASSPHRASE": value})


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
