"""A cluster on which Azure role assignments decide: made by the stack, entered by the role that the stack assigns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from localcloud.testing.azure import Resources
from localcloud.testing.running import StateDirectory
from tests.engine.small_stack import small_stack
from tests.engine.test_creation import CLUSTER
from tests.harness import LocalStack

BINDING = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/idstack:deployer"
LATE = 8.0  # seconds that a role assignment takes


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalStack, str]]:
    """A stack with a cluster of its own, where Kubernetes itself gives the deployer nothing; what its `up` printed."""
    with (
        small_stack(tmp_path_factory.mktemp("azure-rbac"), "stack", role_delay=LATE) as stack,
        stack.configured(managementCluster=CLUSTER),
    ):
        with stack.kubernetes("administrator") as administrator:
            administrator.delete(BINDING).raise_for_status()
        yield stack, stack.up().stdout


def test_the_gate_waits_for_the_role_and_names_what_it_allows(made: tuple[LocalStack, str]) -> None:
    _, printed = made
    assert "waiting for the cluster at https://" in printed
    assert ": permissions: get namespaces, list namespaces" in printed


def test_the_role_alone_is_what_the_deployer_needs(made: tuple[LocalStack, str]) -> None:
    stack, _ = made
    with stack.kubernetes("administrator") as administrator:
        assert administrator.get(BINDING).status_code == 404
    assert "nothing is broken" in stack.idstack("doctor", "--stage", "access").stdout


def test_without_the_role_doctor_prints_the_assignment(made: tuple[LocalStack, str]) -> None:
    stack, _ = made
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
