"""`idstack rbac`: Kubernetes' role, or Azure's where that decides."""

from __future__ import annotations

import pytest
import yaml

from identity.access.azure_rbac import AksCluster
from ops.commands import rbac
from ops.stack.engine import Engine
from tests.unit.ops.conftest import Idstack

WHO = "99999999-8888-4777-8666-555555555555"
CLUSTER = "/subscriptions/s/resourceGroups/aks/providers/Microsoft.ContainerService/managedClusters/aks"


@pytest.mark.parametrize(
    ("options", "kind"),
    [([], "Group"), (["--principal-type", "group"], "Group"), (["--principal-type", "ServicePrincipal"], "User")],
)
def test_kubernetes_role_is_bound_to_a_group_or_an_object_id(idstack: Idstack, options: list[str], kind: str) -> None:
    done = idstack("rbac", WHO, "--kubernetes", *options)
    role, binding = yaml.safe_load_all(done.output)
    assert (role["kind"], binding["kind"]) == ("ClusterRole", "ClusterRoleBinding")
    assert binding["subjects"] == [{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": WHO}]


@pytest.mark.parametrize("principal_type", ["Group", "ServicePrincipal"])
def test_azures_role_is_assigned_where_azure_rbac_decides(
    idstack: Idstack, monkeypatch: pytest.MonkeyPatch, principal_type: str
) -> None:
    asked: list[str] = []

    def look(engine: Engine) -> AksCluster:
        asked.append(engine.stack)
        return AksCluster(CLUSTER, has_azure_rbac=True)

    monkeypatch.setattr(rbac, "stack_cluster", look)
    done = idstack("rbac", WHO, "--stack", "dev", "--principal-type", principal_type)

    assert asked == ["dev"]
    assert done.output == (
        f"az role assignment create --role b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b --scope {CLUSTER} "
        f"--assignee-object-id {WHO} --assignee-principal-type {principal_type}\n"
    )


def test_a_name_is_no_object_id(idstack: Idstack) -> None:
    done = idstack("rbac", "deployers")
    assert done.code == 2
    assert "Input should be a valid UUID" in done.error
