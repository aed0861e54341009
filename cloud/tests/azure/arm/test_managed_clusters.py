"""The kubeconfigs that AKS gives out, and to whom."""

from __future__ import annotations

import base64
from typing import Any

import httpx
import pytest
import yaml

from localcloud.core.cluster import ClusterKind, Endpoint
from localcloud.core.yaml_text import load_as_go
from localcloud.testing.arm import CLUSTER, GROUP, ArmWorld, error

TENANT = "10ca1000-0000-4000-8000-000000000001"


@pytest.fixture
def aks(world: ArmWorld) -> ArmWorld:
    """With a cluster that is integrated with Entra ID and has no local accounts."""
    Endpoint("https://127.0.0.1:6443", "Q0E=", ClusterKind.BUILT_IN).save(world.store)
    put(world)
    return world


def put(world: ArmWorld, **properties: Any) -> None:
    defaults = {"aadProfile": {"managed": True, "tenantID": TENANT}, "disableLocalAccounts": True}
    world.put(CLUSTER, "Microsoft.ContainerService/managedClusters", {**defaults, **properties})


def ask(world: ArmWorld, who: str = "User", **options: Any) -> httpx.Response:
    return world.call("POST", f"{CLUSTER}/listCluster{who}Credential", **options)


def kubeconfig(answer: httpx.Response) -> dict[str, Any]:
    [found] = answer.json()["kubeconfigs"]
    document: dict[str, Any] = yaml.safe_load(base64.b64decode(found["value"]))
    return document


def test_a_users_kubeconfig_has_the_server_and_asks_for_a_device_code(aks: ArmWorld) -> None:
    document = kubeconfig(ask(aks))
    [cluster], [user] = document["clusters"], document["users"]
    assert cluster["cluster"] == {"certificate-authority-data": "Q0E=", "server": "https://127.0.0.1:6443"}
    assert user["user"]["exec"]["args"] == [
        *("get-token", "--environment", "AzurePublicCloud", "--server-id", "6dae42f8-4368-4678-94ff-3960e28e3630"),
        *("--client-id", "80faf920-1908-4b52-b5ef-a8e7bedfc67a", "--tenant-id", TENANT, "--login", "devicecode"),
    ]


@pytest.mark.parametrize("who", ["User", "Admin"])
def test_a_name_that_go_reads_as_a_number_is_in_quotes(aks: ArmWorld, who: str) -> None:
    path = f"{GROUP}/providers/Microsoft.ContainerService/managedClusters/716064e0"
    aks.put(path, "Microsoft.ContainerService/managedClusters", {"aadProfile": {"managed": True, "tenantID": TENANT}})

    [found] = aks.call("POST", f"{path}/listCluster{who}Credential").json()["kubeconfigs"]

    document = load_as_go(base64.b64decode(found["value"]))
    assert document["clusters"][0]["name"] == document["contexts"][0]["context"]["cluster"] == "716064e0"


@pytest.mark.parametrize("who", ["User", "Admin"])
def test_a_private_clusters_kubeconfig_has_its_private_name_unless_asked(aks: ArmWorld, who: str) -> None:
    put(aks, disableLocalAccounts=False, fqdn="mgmt.azmk8s.io", privateFQDN="mgmt.privatelink.eastus.azmk8s.io")

    def server(**options: str) -> str:
        [cluster] = kubeconfig(ask(aks, who, **options))["clusters"]
        return str(cluster["cluster"]["server"])

    assert server() == "https://mgmt.privatelink.eastus.azmk8s.io:443"
    assert server(**{"server-fqdn": "public"}) == "https://127.0.0.1:6443"


def test_the_old_form_has_the_removed_auth_provider(aks: ArmWorld) -> None:
    [user] = kubeconfig(ask(aks, format="azure"))["users"]
    assert user["user"]["auth-provider"]["name"] == "azure"
    assert user["user"]["auth-provider"]["config"]["config-mode"] == "1"
    assert error(ask(aks, format="json"))[0] == 400


def test_disabled_local_accounts_leave_no_administrator_credential(aks: ArmWorld) -> None:
    assert error(ask(aks, "Admin")) == (
        400,
        "BadRequest",
        "Getting static credential is not allowed because this cluster is set to disable local accounts.",
    )
    put(aks, disableLocalAccounts=False)
    document = kubeconfig(ask(aks, "Admin"))
    assert document["current-context"] == "mgmt-admin"
    assert document["users"][0]["user"]["token"]


def test_without_entra_id_a_users_credential_is_the_administrators(aks: ArmWorld) -> None:
    put(aks, aadProfile=None, disableLocalAccounts=False)
    assert "token" in kubeconfig(ask(aks))["users"][0]["user"]


def test_the_users_kubeconfig_needs_the_cluster_user_role(aks: ArmWorld) -> None:
    user = aks.principal(("Azure Kubernetes Service Cluster User Role", GROUP))
    assert ask(aks, caller=user).status_code == 200
    assert error(ask(aks, "Admin", caller=user))[:2] == (403, "AuthorizationFailed")
    reader = aks.principal(("Reader", GROUP))
    for who in ("User", "Admin"):
        assert error(ask(aks, who, caller=reader))[:2] == (403, "AuthorizationFailed")


def test_an_absent_cluster_and_an_unknown_action_are_refused(aks: ArmWorld) -> None:
    assert aks.call("POST", f"{CLUSTER}x/listClusterUserCredential").status_code == 404
    assert aks.call("POST", f"{CLUSTER}/stop").status_code == 501
