"""The explicit providers, and the stack's way to the management cluster as the engine sees it."""

from __future__ import annotations

import json
from typing import Any

import pulumi
import pytest

from components.kubernetes.provider import cluster_login
from tests.unit.access_world import TENANT
from tests.unit.components.existing_cluster import ADMIN, USER, ExistingClusterScenario
from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.world import KUBECONFIG, MANAGEMENT_CLUSTER, settings

KUBERNETES = "pulumi:providers:kubernetes"


def test_the_kubernetes_provider_gets_the_kubeconfigs_contents_as_a_secret(stack: RecordingMonitor) -> None:
    provider = stack.one(KUBERNETES, "kubernetes")

    assert provider.inputs["kubeconfig"] == KUBECONFIG
    assert provider.secrets == {"kubeconfig"}
    assert provider.inputs["clusterIdentifier"] == MANAGEMENT_CLUSTER, "objects survive a new address of the cluster"
    assert provider.inputs["enablePatchForce"] in (True, "true"), "a change by hand is repaired, whoever owns the field"


def test_the_kubeconfigs_context_can_be_chosen(program: Program) -> None:
    cluster = {"resourceGroup": "aks-dev", "name": "aks-mgmt-dev", "kubeconfig": "kubeconfig", "context": "admin"}

    assert program(managementCluster=cluster, lookups_only=True).one(KUBERNETES).inputs["context"] == "admin"


def test_an_unreadable_kubeconfig_is_an_error_with_a_fix(program: Program) -> None:
    cluster = {"resourceGroup": "aks-dev", "name": "aks-mgmt-dev", "kubeconfig": "absent"}

    recorder = program(managementCluster=cluster, options={"refused": True})

    assert str(recorder.failure) == (
        'idstack:managementCluster.kubeconfig: found "absent", which cannot be read '
        "([Errno 2] No such file or directory: 'absent'). Accepted is the path of a kubeconfig file, or nothing: then "
        "the stack makes its own for aks-dev/aks-mgmt-dev."
    )
    assert [name for name in recorder.names() if not name.startswith("pulumi:providers:")] == []


def kubeconfig(recorder: RecordingMonitor) -> dict[str, Any]:
    text = recorder.one(KUBERNETES).inputs["kubeconfig"]
    assert isinstance(text, str)
    found: dict[str, Any] = json.loads(text)
    return found


def test_the_provider_gets_a_secret_kubeconfig_that_signs_in_by_itself(
    existing_cluster: ExistingClusterScenario,
) -> None:
    recorder = existing_cluster.run()

    provider = recorder.one(KUBERNETES)
    assert provider.secrets == {"kubeconfig"}
    [user] = kubeconfig(recorder)["users"]
    assert user["user"]["exec"]["command"] == "idstack"
    assert user["user"]["exec"]["args"] == [
        *("token", "--exec", "--login", "arm", "--tenant-id", TENANT),
        *("--server-id", "6dae42f8-4368-4678-94ff-3960e28e3630"),
        *("--authority-host", "https://login.microsoftonline.com/"),
    ]
    assert provider.inputs["clusterIdentifier"].endswith("/managedClusters/aks-mgmt-dev")
    assert kubeconfig(existing_cluster.run()) == kubeconfig(recorder)


def test_a_preview_knows_the_kubeconfig_and_needs_no_right_in_the_cluster(
    existing_cluster: ExistingClusterScenario,
) -> None:
    recorder = existing_cluster.run(options={"preview": True})
    assert kubeconfig(recorder)["current-context"] == "aks-mgmt-dev"
    assert existing_cluster.api.reviews == []


def test_kubelogin_makes_the_tokens_where_it_is_asked_to(existing_cluster: ExistingClusterScenario) -> None:
    [user] = kubeconfig(existing_cluster.run(flavour="kubelogin", login="azure-cli"))["users"]
    assert user["user"]["exec"]["command"] == "kubelogin"
    assert user["user"]["exec"]["args"][:3] == ["get-token", "--login", "azurecli"]


@pytest.mark.parametrize(
    ("cloud", "authority"),
    [
        ("AzurePublicCloud", "https://login.microsoftonline.com/"),
        ("AzureUSGovernmentCloud", "https://login.microsoftonline.us/"),
        ("AzureChinaCloud", "https://login.chinacloudapi.cn/"),
    ],
)
def test_each_cloud_has_its_authority_and_all_the_same_server_app(cloud: str, authority: str) -> None:
    configured = settings(cloud=cloud, hostedClusters=[])
    assert configured.management_cluster is not None
    login = cluster_login(configured, configured.management_cluster)
    assert (login.authority_host, login.scope) == (authority, "6dae42f8-4368-4678-94ff-3960e28e3630/.default")


def test_a_private_cluster_is_asked_for_its_public_name(existing_cluster: ExistingClusterScenario) -> None:
    asked = [call.arguments for call in existing_cluster.run(publicFqdn=True).invoked if call.function == USER]
    assert [arguments.get("serverFqdn") for arguments in asked] == ["public", "public"]


def test_the_admin_credential_is_used_only_on_request_and_with_a_warning(
    existing_cluster: ExistingClusterScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    warned: list[str] = []
    monkeypatch.setattr(pulumi, "warn", warned.append)
    assert ADMIN not in {call.function for call in existing_cluster.run().invoked}
    assert warned == []

    recorder = existing_cluster.run(admin=True)

    [warning] = warned
    assert "past Entra ID and without a name in the audit log" in warning
    assert "rotate the cluster's certificates" in warning
    assert USER not in {call.function for call in recorder.invoked}
    assert recorder.one(KUBERNETES).secrets == {"kubeconfig"}
