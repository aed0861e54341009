"""A management cluster that the stack makes: what it needs, and what does not go together with it."""

from __future__ import annotations

from typing import Any

from tests.unit.identity.settings.world import ABSENT, OTHER, block, configuration, creation, load, refusals

PATH = "managementCluster.create"
SHARED = {"sharedStack": "organization/idstack/shared-dev", "vault": ABSENT}


def refused(**create: Any) -> list[str]:
    return refusals(configuration(managementCluster=creation(**create)))


def test_a_size_of_machine_and_an_authority_are_all_it_needs() -> None:
    settings = load(configuration(managementCluster=creation()))

    assert settings.management_cluster is not None
    create = settings.management_cluster.create
    assert create is not None
    assert (create.kubernetes_version, create.node_pool.count, create.rotation_poll_interval) == (None, 3, "2m")


def test_without_it_the_cluster_exists_already() -> None:
    settings = load(configuration())
    assert settings.management_cluster is not None
    assert settings.management_cluster.create is None


def test_a_size_of_machine_is_asked_for() -> None:
    path = f"{PATH}.nodePool"
    accepted, fix = "a mapping with the keys vmSize and count", f"write it as YAML at {path} in the stack file"
    config = configuration(managementCluster=creation(), managementCluster__create__nodePool=ABSENT)
    assert refusals(config) == [block(path, "nothing", accepted, fix)]


def test_somebody_has_to_decide_who_may_do_what() -> None:
    assert refused(azureRBAC=False) == [
        block(
            f"{PATH}.adminGroupObjectIDs",
            "nothing",
            "object ids of the Entra ID groups that administer the cluster, or azureRBAC: true instead",
            f"`pulumi config set --path '{PATH}.adminGroupObjectIDs[0]' <uuid>`, "
            f"or `pulumi config set --path {PATH}.azureRBAC true`",
        )
    ]


def test_not_two_decide_at_once() -> None:
    assert refused(adminGroupObjectIDs=[OTHER]) == [
        block(
            f"{PATH}.adminGroupObjectIDs",
            "a list",
            "nothing with managementCluster.create.azureRBAC, by which role assignments decide alone",
            f"`pulumi config rm --path {PATH}.adminGroupObjectIDs`, or `pulumi config rm --path {PATH}.azureRBAC`",
        )
    ]


def test_groups_alone_may_decide() -> None:
    assert refused(azureRBAC=False, adminGroupObjectIDs=[OTHER]) == []


def test_a_kubeconfig_of_the_users_own_is_none_of_a_cluster_to_be_made() -> None:
    path = "managementCluster.kubeconfig"
    assert refusals(configuration(managementCluster={**creation(), "kubeconfig": "mgmt.kubeconfig"})) == [
        block(
            path,
            '"mgmt.kubeconfig"',
            "nothing with managementCluster.create: AKS gives one out when the cluster is there",
            f"`pulumi config rm --path {path}`",
        )
    ]


def test_there_is_no_static_credential_without_local_accounts() -> None:
    path = "managementCluster.access.admin"
    assert refusals(configuration(managementCluster={**creation(), "access": {"admin": True}})) == [
        block(
            path,
            "true",
            "false with managementCluster.create: the cluster has no local accounts",
            f"`pulumi config rm --path {path}`",
        )
    ]


def test_the_stack_with_the_vault_makes_the_cluster() -> None:
    assert refusals(configuration(managementCluster=creation(), **SHARED)) == [
        block(
            PATH,
            "a mapping",
            "nothing with sharedStack: the stack that has the vault makes the cluster whose add-on reads it",
            f"`pulumi config rm --path {PATH}`, or `pulumi config rm sharedStack`",
        )
    ]


def test_everything_that_is_wrong_with_it_is_in_one_report() -> None:
    whole = {**creation(azureRBAC=False, rotationPollInterval="2h", nodePool={"count": 0}), "kubeconfig": "x"}
    report = refusals({**configuration(**SHARED), "managementCluster": whole})
    wrong = [each.partition("\n")[0].removeprefix("idstack:") for each in report]
    assert sorted(wrong) == [
        PATH,
        f"{PATH}.adminGroupObjectIDs",
        f"{PATH}.nodePool.count",
        f"{PATH}.nodePool.vmSize",
        f"{PATH}.rotationPollInterval",
        "managementCluster.kubeconfig",
    ]
