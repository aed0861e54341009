"""`idstack rbac`: Kubernetes' role, or Azure's where that decides."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
import yaml

from identity.aks.azure_rbac import AksCluster
from identity.roles import RBAC_ADMINISTRATOR_ROLE
from localcloud.testing.azure import parse_condition as parse
from ops.commands import rbac
from ops.stack.engine import Engine
from tests.unit.components.world import configuration
from tests.unit.ops.conftest import FakeEngine, Idstack

WHO = "99999999-8888-4777-8666-555555555555"
CLUSTER = "/subscriptions/s/resourceGroups/aks/providers/Microsoft.ContainerService/managedClusters/aks"


def configured(engine: FakeEngine, **changes: Any) -> None:
    """A stack with the example's configuration."""
    raw = {key: yaml.safe_load(value) for key, value in configuration(**changes).items()}
    engine.configures(**raw)


@pytest.mark.parametrize(
    ("options", "kind"),
    [([], "Group"), (["--principal-type", "group"], "Group"), (["--principal-type", "ServicePrincipal"], "User")],
)
def test_kubernetes_roles_are_bound_to_a_group_or_an_object_id(
    engine: FakeEngine, idstack: Idstack, options: list[str], kind: str
) -> None:
    configured(engine)
    done = idstack("rbac", WHO, "--kubernetes", "--stack", "dev", *options)
    bindings = [document for document in yaml.safe_load_all(done.output) if document["kind"].endswith("Binding")]
    assert [binding["kind"] for binding in bindings] == ["RoleBinding", "ClusterRoleBinding"]
    for binding in bindings:
        assert binding["subjects"] == [{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": WHO}]
    [whole, _] = yaml.safe_load_all(idstack("rbac", WHO, "--kubernetes", "--cluster-wide", "--stack", "dev").output)
    assert (whole["kind"], whole["metadata"]["name"]) == ("ClusterRole", "idstack:deployer:dev")


@pytest.mark.parametrize("principal_type", ["Group", "User", "ServicePrincipal"])
def test_azures_role_is_assigned_where_azure_rbac_decides(
    engine: FakeEngine, idstack: Idstack, monkeypatch: pytest.MonkeyPatch, principal_type: str
) -> None:
    configured(engine)
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


@pytest.mark.parametrize(
    ("principal_type", "right"),
    [
        ("ServicePrincipal", "the application permission Application.ReadWrite.OwnedBy"),
        *((people, "the directory role Cloud Application Administrator; for one") for people in ("Group", "User")),
    ],
)
def test_the_deployers_roles_in_azure_are_lines_for_a_shell(
    engine: FakeEngine, idstack: Idstack, principal_type: str, right: str
) -> None:
    configured(engine)
    done = idstack("rbac", WHO, "--azure", "--principal-type", principal_type, "--stack", "dev")

    lines = done.output.splitlines()
    assert lines[0].startswith(f"# in Entra ID: {right}")
    commands = [shlex.split(line) for line in lines if not line.startswith("#")]
    assert {tuple(command[:4]) for command in commands} == {("az", "role", "assignment", "create")}
    limited = [command for command in commands if "--condition" in command]
    assert {command[command.index("--role") + 1] for command in limited} == {RBAC_ADMINISTRATOR_ROLE.guid}
    assert len(limited) == 6
    for command in limited:
        parse(command[command.index("--condition") + 1])
        assert command[-2:] == ["--condition-version", "2.0"]


def test_the_roles_in_azure_are_a_document_for_scripts(engine: FakeEngine, idstack: Idstack) -> None:
    configured(engine)
    done = idstack("rbac", WHO, "--azure", "--for", "reader", "--json", "--stack", "dev")

    document = json.loads(done.output)
    assert (document["purpose"], document["conditionVersion"], document["customRole"]) == ("reader", "2.0", None)
    assert {grant["role"]["name"] for grant in document["grants"]} >= {"Reader"}
    assert {grant["condition"] for grant in document["grants"]} == {None}
    renewals = idstack("rbac", WHO, "--azure", "--for", "renewals", "--stack", "dev").output
    commands = [shlex.split(line) for line in renewals.splitlines() if not line.startswith("#")]
    role = json.loads(commands[0][-1])
    assert commands[0][:4] == ["az", "role", "definition", "create"]
    assert {command[command.index("--role") + 1] for command in commands[1:]} == {role["Name"]}
    assert [command[command.index("--scope") + 1] for command in commands[1:]] == role["AssignableScopes"]


def test_a_stack_that_makes_nothing_on_a_cluster_or_is_refused_gets_no_roles(
    engine: FakeEngine, idstack: Idstack
) -> None:
    configured(engine, clusterSide="hypershift")
    done = idstack("rbac", WHO, "--kubernetes", "--stack", "dev")
    assert (done.code, done.output) == (1, "")
    assert "the stack dev creates nothing on a management cluster" in done.error

    configured(engine, location="Mars!")
    refused = idstack("rbac", WHO, "--azure", "--stack", "dev")
    assert (refused.code, "idstack:location" in refused.error) == (1, True)
    named = idstack("rbac", "deployers")
    assert (named.code, "Input should be a valid UUID" in named.error) == (2, True)
    configured(engine)
    of_a_user = idstack("rbac", WHO, "--kubernetes", "--principal-type", "user", "--stack", "dev")
    assert (of_a_user.code, "give the rights to a group of users" in of_a_user.error) == (1, True)


@pytest.mark.parametrize(
    "options",
    [["--azure", "--kubernetes"], ["--azure", "--cluster-wide"], ["--json"], ["--for", "reader"]],
    ids=" ".join,
)
def test_options_that_do_not_fit_are_wrong_usage(idstack: Idstack, options: list[str]) -> None:
    assert idstack("rbac", WHO, *options).code == 2
