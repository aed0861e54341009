"""What the commands of a stack run with: engine, backend, plugins, and whose account."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from ops.stack import environment
from ops.stack.environment import ROOT, LocalPaths, local_paths, variables
from ops.stack.errors import CommandError
from tests.records import write_record
from tests.unit.ops.stacks import local_environment

EMULATED = ["pulumi-resource-azure-native", "pulumi-resource-azuread", "pulumi-resource-kubernetes"]
# What a person has who works with a real cloud.
CALLER = {
    "HOME": "/home/somebody",
    "PATH": "/usr/bin:/bin",
    "PULUMI_HOME": "/home/somebody/.pulumi",
    "PULUMI_BACKEND_URL": "azblob://pulumi-state",
    "PULUMI_IGNORE_AMBIENT_PLUGINS": "false",
}


@pytest.fixture
def local(tmp_path: Path) -> dict[str, str]:
    """A caller whose local cloud lives in a directory of the test."""
    return {**CALLER, "LOCALCLOUD_STATE_DIR": str(tmp_path)}


NOT_LOCAL = ["dev", "unknown", "organization/idstack/local", "locale", "local-", "local.hc1", "localhost", "Local"]


@pytest.mark.parametrize("stack", ["local", "local-hc1", *NOT_LOCAL])
def test_no_stack_takes_plugins_on_path_or_downloads_them(local: dict[str, str], stack: str) -> None:
    found = variables(stack, {**local, "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "false"})
    assert (found["PULUMI_HOME"] == CALLER["PULUMI_HOME"]) == (stack in NOT_LOCAL), "where the emulated ones are not"
    assert found["PULUMI_IGNORE_AMBIENT_PLUGINS"] == found["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] == "true"
    assert [shutil.which(plugin, path=found["PATH"]) for plugin in EMULATED] == [None] * 3


def test_a_local_stack_has_home_and_backend_of_its_own_and_every_other_one_the_callers(
    local: dict[str, str], tmp_path: Path
) -> None:
    assert (
        variables("local", local).items()
        >= {
            "PULUMI_HOME": f"{tmp_path}/pulumi/home",
            "PULUMI_BACKEND_URL": f"file://{tmp_path}/pulumi/backend?metadata=skip",
            "PULUMI_CONFIG_PASSPHRASE_FILE": f"{tmp_path}/pulumi/passphrase",
            "IDSTACK_LOCAL_ENVIRONMENT": f"{tmp_path}/environment.json",
        }.items()
    )
    assert local_paths({}).state == ROOT / ".localcloud"
    chosen = {"IDSTACK_TOKEN_CACHE": "/somewhere", "PULUMI_OPTION_REFRESH": "true", "GODEBUG": "netdns=go"}
    others = variables("dev", {**local, **chosen})
    assert (
        others.items() >= {**chosen, **{name: CALLER[name] for name in ("PULUMI_HOME", "PULUMI_BACKEND_URL")}}.items()
    )
    assert "PULUMI_CONFIG_PASSPHRASE_FILE" not in others


@pytest.mark.parametrize(
    "name",
    [
        *("AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_TENANT_ID", "AZURE_AUTHORITY_HOST", "AZURE_CONFIG_DIR"),
        *("ARM_CLIENT_SECRET", "ARM_USE_OIDC", "ARM_METADATA_HOSTNAME", "AAD_CLIENT_ID", "AAD_CLIENT_CERT_PATH"),
        *("KUBECONFIG", "PULUMI_ACCESS_TOKEN", "PULUMI_CONFIG_PASSPHRASE", "PULUMI_STACK"),
        *("HTTPS_PROXY", "https_proxy"),
    ],
)
def test_another_accounts_variables_do_not_reach_the_local_stack(local: dict[str, str], name: str) -> None:
    stray = {**local, name: "somebody's"}
    assert name not in variables("local", stray)
    assert variables("dev", stray)[name] == "somebody's"


def test_the_local_stack_signs_in_as_the_deployer_of_the_local_cloud(local: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "environment.json").write_text('{"tenantId": "10ca1000-0000-4000-8000-000000000001"}')
    assert "ARM_TENANT_ID" not in variables("local", local), "a local cloud of another release can be started"
    record = local_environment(tmp_path, tmp_path / "kubeconfig")
    write_record(tmp_path / "environment.json", record)
    stray = {**local, "ARM_TENANT_ID": "somebody's", "SSL_CERT_FILE": "somebody's"}

    own = variables("local", stray)

    assert {name: value for name, value in own.items() if name.startswith(("AAD_", "ARM_", "AZURE_"))} == {
        "ARM_TENANT_ID": "10ca1000-0000-4000-8000-000000000001",
        "ARM_SUBSCRIPTION_ID": "10ca1000-0000-4000-8000-000000000002",
        "ARM_CLIENT_ID": "6f2c1e7a-0000-4000-8000-00000000dddd",
        "ARM_CLIENT_CERTIFICATE_PATH": f"{tmp_path}/deployer.pem",
    }
    assert own["SSL_CERT_FILE"] == own["REQUESTS_CA_BUNDLE"] == f"{tmp_path}/ca.pem"
    assert variables("dev", stray)["ARM_TENANT_ID"] == "somebody's"


@pytest.mark.parametrize("stack", ["local", "dev"])
def test_nothing_gives_the_program_another_interpreter_or_cloud(local: dict[str, str], stack: str) -> None:
    names = ("PULUMI_PYTHON_CMD", "PYTHONHOME", "PYTHONINSPECT", "PYTHONSAFEPATH", "IDSTACK_LOCAL_ENVIRONMENT")
    assert "/somewhere" not in variables(stack, {**local, **dict.fromkeys(names, "/somewhere")}).values()


def test_the_engine_makes_32_calls_at_once_unless_the_caller_sets_it(local: dict[str, str]) -> None:
    assert variables("dev", local)["PULUMI_PARALLEL"] == "32"
    assert variables("dev", {**local, "PULUMI_PARALLEL": "4"})["PULUMI_PARALLEL"] == "4"


def test_before_set_up_there_is_one_thing_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(environment, "_ENGINE_RECORD", tmp_path / "engine.json")
    with pytest.raises(CommandError, match="run `make setup`"):
        variables("dev", CALLER)


def test_the_passphrase_is_made_once_and_its_owners_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(Path(f"/proc/self/fd/{handle}").readlink()))
    paths = LocalPaths(tmp_path / "state")
    paths.create()
    made = paths.passphrase.read_text()
    paths.create()

    folder = paths.passphrase.parent
    assert [path.parent for path in synced] == [folder, folder.parent], "a loss of power leaves it"
    assert len(made) >= 32
    assert paths.passphrase.read_text() == made
    assert stat.S_IMODE(paths.passphrase.stat().st_mode) == 0o600
    for directory in (paths.state, paths.engine, paths.backend, paths.home):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "name",
    [
        *("IDSTACK_CLOCK", "IDSTACK_RENEWALS", "IDSTACK_ANYTHING", "SSLKEYLOGFILE", "GODEBUG"),
        *("PULUMI_DEBUG_GRPC", "PULUMI_DEBUG_PROVIDERS", "PULUMI_TRACING_HEADER", "PULUMI_OPTION_SHOW_SECRETS"),
        *("PULUMI_OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"),
        *("AZURE_GO_SDK_LOG_LEVEL", "AZURE_GO_SDK_LOG_FILE", "AZURE_SDK_GO_LOGGING", "GRPC_GO_LOG_SEVERITY_LEVEL"),
        *("TF_LOG", "TF_LOG_PATH", "GRPC_TRACE", "GRPC_VERBOSITY"),
    ],
)
def test_what_tests_and_debugging_set_does_not_reach_a_stack_on_azure(local: dict[str, str], name: str) -> None:
    stray = {**local, name: "http2debug=2"}
    assert name not in variables("dev", stray)
    assert name.startswith("AZURE_") or variables("local", stray)[name] == "http2debug=2"
