"""`idstack init`: what it asks, what it writes, and that nothing of somebody's is written over."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import yaml

from identity.settings.stack_file import written
from ops.first_stack.template import SAMPLE, stack_text
from ops.stack import plugins
from tests.unit.identity.settings.world import SUBSCRIPTION, TENANT
from tests.unit.ops.conftest import FakeEngine, Idstack

ZONE = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/dns/providers/Microsoft.Network/dnszones/dev.contoso.com"
BACKEND = "azblob://state?storage_account=contosostate"
OPTIONS = (
    *("--prefix", "contoso", "--location", "westeurope", "--management-cluster", "aks-dev/mgmt"),
    *("--dns-zone", ZONE, "--backend", BACKEND, "--yes"),
)


@pytest.fixture
def project(project: Path, monkeypatch: pytest.MonkeyPatch, engine: FakeEngine) -> Path:
    """An empty project, a passphrase, and a pipeline's login; `az` is not on PATH."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    for name in ("ARM_ENVIRONMENT", "PULUMI_BACKEND_URL", "PULUMI_CONFIG_PASSPHRASE_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ARM_TENANT_ID", TENANT.upper())
    monkeypatch.setenv("ARM_SUBSCRIPTION_ID", SUBSCRIPTION)
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "known")
    return project


def file(project: Path) -> Path:
    return project / "Pulumi.dev.yaml"


def test_one_command_writes_the_file_and_makes_the_stack(project: Path, idstack: Idstack, engine: FakeEngine) -> None:
    printed = idstack("init", "dev", *OPTIONS)

    assert (printed.code, printed.error) == (0, "")
    config = written(file(project).read_text())
    assert (config["tenantId"], config["subscriptionId"]) == (TENANT, SUBSCRIPTION)
    assert (config["backend"], config["resourceGroup"]) == (BACKEND, "contoso-dev")
    assert config["hostedClusters"][0]["name"] == "hc1"
    assert [call for call in engine.calls if call.startswith("stack init")] == [
        "stack init dev --no-select --non-interactive"
    ]
    for line in (
        "Pulumi.dev.yaml: written",
        f"stack dev: registered in {BACKEND}",
        "  for name in Microsoft.Compute Microsoft.ContainerService Microsoft.KeyVault Microsoft.ManagedIdentity "
        "Microsoft.Network Microsoft.Storage; do az provider register --wait --namespace $name; done",
        "  az group create --name contoso-dev --location westeurope",
        f"  Contributor at /subscriptions/{SUBSCRIPTION}",
        "  .venv/bin/idstack rbac <object id> --azure --principal-type ServicePrincipal --stack dev",
        "  .venv/bin/idstack preview --stack dev",
    ):
        assert line in printed.output.splitlines()


def test_the_login_of_the_azure_cli_is_taken_unless_a_variable_contradicts_it(
    project: Path, idstack: Idstack, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project.parent / "az"
    folder.mkdir()
    account = json.dumps({"tenantId": TENANT, "id": SUBSCRIPTION, "environmentName": "AzureUSGovernment"})
    (folder / "az").write_text(f"#!/bin/sh\n[ \"$*\" = 'account show --output json' ] && echo '{account}'\n")
    (folder / "az").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.delenv("ARM_SUBSCRIPTION_ID")
    monkeypatch.setenv("ARM_TENANT_ID", SUBSCRIPTION)

    printed = idstack("init", "dev", *OPTIONS)
    assert (printed.code, file(project).exists()) == (1, False)
    assert f"ARM_TENANT_ID is {SUBSCRIPTION}, and `az account show` says {TENANT}" in printed.error

    monkeypatch.delenv("ARM_TENANT_ID")
    assert idstack("init", "dev", *OPTIONS).code == 0
    config = written(file(project).read_text())
    assert (config["tenantId"], config["cloud"]) == (TENANT, "AzureUSGovernmentCloud")


def test_everything_that_is_missing_is_said_at_once(
    project: Path, idstack: Idstack, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ARM_SUBSCRIPTION_ID")

    printed = idstack("init", "dev", "--side", "stack", "--prefix", "Contoso", "--yes")

    assert printed.code == 1
    told = [line.strip().partition(":")[0] for line in printed.error.splitlines()]
    assert told == [
        "idstack",
        "--prefix",
        *(f"{option} is missing" for option in ("--location", "--management-cluster", "--dns-zone", "--backend")),
        "--image is missing",
        "the tenant and the subscription are unknown",
    ]
    assert "sign in with `az login`" in printed.error
    assert (list(project.iterdir()), engine.calls) == ([], [])


class Terminal(io.StringIO):
    """A standard input at which somebody sits."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_is_asked_until_an_answer_is_accepted(
    project: Path, idstack: Idstack, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = ["Contoso", "contoso", "westeurope", "stack", "", "aks-dev/mgmt", ZONE, BACKEND, "contoso.azurecr.io/p:1"]
    monkeypatch.setattr("sys.stdin", Terminal("\n".join(answers) + "\n"))

    printed = idstack("init", "dev")
    assert printed.code == 0, printed.error
    assert '--prefix: found "Contoso"; accepted: ' in printed.error
    config = written(file(project).read_text())
    assert (config["vault"]["name"], config["probe"]["image"]) == ("kv-contoso-dev", "contoso.azurecr.io/p:1")
    assert config["hostedClusters"][0]["name"] == "hc1"


_APART = "these options contradict each other; nothing was written. "


@pytest.mark.parametrize(
    ("name", "options", "passphrase", "told"),
    [
        *(
            ("dev", (option, value), "known", f'{option}: found "{value}"; accepted: ')
            for option, value in (
                ("--prefix", "a-b"),
                ("--location", "West Europe"),
                ("--cluster", "HC1"),
                ("--management-cluster", "mgmt"),
                ("--dns-zone", "dev.contoso.com"),
                ("--backend", "azblob"),
                ("--secrets-provider", "mykey"),
            )
        ),
        (
            "dev",
            ("--dns-zone", ZONE.replace(SUBSCRIPTION, TENANT)),
            "known",
            "idstack:hostedClusters[0].dns.publicZoneID\n",
        ),
        ("dev", ("--dns-zone", ZONE.replace(SUBSCRIPTION, TENANT)), "known", f"idstack: {_APART}"),
        ("dev", ("--prefix", "example"), "known", "idstack:vault.name\n"),
        ("dev", (), "", "idstack: PULUMI_CONFIG_PASSPHRASE is empty"),
        ("dev", (), None, "idstack: neither "),
        ("dev", (), "/missing", "idstack: PULUMI_CONFIG_PASSPHRASE_FILE is /missing, which is not a file"),
        ("local", (), "known", "`.venv/bin/idstack up --stack local` creates it"),
        ("local-x", (), "known", "another name"),
        ("Dev", (), "known", "accepted:"),
    ],
)
def test_what_is_refused_is_named_with_what_is_accepted_and_nothing_is_written(
    project: Path,
    idstack: Idstack,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    options: tuple[str, ...],
    passphrase: str | None,
    told: str,
) -> None:
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE")
    if passphrase is not None:
        is_file = passphrase.startswith("/")
        monkeypatch.setenv(f"PULUMI_CONFIG_PASSPHRASE{'_FILE' if is_file else ''}", passphrase)

    printed = idstack("init", name, *OPTIONS, *options)

    assert (printed.code, told in printed.error, list(project.iterdir())) == (1, True, []), printed.error


def test_a_key_of_a_vault_encrypts_the_state(
    project: Path, idstack: Idstack, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE")
    key = "azurekeyvault://kv-contoso.vault.azure.net/keys/pulumi"

    assert idstack("init", "dev", *OPTIONS, "--secrets-provider", key).code == 0
    assert yaml.safe_load(file(project).read_text())["secretsprovider"] == key
    assert f"stack init dev --no-select --secrets-provider {key} --non-interactive" in engine.calls
    assert idstack("init", "dev").code == 0, "the file names the key"
    other = idstack("init", "dev", "--secrets-provider", "awskms://x")
    assert (other.code, "Pulumi.dev.yaml names azurekeyvault://" in other.error) == (1, True)


@pytest.mark.parametrize("text", [stack_text(SAMPLE), "\n"], ids=["the sample", "an empty file"])
def test_a_second_run_goes_on_where_the_first_ended_and_then_changes_nothing(
    project: Path, idstack: Idstack, engine: FakeEngine, text: str
) -> None:
    file(project).write_text(text)  # which gives way
    engine.ends_with(1)
    assert idstack("init", "dev", *OPTIONS).code == 1
    assert written(file(project).read_text())["resourceGroup"] == "contoso-dev"
    engine.ends_with(0)
    assert "stack dev: registered" in idstack("init", "dev", "--yes").output
    file(project).write_text(file(project).read_text() + "encryptionsalt: v1:x\n")
    before = file(project).read_text()
    engine.has_stacks("dev")

    for arguments in (OPTIONS, ("--yes",)):
        printed = idstack("init", "dev", *arguments)
        assert (printed.code, printed.error) == (0, "")
        assert "Pulumi.dev.yaml: left as it is" in printed.output
    assert file(project).read_text() == before
    assert len([call for call in engine.calls if call.startswith("stack init")]) == 2


@pytest.mark.parametrize(
    ("text", "options", "told"),
    [
        (
            stack_text(SAMPLE).replace("eastus", "northeurope") + "  idstack:tags: {a: b}\n",
            OPTIONS,
            ["Pulumi.dev.yaml exists and differs from these options", "`mv Pulumi.dev.yaml Pulumi.dev.yaml.old`"],
        ),
        ("a: \xe9", OPTIONS, ["idstack: Pulumi.dev.yaml cannot be read: it is not encoded in UTF-8."]),
        (
            "config:\n  idstack:location: West Europe\n",
            ("--yes",),
            [
                "idstack:location\n",
                "`.venv/bin/idstack pulumi --stack dev -- config set location ",
                "Correct Pulumi.dev.yaml; then `.venv/bin/idstack init dev` continues\n",
            ],
        ),
    ],
    ids=["somebody's", "no file of a stack", "with problems"],
)
def test_a_file_that_is_there_is_judged_and_never_written_over(
    project: Path, idstack: Idstack, engine: FakeEngine, text: str, options: tuple[str, ...], told: list[str]
) -> None:
    file(project).write_text(text, encoding="latin-1")

    printed = idstack("init", "dev", *options)

    assert (printed.code, [line for line in told if line not in printed.error]) == (1, []), printed.error
    assert file(project).read_text(encoding="latin-1") == text
    assert not [call for call in engine.calls if call.startswith("stack init")]


def test_the_backend_is_recorded_in_a_file_that_names_none(project: Path, idstack: Idstack) -> None:
    idstack("init", "dev", *OPTIONS)
    whole = file(project).read_text()
    file(project).write_text("".join(line for line in whole.splitlines(keepends=True) if "backend" not in line))

    printed = idstack("init", "dev", "--yes", "--backend", BACKEND)
    assert "Pulumi.dev.yaml: the backend is recorded" in printed.output
    assert written(file(project).read_text()) == written(whole)
    other = idstack("init", "dev", "--yes", "--backend", "file:///elsewhere")
    assert (other.code, f"Pulumi.dev.yaml has idstack:backend: {BACKEND}" in other.error) == (1, True)


@pytest.mark.parametrize(
    ("options", "answer", "ends", "is_pinned"),
    [
        (("--yes", "--pin"), None, 0, True),
        (("--yes", "--pin"), None, 1, True),
        (("--yes",), None, 0, False),
        ((), "y", 0, True),
        ((), "n", 0, False),
    ],
)
def test_plugins_without_checksums_are_pinned_on_request_or_after_a_question(
    project: Path,
    idstack: Idstack,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    answer: str | None,
    ends: int,
    is_pinned: bool,
) -> None:
    pinned: list[str] = []

    def pin() -> int:
        pinned.append("pin")
        return ends

    monkeypatch.setattr("tools.pin.main", pin)
    monkeypatch.setattr(plugins, "cached", lambda *_: project / "nothing")
    if answer is not None:
        monkeypatch.setattr("sys.stdin", Terminal(f"{answer}\n"))

    printed = idstack("init", "dev", *OPTIONS[:-1], "--cluster", "hc1", "--side", "hypershift", *options)

    assert (printed.code, pinned) == (ends, ["pin"] if is_pinned else [])
    assert ("plugins: azure-native " in printed.output) != is_pinned
    assert ("have no checksum for this machine" in printed.error) == (answer is not None)
    assert ("`.venv/bin/idstack init dev --pin` tries again" in printed.error) == bool(ends)
