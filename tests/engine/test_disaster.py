"""What `docs/guides/disaster.md` says to do when something is lost, while a pod signs in with what it has mounted."""

from __future__ import annotations

import shutil
import socket
from contextlib import closing
from pathlib import Path

import pytest

from localcloud.testing.running import StateDirectory
from tests.engine.clients import Client, bare_sign_in, read
from tests.engine.out_of_band import OutOfBand
from tests.engine.rotations import Rotating, pod_signing_in
from tests.engine.small_stack import registered, registered_in_state, small_stack
from tests.harness import LocalStack

pytestmark = pytest.mark.nightly

_VAULT = "2024-11-01"
_AKS = "2025-09-01"
_NAMESPACE = "/api/v1/namespaces/clusters-hc1"


def test_a_backup_from_before_a_renewal_costs_no_sign_in(rotating: Rotating, tmp_path: Path) -> None:
    stack = rotating.stack
    stack.idstack("backup", "--output", str(tmp_path / "backup.json"))
    with pod_signing_in(rotating) as client:
        rotating.renew()
        client.await_certificate(rotating.thumbprint)
        shutil.rmtree(stack.state / "pulumi/backend/.pulumi")
        stack.idstack("restore", str(tmp_path / "backup.json"))
        stack.idstack("recover")
        client.await_certificate(rotating.thumbprint)
        own = registered_in_state(stack)
        lost = {key_id for name, ids in own.items() for key_id in registered(stack)[name] - ids}
        swept = stack.idstack("sweep", "--yes").stdout

    assert lost, "the renewal's certificates are not in the backup"
    assert (swept.count("pods may sign in with it until"), swept.count("deleted")) == (len(lost), 0)

    assert stack.preview() == {}


def test_a_deleted_vault_comes_back_as_it_was(rotating: Rotating) -> None:
    stack, someone = rotating.stack, OutOfBand(rotating.stack)
    vault, delivered = stack.outputs["keyVaultId"], rotating.thumbprint
    before = someone.arm("GET", vault, _VAULT)
    with pod_signing_in(rotating):
        someone.arm("DELETE", vault, _VAULT)
        properties = {**before["properties"], "createMode": "recover"}
        someone.arm("PUT", vault, _VAULT, {"location": before["location"], "properties": properties})
        stack.idstack("recover")

    assert rotating.thumbprint == delivered
    assert stack.preview() == {}


def test_a_purged_vault_is_created_again_and_pods_go_on(rotating: Rotating) -> None:
    stack, someone = rotating.stack, OutOfBand(rotating.stack)
    vault = stack.outputs["keyVaultId"]
    location = someone.arm("GET", vault, _VAULT)["location"]
    deleted = f"/providers/Microsoft.KeyVault/locations/{location}/deletedVaults/{vault.rpartition('/')[2]}"
    rotating.pass_a_day()
    with pod_signing_in(rotating) as client:
        someone.arm("DELETE", vault, _VAULT)
        someone.arm("POST", f"{vault.partition('/resourceGroups')[0]}{deleted}/purge", _VAULT)
        stack.idstack("recover")
        client.await_certificate(rotating.thumbprint)

    assert stack.preview() == {}


def _another_cluster(stack: LocalStack) -> None:
    """The management cluster goes with all that is in it; another one gets its name, empty, at another address.

    Its add-on is as `az aks enable-addons` makes it, unless somebody asks for more.
    """
    someone, cluster = OutOfBand(stack), stack.outputs["managementClusterId"]
    with stack.kubernetes() as objects:
        objects.delete(_NAMESPACE).raise_for_status()
    someone.arm("DELETE", cluster, _AKS)
    properties = {
        "dnsPrefix": "another",
        "agentPoolProfiles": [{"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5", "count": 3}],
        "aadProfile": {"managed": True},
        "disableLocalAccounts": True,
        "addonProfiles": {"azureKeyvaultSecretsProvider": {"enabled": True}},
    }
    body = {"location": "eastus", "identity": {"type": "SystemAssigned"}, "properties": properties}
    someone.arm("PUT", cluster, _AKS, body)
    stack.local_cloud("stop")
    with closing(StateDirectory(stack.state).open_store()) as store:
        ports = store.get("environment", "ports") or {}
        # It picks another one, as nobody has this any more.
        store.put("environment", "ports", {name: ports[name] for name in ports if name != "kubernetes"})
        taken = ports["kubernetes"]
    with socket.create_server(("127.0.0.1", taken)):
        stack.local_cloud("start")
    del stack.environment
    assert not stack.environment.kubernetes_endpoint.endswith(f":{taken}")


def _with_add_on(someone: OutOfBand, cluster: str, config: dict[str, str]) -> None:
    """What `az aks update --enable-secret-rotation --rotation-poll-interval` does."""
    found = someone.arm("GET", cluster, _AKS)
    profile = {"enabled": True, "config": config}
    properties = {**found["properties"], "addonProfiles": {"azureKeyvaultSecretsProvider": profile}}
    someone.arm("PUT", cluster, _AKS, {**found, "properties": properties})


def test_a_lost_management_cluster_is_followed_by_one_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_stack(tmp_path, "stack") as stack:
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", stack.environment.ca_file)
        stack.up()
        reader, rows = stack.outputs["keyVaultUserClientId"], stack.control_plane
        file = Path(stack.environment.mounts_dir, "clusters-hc1/probe-cloud-provider/mnt/certs/cloud-provider-hc1-json")
        mounted = read(file)
        _another_cluster(stack)
        with Client(lambda: bare_sign_in(mounted)) as client:
            client.await_sign_ins(1)
            refused = stack.idstack("recover", check=False)
            rotates = {"enableSecretRotation": "true", "rotationPollInterval": "2m"}
            _with_add_on(OutOfBand(stack), stack.outputs["managementClusterId"], rotates)
            stack.idstack("recover")  # ends well only when every probe has signed in
            client.await_sign_ins(5)

        assert refused.returncode == 1
        assert "secret rotation is off" in refused.stdout
        assert client.failures == []
        assert stack.control_plane == rows, "credentials and applications are those of before"
        assert stack.outputs["keyVaultUserClientId"] != reader, "the new cluster's add-on has an identity of its own"
        assert stack.preview() == {}


def test_recover_settles_a_stack_whose_schedule_lost_its_secret(tmp_path: Path) -> None:
    """A `down` ended half-way, of a stack that still keeps the certificates of a rotation a moment ago."""
    with small_stack(tmp_path, "hypershift") as stack:
        stack.up()
        stack.idstack("rotate", "--identity", "cloudProvider")
        secret = stack.resource("hc1-cloud-provider-credential-secret")["urn"]
        stack.pulumi("destroy", "--yes", "--skip-preview", "--target", secret, "--target-dependents")
        forgotten = stack.resource("hc1-data-plane-disk-roles-managed")["urn"]
        stack.pulumi("state", "delete", forgotten, "--yes")
        kept = stack.inventory()

        recovered = stack.idstack("recover", "--no-up")

        assert "no certificate can be planned, so that none is searched" in recovered.stdout
        assert "a certificate is needed (as the vault no longer has" in recovered.stdout
        assert "1 entered into the state" in recovered.stdout
        assert stack.resource("hc1-data-plane-disk-roles-managed")["urn"] == forgotten
        assert stack.inventory() == kept
        stack.idstack("down")
        assert not stack.state.exists()
