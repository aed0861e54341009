"""The stack's way to the management cluster, as the engine sees it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pulumi
import pytest

from components.azure.aks_access import access_args
from components.lookups import access_check
from tests.unit import access_world
from tests.unit.access_world import TENANT, TOKEN, FakeApiServer, skeleton
from tests.unit.components.conftest import Program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.world import MANAGEMENT_CLUSTER, lookups, settings
from tests.unit.hosts import Serve

KUBERNETES = "pulumi:providers:kubernetes"
USER = "azure-native:containerservice:listManagedClusterUserCredentials"
ADMIN = "azure-native:containerservice:listManagedClusterAdminCredentials"
CLUSTER: dict[str, Any] = {"resourceGroup": "aks-dev", "name": "aks-mgmt-dev"}


class ExistingClusterScenario:
    """The stack with a cluster that it reaches by itself."""

    def __init__(self, run: Program, api: FakeApiServer, server: str) -> None:
        self._run = run
        self.api = api
        self.answers: dict[str, Any] = {
            **lookups(),
            USER: {"kubeconfigs": [{"name": "clusterUser", "value": skeleton(server)}]},
            ADMIN: {"kubeconfigs": [{"name": "clusterAdmin", "value": skeleton(server, change=_administrator)}]},
        }

    def run(self, options: Any = None, **access: Any) -> RecordingMonitor:
        cluster = {**CLUSTER, **({"access": access} if access else {})}
        return self._run(managementCluster=cluster, invokes=self.answers, options=options, lookups_only=True)


def _administrator(document: dict[str, Any]) -> None:
    document["users"][0]["user"] = {"token": TOKEN}


@pytest.fixture
def world(program_on_path: None, serve_plain: Serve, program: Program) -> ExistingClusterScenario:
    api = FakeApiServer()
    return ExistingClusterScenario(program, api, serve_plain(api.app()))


@pytest.fixture
def program_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = access_world.program(tmp_path / "bin")
    access_world.program(folder, "kubelogin")
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def kubeconfig(recorder: RecordingMonitor) -> dict[str, Any]:
    text = recorder.one(KUBERNETES).inputs["kubeconfig"]
    assert isinstance(text, str)
    found: dict[str, Any] = json.loads(text)
    return found


def test_the_provider_gets_a_secret_kubeconfig_that_signs_in_by_itself(world: ExistingClusterScenario) -> None:
    recorder = world.run()

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


def test_two_runs_have_the_same_kubeconfig(world: ExistingClusterScenario) -> None:
    assert world.run().one(KUBERNETES).inputs["kubeconfig"] == world.run().one(KUBERNETES).inputs["kubeconfig"]


def test_a_preview_knows_the_kubeconfig_and_needs_no_right_in_the_cluster(world: ExistingClusterScenario) -> None:
    recorder = world.run(options={"preview": True})
    assert kubeconfig(recorder)["current-context"] == "aks-mgmt-dev"
    assert world.api.reviews == []


def test_kubelogin_makes_the_tokens_where_it_is_asked_to(world: ExistingClusterScenario) -> None:
    [user] = kubeconfig(world.run(flavour="kubelogin", login="azure-cli"))["users"]
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
    login = access_args(configured, configured.management_cluster).login
    assert (login.authority_host, login.scope) == (authority, "6dae42f8-4368-4678-94ff-3960e28e3630/.default")


def test_a_private_cluster_is_asked_for_its_public_name(world: ExistingClusterScenario) -> None:
    asked = [each.arguments for each in world.run(publicFqdn=True).invoked if each.function == USER]
    assert [each.get("serverFqdn") for each in asked] == ["public", "public"]


def test_the_admin_credential_is_used_only_on_request_and_with_a_warning(
    world: ExistingClusterScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    warned: list[str] = []
    monkeypatch.setattr(pulumi, "warn", lambda text, resource: warned.append(text))
    assert ADMIN not in {each.function for each in world.run().invoked}
    assert warned == []

    recorder = world.run(admin=True)

    [warning] = warned
    assert "past Entra ID and without a name in the audit log" in warning
    assert "rotate the cluster's certificates" in warning
    assert USER not in {each.function for each in recorder.invoked}
    assert recorder.one(KUBERNETES).secrets == {"kubeconfig"}


def test_a_failed_sign_in_is_reported_before_the_first_resource(world: ExistingClusterScenario, tmp_path: Path) -> None:
    access_world.program(tmp_path / "bin", code=1, error="idstack: c.pem: the certificate 9F expired")

    recorder = world.run(options={"refused": True})

    assert str(recorder.failure) == (
        "idstack:managementCluster: idstack got no token for the API server: c.pem: the certificate 9F expired. "
        "Nothing was changed."
    )
    assert [each for each in recorder.names() if not each.startswith("pulumi:providers:azure")] == []


def test_with_azure_rbac_the_missing_role_assignment_is_printed(
    world: ExistingClusterScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_check, "_READY_SECONDS", 0)
    world.api.denied = {"create namespaces"}
    current = world.answers["azure-native:containerservice:getManagedCluster"]
    world.answers["azure-native:containerservice:getManagedCluster"] = {
        **current,
        "aadProfile": {"managed": True, "enableAzureRBAC": True},
    }

    error = str(world.run(options={"refused": True}).failure)

    assert f"--role b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b --scope {MANAGEMENT_CLUSTER} --assignee-object-id" in error


def test_without_the_clusters_user_role_the_error_names_the_role(world: ExistingClusterScenario) -> None:
    world.answers[USER] = RuntimeError('Status=403 Code="AuthorizationFailed" Message="no".')
    recorder = world.run(options={"refused": True})
    assert "role Azure Kubernetes Service Cluster User Role on the cluster" in str(recorder.failure)


def test_with_local_accounts_off_the_admin_credential_is_an_error(world: ExistingClusterScenario) -> None:
    world.answers[ADMIN] = RuntimeError("Getting static credential is not allowed")
    recorder = world.run(options={"refused": True}, admin=True)
    assert "Getting static credential is not allowed. Nothing was changed" in str(recorder.failure), "no role helps"
