"""`python -m localcloud exec` for real: clients of Azure, unmodified, in the environment that it makes."""

from __future__ import annotations

import json
import subprocess
import sys
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import pkcs12

from localcloud.core.clouds import LocalEnvironment
from localcloud.runtime.client_environment import UnknownClientError, holder_of
from localcloud.testing.arm import ArmWorld
from localcloud.testing.running import execute
from tests.source import PACKAGES

# An SDK's client as its documentation has it: Azure's names, and a credential from the environment.
CLIENT = """
import json, os, sys
from azure.identity import EnvironmentCredential
from azure.keyvault.secrets import SecretClient

with EnvironmentCredential() as credential:
    vault = SecretClient("https://kv-etcd-local.vault.azure.net", credential)
    vault.set_secret(sys.argv[1], sys.argv[2])
    names = {name: value for name, value in os.environ.items() if name.startswith(("ARM_", "AZURE_", "KUBE"))}
    print(json.dumps({"id": vault.get_secret(sys.argv[1]).id, "names": names, "directory": os.getcwd()}))
"""
FAKE_AZ = """#!/bin/sh
echo "$AZURE_CONFIG_DIR $*" >> "{record}"
"""


@pytest.fixture(scope="module")
def printed(local_cloud: LocalEnvironment, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    done = execute(
        local_cloud, "--", sys.executable, "-c", CLIENT, "seen", "by an SDK", directory=tmp_path_factory.mktemp("own")
    )
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_an_sdk_finds_azures_names_and_a_credential(printed: Mapping[str, Any], local_cloud: LocalEnvironment) -> None:
    assert printed["id"].startswith("https://kv-etcd-local.vault.azure.net/secrets/seen/")
    names = printed["names"]
    for prefix in ("ARM", "AZURE"):
        assert names[f"{prefix}_CLIENT_ID"] == local_cloud.deployer_client_id
        assert names[f"{prefix}_TENANT_ID"] == local_cloud.tenant_id
        assert names[f"{prefix}_SUBSCRIPTION_ID"] == local_cloud.subscription_id
    assert names["KUBECONFIG"] == local_cloud.kubeconfig


def test_the_command_runs_where_it_is_called(printed: Mapping[str, Any]) -> None:
    assert Path(printed["directory"]).name.startswith("own")


def test_nothing_of_the_sign_in_is_left(printed: Mapping[str, Any]) -> None:
    for name in ("AZURE_CLIENT_CERTIFICATE_PATH", "ARM_CLIENT_CERTIFICATE_PATH", "AZURE_CONFIG_DIR"):
        assert not Path(printed["names"][name]).parent.exists()


def test_the_files_have_the_key_in_each_form(local_cloud: LocalEnvironment) -> None:
    show = 'cat "$AZURE_CLIENT_CERTIFICATE_PATH"; base64 -w 0 "$ARM_CLIENT_CERTIFICATE_PATH"'
    done = execute(local_cloud, "--", "sh", "-c", show)
    *pem, pfx = done.stdout.splitlines()

    key, certificate, _ = pkcs12.load_key_and_certificates(b64decode(pfx), None)
    assert key is not None
    assert certificate is not None
    assert "\n".join(pem).count("BEGIN PRIVATE KEY") == 1


def test_the_azure_cli_is_signed_in_before_the_command(local_cloud: LocalEnvironment, tmp_path: Path) -> None:
    record = tmp_path / "record"
    fake = tmp_path / "az"
    fake.write_text(FAKE_AZ.format(record=record))
    fake.chmod(0o755)

    done = execute(local_cloud, "--", "az", "account", "show", path=tmp_path)

    assert done.returncode == 0, done.stderr
    signed_in, shown = record.read_text().splitlines()
    assert f" login --service-principal --username {local_cloud.deployer_client_id} " in signed_in
    assert shown.split() == [signed_in.split()[0], "account", "show"], "the same directory of the CLI's own"


def test_the_end_of_the_command_is_passed_on(local_cloud: LocalEnvironment) -> None:
    assert execute(local_cloud, "--", "sh", "-c", "exit 7").returncode == 7
    missing = execute(local_cloud, "--", "no-such-command")
    assert (missing.returncode, missing.stderr) == (127, "no-such-command: not found\n")


def test_an_identity_signs_in_with_its_document(local_cloud: LocalEnvironment, tmp_path: Path) -> None:
    document = Path(local_cloud.state_dir, "run/msi/hc1-image-registry.json").read_text()
    stored = execute(local_cloud, "--", sys.executable, "-c", CLIENT, "registry", document)
    assert stored.returncode == 0, stored.stderr

    done = execute(local_cloud, "--as", "kv-etcd-local/registry", "--", "printenv", "AZURE_CLIENT_ID")

    assert done.stdout.strip() == json.loads(document)["client_id"]


# Reads a key, for which nobody has a role but who administers vaults, and takes the deployer's application its name.
ADMINISTER = """
import sys
import httpx
from azure.identity import EnvironmentCredential

def asked(method, url, audience, **given):
    token = credential.get_token(f"{audience}/.default").token
    return httpx.request(method, url, headers={"Authorization": f"Bearer {token}"}, **given)

with EnvironmentCredential() as credential:
    vault = "https://kv-etcd-local.vault.azure.net/keys/hc1-etcd?api-version=7.4"
    application = f"https://graph.microsoft.com/v1.0/applications(appId='{sys.argv[1]}')"
    changed = {"displayName": "deployer"}
    print(asked("GET", vault, "https://vault.azure.net").status_code)
    print(asked("PATCH", application, "https://graph.microsoft.com", json=changed).status_code)
"""


def test_the_owner_does_what_the_deployer_may_not(local_cloud: LocalEnvironment) -> None:
    administer = ["--", sys.executable, "-c", ADMINISTER, local_cloud.deployer_client_id]

    as_deployer = execute(local_cloud, *administer)
    as_owner = [execute(local_cloud, "--as", "owner", *administer) for _ in range(2)]

    assert as_deployer.stdout.split() == ["403", "403"], as_deployer.stderr
    assert [done.stdout.split() for done in as_owner] == [["200", "204"]] * 2, as_owner[0].stderr


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("kv-none/a", "no vault kv-none; there "),
        ("kv-etcd-local/none", "no secret none in kv-etcd-local; there "),
    ],
)
def test_nobody_signs_in_with_what_is_no_document(local_cloud: LocalEnvironment, name: str, problem: str) -> None:
    done = execute(local_cloud, "--as", name, "--", "true")

    assert done.returncode == 1
    assert done.stderr.startswith(f"--as {name}: {problem}")
    assert "kv-etcd-local" in done.stderr


def test_without_a_stack_the_vault_must_be_named(world: ArmWorld) -> None:
    with pytest.raises(UnknownClientError, match="there is no stack, or there are several: name the vault as well"):
        holder_of(world.cloud, "none")


def test_the_stacks_own_vault_needs_no_name(world: ArmWorld) -> None:
    world.create_vault()

    with pytest.raises(UnknownClientError, match="no secret none in kv-idstack-local"):
        holder_of(world.cloud, "none")


def test_a_secret_that_is_no_document_is_named(local_cloud: LocalEnvironment, printed: Mapping[str, Any]) -> None:
    done = execute(local_cloud, "--as", "kv-etcd-local/seen", "--", "true")

    assert done.stderr == "--as kv-etcd-local/seen: the secret seen in kv-etcd-local is not a credential document\n"


def test_without_a_local_cloud_nothing_runs(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "localcloud", "--state-dir", str(tmp_path / "none"), "exec", "--", "true"]
    done = subprocess.run(line, cwd=PACKAGES, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "start` makes one" in done.stderr
