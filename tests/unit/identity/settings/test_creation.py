"""A management cluster that the stack makes: what it needs, and what does not go together with it."""

from __future__ import annotations

from typing import Any

import pytest

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


def pool(**changes: Any) -> dict[str, Any]:
    return {"nodePool": {"vmSize": "Standard_D4s_v5", **changes}}


def test_machines_and_network_are_those_of_hypershifts_script() -> None:
    settings = load(configuration(managementCluster=creation()))

    assert settings.management_cluster is not None
    create = settings.management_cluster.create
    assert create is not None
    machines, network = create.node_pool, create.network
    assert (machines.zones, machines.max_pods, machines.os_sku, machines.fips) == ((1, 2, 3), 250, "AzureLinux", True)
    assert (network.plugin, network.policy) == ("azure", "azure")


@pytest.mark.parametrize("zones", [[], [2], [1, 3]])
def test_a_region_may_have_fewer_zones(zones: list[int]) -> None:
    assert refused(**pool(zones=zones)) == []


@pytest.mark.parametrize("zones", [[2, 1], [1, 1]])
def test_zones_are_ascending(zones: list[int]) -> None:
    assert refused(**pool(zones=zones)) == [(f"{PATH}.nodePool.zones", "availability-zones")]


@pytest.mark.parametrize(
    ("plugin", "policy", "is_refused"),
    [("kubenet", "azure", True), ("kubenet", "calico", False), ("kubenet", "none", False), ("azure", "calico", False)],
)
def test_a_network_policy_engine_belongs_to_its_plugin(plugin: str, policy: str, is_refused: bool) -> None:
    found = refused(network={"plugin": plugin, "policy": policy})

    assert found == ([(f"{PATH}.network.policy", "network-policy-of-kubenet")] if is_refused else [])


@pytest.mark.parametrize(("count", "is_refused"), [(261, False), (262, True)])
def test_every_pod_has_an_address(count: int, is_refused: bool) -> None:
    """65,531 addresses, 251 for a machine with 250 pods."""
    expected = [(f"{PATH}.nodePool.maxPods", "node-pool-addresses")] if is_refused else []

    assert refused(**pool(count=count)) == expected
    assert refused(**pool(count=count, maxPods=30)) == []
    assert refused(**pool(count=count), network={"plugin": "kubenet", "policy": "calico"}) == []
