"""`python -m localcloud` for real: start, seed, sign in, stop; nothing of it is left behind."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from azure.core.exceptions import HttpResponseError
from azure.keyvault.keys import KeyClient

from localcloud.core import processes
from localcloud.core.clouds import LocalEnvironment
from localcloud.core.state_directory import StateDirectory
from localcloud.runtime.lifecycle import NotStartedError, services
from localcloud.runtime.seed_file import DEFAULT as SEED
from tests.source import PACKAGES
from tests.token_client import deployer_credential

pytestmark = pytest.mark.slow


class LocalCloudCommand:
    """The command line for one state directory."""

    def __init__(self, root: Path) -> None:
        self.state = StateDirectory(root)

    def __call__(self, *arguments: str, expect: int = 0) -> str:
        line = [sys.executable, "-m", "localcloud", "--state-dir", str(self.state.root), *arguments]
        done = subprocess.run(line, cwd=PACKAGES, capture_output=True, text=True, check=False)
        assert done.returncode == expect, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture
def command(tmp_path: Path) -> Iterator[LocalCloudCommand]:
    made = LocalCloudCommand(tmp_path / "state")
    yield made
    if made.state.root.exists():
        made("stop")


def test_start_and_stop_can_be_repeated_and_leave_nothing(command: LocalCloudCommand) -> None:
    state = command.state
    assert command("stop") == f"no local cloud in {state.root}\n"
    assert "start` makes one" in command("env", expect=1)

    assert "started daemon and kubelet" in command("start")
    daemon, kubelet = (processes.alive(state.pids, name) for name in ("daemon", "kubelet"))
    assert daemon is not None
    assert kubelet is not None
    assert "runs already" in command("start")
    assert f"as process {daemon.pid}" in command("run", expect=1)
    environment = command("env", "--json")
    assert json.loads(environment)["stateDir"] == str(state.root)

    assert "ended kubelet, daemon" in command("stop")
    assert not daemon.is_alive()
    assert not kubelet.is_alive()
    assert "did not run" in command("stop")

    command("start")
    assert command("env", "--json") == environment, "a restart changes no address"
    run = state.run.resolve()
    assert f"removed {state.root}" in command("stop", "--remove")
    assert not state.root.exists()
    assert not run.exists()


def test_what_another_release_started_is_restarted(command: LocalCloudCommand) -> None:
    command("start")
    environment = command("env", "--json")
    before = processes.alive(command.state.pids, "daemon")
    earlier = {name: load for name, load in json.loads(environment).items() if name != "blobEndpoint"}
    command.state.environment_file.write_text(json.dumps(earlier), encoding="utf-8")
    assert "is not a record of the local cloud" in command("env", expect=1)

    assert "started daemon and kubelet" in command("start")

    assert before is not None
    assert not before.is_alive()
    assert command("env", "--json") == environment, "the addresses stay"


def test_a_start_with_a_taken_port_fails_and_harms_no_other_process(command: LocalCloudCommand) -> None:
    command("seed")
    port = int(LocalEnvironment.from_file(command.state.environment_file).arm_endpoint.rpartition(":")[2])

    with socket.create_server(("127.0.0.1", port)):
        output = command("start", expect=1)

    assert f"port {port} of the local arm service is in use by another process" in output
    assert processes.alive(command.state.pids, "daemon") is None


def test_a_start_waits_for_no_service_that_is_held(command: LocalCloudCommand, tmp_path: Path) -> None:
    command("start")
    faults = tmp_path / "faults.yaml"
    faults.write_text("expired_tls: [arm]\nanswers: [{service: graph, status: null}]\n", encoding="utf-8")
    command("faults", "--hold", str(faults))
    assert "runs already" in command("start")

    daemon = processes.alive(command.state.pids, "daemon")
    assert daemon is not None
    daemon.end(grace=30)
    assert "started daemon" in command("start")
    command("faults", "--clear")
    assert "runs already" in command("start")


def test_a_start_notices_that_a_process_which_ran_already_has_ended(command: LocalCloudCommand) -> None:
    command("start")
    daemon = processes.alive(command.state.pids, "daemon")
    assert daemon is not None
    daemon.end(grace=30)
    with pytest.raises(NotStartedError, match="daemon ended before it answered; start it again"):
        services(command.state, None)


def test_a_store_that_is_cut_short_is_named_and_a_copy_of_it_goes_on(command: LocalCloudCommand) -> None:
    command("seed")
    whole, contents = command.state.store_file.read_bytes(), command("contents")
    command.state.store_file.write_bytes(whole[: len(whole) // 3])

    for said in (command("start", expect=1), command("run", expect=1), command("seed", expect=1)):
        assert f"{command.state.store_file} is damaged (" in said
        assert "put a copy of the file back, or remove this local cloud with `localcloud stop --remove`" in said
        assert "Traceback" not in said
    command.state.store_file.write_bytes(whole)
    assert command("contents") == contents


def test_a_disk_without_space_stops_writes_and_loses_nothing(command: LocalCloudCommand, tmp_path: Path) -> None:
    seed = tmp_path / "seed.yaml"
    seed.write_text(SEED.read_text(encoding="utf-8") + "faults: {disk: full}\n", encoding="utf-8")
    command("seed", "--seed", str(seed))
    assert json.loads(command("faults")) == {"disk": "full"}
    contents = command("contents")

    refused = command("seed", expect=1)
    assert f"{command.state.store_file} cannot be written (No space left on device)" in refused
    assert "free some space" in refused
    command("faults", "--clear")
    assert "seeded already" in command("seed")
    assert command("contents") == contents


def test_a_second_start_creates_what_was_deleted_since(command: LocalCloudCommand) -> None:
    command("start")
    with closing(command.state.open_store()) as store:
        [subnet] = [key for key, _ in store.items("arm") if key.endswith("/subnets/default")]
        assert store.delete("arm", subnet)
        command.state.kubeconfig.unlink()

        assert "local cloud runs already" in (printed := command("start"))
        assert "local cloud seeded: 1 resource added" in printed
        assert store.get("arm", subnet) is not None
    assert command.state.kubeconfig.exists()


def test_a_daemon_that_cannot_write_tells_a_start_why(command: LocalCloudCommand, tmp_path: Path) -> None:
    command("start")
    faults = tmp_path / "faults.yaml"
    faults.write_text("disk: full\n", encoding="utf-8")
    command("faults", "--hold", str(faults))

    for refused in (command("start", expect=1), command("seed", expect=1)):
        assert f"{command.state.store_file} cannot be written (No space left on device)" in refused
        assert "Traceback" not in refused
    command("faults", "--clear")
    assert "seeded already" in command("start")


def test_the_deployer_reads_the_seeded_subscription(local_cloud: LocalEnvironment) -> None:
    token = deployer_credential(local_cloud).get_token("https://management.core.windows.net//.default").token
    with httpx.Client(verify=ssl.create_default_context(cafile=local_cloud.ca_file)) as client:
        answer = client.get(
            f"{local_cloud.arm_endpoint}/subscriptions/{local_cloud.subscription_id}/resourceGroups",
            params={"api-version": "2024-03-01"},
            headers={"Authorization": f"Bearer {token}"},
        )

    names = {group["name"] for group in answer.json()["value"]}
    assert names >= {"identity-local", "hc1-managed", "hc1-network", "hc1-nsg", "dns-local", "aks-local"}


def test_the_imported_identitys_document_is_issued(local_cloud: LocalEnvironment) -> None:
    document = json.loads((Path(local_cloud.state_dir) / "run/msi/hc1-image-registry.json").read_text())

    assert document["authentication_endpoint"] == local_cloud.authority_host
    assert document["resource_id"].endswith("/hc1-image-registry")


def test_issue_msi_writes_the_current_document_again(local_cloud: LocalEnvironment, tmp_path: Path) -> None:
    command = LocalCloudCommand(Path(local_cloud.state_dir))
    document = (command.state.msi / "hc1-image-registry.json").read_text()
    resource_id = json.loads(document)["resource_id"]

    output = command("issue-msi", resource_id, "--output", str(tmp_path / "again.json"))

    assert (tmp_path / "again.json").read_text() == document
    assert "client_secret" not in output
    assert "no managed identity nobody" in command("issue-msi", "nobody", expect=1)


def test_the_nodes_identity_gets_a_token_from_imds(local_cloud: LocalEnvironment) -> None:
    answer = httpx.get(
        f"{local_cloud.imds_endpoint}/metadata/identity/oauth2/token",
        params={"api-version": "2018-02-01", "resource": "https://vault.azure.net"},
        headers={"Metadata": "true"},
    )

    assert answer.json()["token_type"] == "Bearer"


def test_the_deployer_has_no_right_to_the_key_of_etcd(local_cloud: LocalEnvironment) -> None:
    keys = KeyClient(
        local_cloud.key_vault_endpoint,
        deployer_credential(local_cloud),
        connection_verify=local_cloud.ca_file,
        verify_challenge_resource=False,
    )
    with pytest.raises(HttpResponseError, match="Forbidden"):
        keys.get_key("hc1-etcd", headers={"Host": "kv-etcd-local.vault.azure.net"})
