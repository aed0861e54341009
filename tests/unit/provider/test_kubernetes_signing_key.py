"""`KubernetesSigningKeyResource` by a vault and a Kubernetes API: what HyperShift reads, and what a refresh sees."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from identity.clouds import LOCAL_TENANT_ID
from identity.credentials import service_account_key
from identity.credentials.service_account_key import etcd_key_id, make_etcd_key, public_half
from localcloud.testing.arm import VAULT, ArmWorld
from localcloud.testing.hosts import Certificates, Serve
from localcloud.testing.kubernetes import TOKEN
from localcloud.testing.kubernetes import kubernetes_app as kubernetes
from plugin import PluginError, Props, Secret, unwrap
from provider.kubernetes_key import KubernetesEtcdKeyResource, KubernetesSigningKeyResource
from tests.unit.provider.conftest import SignIn

URN = "urn:pulumi:dev::idstack::idstack:index:SigningKeySecret::hc1-signing-key-secret"
PATH = "/api/v1/namespaces/clusters/secrets/hc1-sa-signing-key"
MERGE = {"Content-Type": "application/merge-patch+json"}

resource = KubernetesSigningKeyResource()


@dataclass
class SecretWorld:
    """A key in the vault, and a cluster with the HostedCluster's namespace."""

    azure: ArmWorld
    kubeconfig: str
    http: httpx.Client
    pem: str = field(default_factory=lambda: service_account_key.make(2048))

    def inputs(self, **changes: Any) -> Props:
        """Checked inputs."""
        program = {
            "kubeconfig": self.kubeconfig,
            "clusterId": "/subscriptions/s/resourceGroups/g/providers/Microsoft.ContainerService/managedClusters/mgmt",
            "namespace": "clusters",
            "name": "hc1-sa-signing-key",
            "cloud": "local",
            "tenantId": LOCAL_TENANT_ID,
            "vaultId": VAULT,
            "secretName": "sa",
            "keyId": public_half(self.pem).key_id,
            "oldPublicKeys": [],
            **changes,
        }
        checked = resource.check(URN, None, program)
        assert not checked.failures
        return checked.inputs

    def store(self, pem: str) -> None:
        """Write another version of the key into the vault."""
        self.azure.vault("PUT", "/secrets/sa", {"value": pem})

    @property
    def data(self) -> dict[str, str]:
        """What the Secret holds."""
        found = self.http.get(PATH).raise_for_status().json()["data"]
        return {name: base64.b64decode(value).decode() for name, value in found.items()}


@pytest.fixture
def world(in_azure: ArmWorld, serve: Serve, certificates: Certificates, tmp_path: Path) -> Iterator[SecretWorld]:
    server = serve(kubernetes(in_azure.store, TOKEN, tmp_path))
    authority = base64.b64encode(certificates.ca_file.read_bytes()).decode()
    kubeconfig = {
        "clusters": [{"name": "mgmt", "cluster": {"server": server, "certificate-authority-data": authority}}],
        "users": [{"name": "me", "user": {"token": TOKEN}}],
        "contexts": [{"name": "mgmt", "context": {"cluster": "mgmt", "user": "me"}}],
        "current-context": "mgmt",
    }
    headers = {"Authorization": f"Bearer {TOKEN}"}
    trust = ssl.create_default_context(cafile=certificates.ca_file)
    with httpx.Client(base_url=server, verify=trust, headers=headers) as http:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "clusters"}}
        http.post("/api/v1/namespaces", json=namespace).raise_for_status()
        built = SecretWorld(in_azure, json.dumps(kubeconfig), http)
        built.store(built.pem)
        yield built


def test_the_secret_holds_what_hypershift_reads(world: SecretWorld) -> None:
    resource.create(URN, world.inputs(), preview=True)
    assert world.http.get(PATH).status_code == 404, "a preview writes nothing"

    made = resource.create(URN, world.inputs(), preview=False)

    assert made.id == "clusters/hc1-sa-signing-key"
    assert world.data == {"key": world.pem}
    assert isinstance(made.state["kubeconfig"], Secret)
    shown = json.dumps(unwrap(made.state))
    assert "PRIVATE" not in shown
    of_the_private_half = world.pem.splitlines()[-3]
    assert of_the_private_half not in shown


def test_keys_whose_tokens_are_in_use_stand_beside_it_until_they_go(world: SecretWorld) -> None:
    old = public_half(service_account_key.make(2048)).pem
    first = world.inputs(oldPublicKeys=[old])
    state = resource.create(URN, first, preview=False).state
    assert world.data == {"key": world.pem, "old-key.pub": old}

    resource.update(URN, "id", first, state, world.inputs(), preview=False)
    assert world.data == {"key": world.pem}


def test_a_secret_of_an_earlier_run_is_taken_over_and_no_other(world: SecretWorld) -> None:
    resource.create(URN, world.inputs(), preview=False)
    resource.create(URN, world.inputs(), preview=False)
    world.http.patch(PATH, content='{"metadata": {"labels": null}}', headers=MERGE).raise_for_status()

    with pytest.raises(PluginError, match="exists already, and no stack made it"):
        resource.create(URN, world.inputs(), preview=False)


def test_what_hypershift_notes_stays_and_another_way_there_writes_nothing(world: SecretWorld) -> None:
    inputs = world.inputs()
    state = resource.create(URN, inputs, preview=False).state
    note = '{"metadata": {"annotations": {"hypershift.openshift.io/cluster": "clusters/hc1"}}}'
    world.http.patch(PATH, content=note, headers=MERGE).raise_for_status()
    resource.update(URN, "id", inputs | {"changed": True}, state, inputs, preview=False)

    written = world.http.get(PATH).json()["metadata"]
    assert "hypershift.openshift.io/cluster" in written["annotations"]
    resource.update(URN, "id", inputs, state, world.inputs(kubeconfig="of nobody"), preview=False)
    assert world.http.get(PATH).json()["metadata"]["resourceVersion"] == written["resourceVersion"]


@pytest.mark.parametrize(
    "change", [{"key": service_account_key.make(2048)}, {"key": "x"}, {"old-key.pub": "x"}], ids=["key", "text", "old"]
)
def test_a_refresh_sees_another_content(world: SecretWorld, change: dict[str, str]) -> None:
    inputs = world.inputs()
    state = resource.create(URN, inputs, preview=False).state
    same = resource.read(URN, "id", inputs, state)
    data = {name: base64.b64encode(value.encode()).decode() for name, value in change.items()}
    world.http.patch(PATH, content=json.dumps({"data": data}), headers=MERGE).raise_for_status()
    other = resource.read(URN, "id", inputs, state)

    assert same is not None
    assert other is not None
    assert ("changed" in same.inputs, "changed" in other.inputs) == (False, True)


def test_a_secret_that_is_gone_is_gone_and_an_unreadable_one_unchanged(
    world: SecretWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = world.inputs()
    state = resource.create(URN, inputs, preview=False).state
    with monkeypatch.context() as forbidden:
        forbidden.setattr("identity.aks.api_server.ApiServer.request", lambda *_: httpx.Response(403))
        found = resource.read(URN, "id", inputs, inputs)
    assert found is not None
    assert found.inputs == inputs

    resource.delete(URN, "id", inputs, state)
    resource.delete(URN, "id", inputs, state)
    assert resource.read(URN, "id", inputs, state) is None


def test_what_keeps_the_key_from_the_cluster_is_told_with_what_helps(world: SecretWorld, sign_in: SignIn) -> None:
    with pytest.raises(PluginError, match=r'the API server refuses the Secret with the key: 404 .*"nowhere"'):
        resource.create(URN, world.inputs(namespace="nowhere"), preview=False)
    world.store(service_account_key.make(2048))
    with pytest.raises(PluginError, match=r"holds another key, .* bring the stack up with `--refresh`"):
        resource.create(URN, world.inputs(), preview=False)
    sign_in(world.azure.principal(("Reader", VAULT)))
    with pytest.raises(PluginError, match="role Key Vault Secrets Officer"):
        resource.create(URN, world.inputs(), preview=False)
    assert world.http.get(PATH).status_code == 404


def test_another_name_is_another_secret(world: SecretWorld) -> None:
    old = world.inputs()
    changes = resource.diff(URN, "id", old, old, world.inputs(name="other", keyId="k")).changes

    assert {path: change.replace for path, change in changes.items()} == {"name": True, "keyId": False}


ETCD = KubernetesEtcdKeyResource()


def etcd(world: SecretWorld, key: str) -> Props:
    world.azure.vault("PUT", "/secrets/etcd", {"value": key})
    changes = {"name": "hc1-etcd-encryption-key", "secretName": "etcd", "keyId": etcd_key_id(key)}
    known = {name: value for name, value in world.inputs(**changes).items() if name != "oldPublicKeys"}
    checked = ETCD.check(URN, None, known)
    assert not checked.failures
    return checked.inputs


def test_the_secret_of_etcd_holds_its_bytes_and_another_key_is_seen(world: SecretWorld) -> None:
    key, path = make_etcd_key(), PATH.replace("sa-signing-key", "etcd-encryption-key")
    inputs = etcd(world, key)

    state = ETCD.create(URN, inputs, preview=False).state

    found = world.http.get(path).raise_for_status().json()
    assert found["data"] == {"key": key}, "bytes, which the API shows in base64, as the vault has them"
    same = ETCD.read(URN, "", inputs, state)
    other = {"data": {"key": make_etcd_key()}}
    world.http.patch(path, content=json.dumps(other), headers=MERGE).raise_for_status()
    changed = ETCD.read(URN, "", inputs, state)
    assert same is not None
    assert changed is not None
    assert ("changed" in same.inputs, changed.inputs["changed"]) == (False, True)
    assert key not in json.dumps(unwrap(state))

    world.azure.vault("PUT", "/secrets/etcd", {"value": "abc"})
    with pytest.raises(PluginError, match="the secret etcd of the vault holds no key in base64; store the key again"):
        ETCD.create(URN, inputs, preview=False)
