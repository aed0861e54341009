"""A deployer with the rights of `idstack rbac --kubernetes` and no others: a stack's whole life."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.architecture.source import ROOT
from tests.engine.rotations import LIFE, SETTLED, Ageing
from tests.engine.small_stack import small_stack
from tests.harness import LocalStack

DEPLOYERS = "10ca1000-0000-4000-8000-000000000003"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
BINDING = f"{RBAC}/clusterrolebindings/idstack:deployer"
NAMESPACE = "/api/v1/namespaces/clusters-hc1"


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """A stack before its first `up`, and a cluster on which an administrator has applied what the command prints.

    The local cloud's own user `deployer`, by whom `idstack up` waits for the probes, keeps its rights. The stack signs
    in by Entra ID, and nothing but its group is bound.
    """
    root = tmp_path_factory.mktemp("narrow")
    with small_stack(root, "stack") as stack:
        _without_the_groups_rights(root)
        with stack.kubernetes("administrator") as administrator:
            binding = administrator.get(BINDING).json()
            binding["subjects"] = [subject for subject in binding["subjects"] if subject["kind"] == "User"]
            administrator.put(BINDING, json=binding).raise_for_status()
            for manifest in yaml.safe_load_all(stack.idstack("rbac", DEPLOYERS, "--kubernetes").stdout):
                administrator.post(_collection(manifest), json=manifest).raise_for_status()
        stack.configure(credentials={**LIFE, "propagation": SETTLED})
        yield stack


def _without_the_groups_rights(root: Path) -> None:
    """Give the project in `root` a seed of its own: each start of the local cloud applies its bindings again."""
    cloud, emulated = root / "cloud", root / "cloud/emulated"
    cloud.unlink()
    emulated.mkdir(parents=True)
    for entry in (*(ROOT / "cloud").iterdir(), *(ROOT / "cloud/emulated").iterdir()):
        if entry != ROOT / "cloud/emulated":
            (root / entry.relative_to(ROOT)).symlink_to(entry)
    seed = yaml.safe_load((emulated / "seed.yaml").read_text(encoding="utf-8"))
    [bound] = [
        kubernetes_object
        for kubernetes_object in seed["kubernetesObjects"]
        if kubernetes_object["kind"] == "ClusterRoleBinding"
    ]
    bound["subjects"] = [subject for subject in bound["subjects"] if subject["kind"] == "User"]
    (emulated / "seed.yaml").unlink()
    (emulated / "seed.yaml").write_text(yaml.safe_dump(seed), encoding="utf-8")


def _collection(manifest: dict[str, Any]) -> str:
    kind, namespace = manifest["kind"], manifest["metadata"].get("namespace")
    if kind == "Namespace":
        return "/api/v1/namespaces"
    return f"{RBAC}/{f'namespaces/{namespace}/' if namespace else ''}{kind.lower()}s"


def test_rights_in_its_namespaces_are_enough_for_a_stack(narrow: LocalStack, monkeypatch: pytest.MonkeyPatch) -> None:
    ageing = Ageing(narrow, datetime.now(UTC) - timedelta(days=3), monkeypatch)
    ageing.pass_a_day()

    # The namespace came with the Roles.
    stopped = narrow.idstack("up", check=False)
    assert stopped.returncode == 1
    [_] = narrow.follow(stopped.stderr)
    narrow.idstack("up")
    assert "nothing is broken" in narrow.idstack("doctor", "--stage", "access").stdout
    before = narrow.control_plane["cloudProvider"]["thumbprint"]
    ageing.pass_a_day()
    narrow.idstack("renew")
    assert narrow.control_plane["cloudProvider"]["thumbprint"] != before
    with narrow.kubernetes("administrator") as administrator:
        kubeadmin = {"metadata": {"name": "kubeadmin-password"}, "stringData": {"password": "of the guest cluster"}}
        administrator.post(f"{NAMESPACE}/secrets", json=kubeadmin).raise_for_status()
    with _the_deployer(narrow) as deployer:
        # Its own by name, as the kubernetes provider asks for one that it deletes too, and no other one.
        assert deployer.get(f"{NAMESPACE}/secrets/azure-cloud-config").status_code == 200
        one = {"watch": "1", "fieldSelector": "metadata.name=azure-cloud-config", "timeoutSeconds": "1"}
        assert deployer.get(f"{NAMESPACE}/secrets", params=one).status_code == 200
        assert deployer.get(f"{NAMESPACE}/secrets", params={**one, "fieldSelector": ""}).status_code == 403
        assert deployer.get(f"{NAMESPACE}/secrets/kubeadmin-password").status_code == 403
        assert deployer.delete(f"{NAMESPACE}/secrets/kubeadmin-password").status_code == 403
        assert deployer.get(f"{NAMESPACE}/secrets").status_code == 403
        assert deployer.get("/api/v1/namespaces/default/secrets").status_code == 403
        assert deployer.get("/api/v1/secrets").status_code == 403
        assert deployer.delete("/api/v1/namespaces/default").status_code == 403

    narrow.pulumi("destroy", "--yes", "--skip-preview")

    with narrow.kubernetes("administrator") as administrator:
        assert administrator.get(NAMESPACE).status_code == 404
        assert {subject["kind"] for subject in administrator.get(BINDING).json()["subjects"]} == {"User"}, "as it was"


def _the_deployer(stack: LocalStack) -> httpx.Client:
    """The API server as the stack reaches it, by Entra ID."""
    local = stack.environment
    login = ("--login", "arm", "--tenant-id", local.tenant_id, "--authority-host", local.authority_host)
    token = json.loads(stack.idstack("token", "--exec", *login).stdout)["status"]["token"]
    client = stack.kubernetes("deployer")
    client.headers["Authorization"] = f"Bearer {token}"
    return client
