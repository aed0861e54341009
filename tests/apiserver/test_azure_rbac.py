"""A cluster on which Azure role assignments decide: made by the stack, entered by the role that the stack assigns."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from localcloud.testing.azure import Resources
from localcloud.testing.running import StateDirectory
from tests.engine.small_stack import small_stack
from tests.engine.test_creation import CLUSTER

BINDING = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/idstack:deployer"
LATE = 8.0  # seconds that a role assignment takes


def test_the_gate_waits_for_the_role_and_names_what_it_allows(tmp_path: Path) -> None:
    """On a cluster that the stack makes, where Kubernetes itself gives the deployer nothing."""
    with (
        small_stack(tmp_path, "stack", role_delay=LATE) as stack,
        stack.configured(managementCluster=CLUSTER),
        stack.kubernetes("administrator") as administrator,
    ):
        administrator.delete(BINDING).raise_for_status()
        waited = stack.up().stdout
        assert "waiting for the cluster at https://" in waited
        assert ": permissions: get namespaces, list namespaces" in waited
        assert administrator.get(BINDING).status_code == 404
        assert "nothing is broken" in stack.idstack("doctor", "--stage", "access").stdout

        role = stack.resource("management-cluster-deployer-cluster")
        # AKS prints it with `resourcegroups`.
        cluster = stack.resource("management-cluster-aks")["id"].replace("/resourcegroups/", "/resourceGroups/")
        with closing(StateDirectory(stack.state).open_store()) as store:
            assignments = Resources(store)
            existing = assignments.get(role["id"])
            assert existing is not None
            assignments.delete(role["id"])

            printed = " ".join(stack.idstack("doctor", "--stage", "access", check=False).stdout.split())

            assignments.put(existing)
        assert "permissions: " in printed
        assert "create namespaces" in printed
        assert (
            f"`az role assignment create --role b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b --scope {cluster} "
            f"--assignee-object-id {role['inputs']['principalId']} --assignee-principal-type ServicePrincipal`"
        ) in printed
