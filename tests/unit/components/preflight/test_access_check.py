"""The sign-in to the management cluster before the first resource."""

from __future__ import annotations

from pathlib import Path

import pytest

from components.preflight import cluster_checks
from tests.unit import access_world
from tests.unit.components.existing_cluster import ADMIN, USER, ExistingClusterScenario
from tests.unit.components.world import MANAGEMENT_CLUSTER


def test_a_failed_sign_in_is_reported_before_the_first_resource(
    existing_cluster: ExistingClusterScenario, tmp_path: Path
) -> None:
    access_world.program(tmp_path / "bin", code=1, error="idstack: c.pem: the certificate 9F expired")

    recorder = existing_cluster.run(options={"refused": True})

    assert str(recorder.failure) == (
        "idstack:managementCluster: idstack got no token for the API server: c.pem: the certificate 9F expired. "
        "Nothing was changed."
    )
    assert [name for name in recorder.names() if not name.startswith("pulumi:providers:azure")] == []


def test_with_azure_rbac_the_missing_role_assignment_is_printed(
    existing_cluster: ExistingClusterScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_checks, "_READY_SECONDS", 0)
    existing_cluster.api.denied = {"create namespaces"}
    current = existing_cluster.answers["azure-native:containerservice:getManagedCluster"]
    existing_cluster.answers["azure-native:containerservice:getManagedCluster"] = {
        **current,
        "aadProfile": {"managed": True, "enableAzureRBAC": True},
    }

    error = str(existing_cluster.run(options={"refused": True}).failure)

    assert f"--role b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b --scope {MANAGEMENT_CLUSTER} --assignee-object-id" in error


def test_without_the_clusters_user_role_the_error_names_the_role(existing_cluster: ExistingClusterScenario) -> None:
    existing_cluster.answers[USER] = RuntimeError('Status=403 Code="AuthorizationFailed" Message="no".')
    recorder = existing_cluster.run(options={"refused": True})
    assert "role Azure Kubernetes Service Cluster User Role there" in str(recorder.failure)


def test_with_local_accounts_off_the_admin_credential_is_an_error(existing_cluster: ExistingClusterScenario) -> None:
    existing_cluster.answers[ADMIN] = RuntimeError("Getting static credential is not allowed")
    recorder = existing_cluster.run(options={"refused": True}, admin=True)
    assert "Getting static credential is not allowed. Nothing was changed" in str(recorder.failure), "no role helps"
