"""A management cluster that the stack makes: what it needs, and what does not go together with it."""

from __future__ import annotations

from typing import Any

from tests.unit.identity.settings.world import ABSENT, OTHER, configuration, creation, load, refusals

PATH = "managementCluster.create"
SHARED = {"sharedStack": "organization/idstack/shared-dev", "vault": ABSENT}


def refused(**create: Any) -> list[tuple[str, str]]:
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
    config = configuration(managementCluster=creation(), managementCluster__create__nodePool=ABSENT)
    assert refusals(config) == [(path, "missing")]


def test_somebody_has_to_decide_who_may_do_what() -> None:
    assert refused(azureRBAC=False) == [(f"{PATH}.adminGroupObjectIDs", "no-cluster-authority")]


def test_not_two_decide_at_once() -> None:
    assert refused(adminGroupObjectIDs=[OTHER]) == [(f"{PATH}.adminGroupObjectIDs", "two-cluster-authorities")]


def test_groups_alone_may_decide() -> None:
    assert refused(azureRBAC=False, adminGroupObjectIDs=[OTHER]) == []


def test_a_kubeconfig_of_the_users_own_is_none_of_a_cluster_to_be_made() -> None:
    path = "managementCluster.kubeconfig"
    assert refusals(configuration(managementCluster={**creation(), "kubeconfig": "mgmt.kubeconfig"})) == [
        (path, "kubeconfig-of-created-cluster")
    ]


def test_there_is_no_static_credential_without_local_accounts() -> None:
    path = "managementCluster.access.admin"
    assert refusals(configuration(managementCluster={**creation(), "access": {"admin": True}})) == [
        (path, "admin-of-created-cluster")
    ]


def test_the_stack_with_the_vault_makes_the_cluster() -> None:
    assert refusals(configuration(managementCluster=creation(), **SHARED)) == [
        (PATH, "created-cluster-in-sharing-stack")
    ]


def test_everything_that_is_wrong_with_it_is_in_one_report() -> None:
    whole = {**creation(azureRBAC=False, rotationPollInterval="2h", nodePool={"count": 0}), "kubeconfig": "x"}
    assert sorted(refusals({**configuration(**SHARED), "managementCluster": whole})) == [
        (PATH, "created-cluster-in-sharing-stack"),
        (f"{PATH}.adminGroupObjectIDs", "no-cluster-authority"),
        (f"{PATH}.nodePool.count", "integer"),
        (f"{PATH}.nodePool.vmSize", "missing"),
        (f"{PATH}.rotationPollInterval", "poll-interval"),
        ("managementCluster.kubeconfig", "kubeconfig-of-created-cluster"),
    ]
