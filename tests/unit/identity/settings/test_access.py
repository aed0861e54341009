"""The way to the management cluster: what a login needs, and what a cluster needs that the stack makes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.identity.settings.world import ABSENT, OTHER, configuration, creation, load, refusals, report

LOGINS: dict[str, dict[str, str]] = {
    "arm": {},
    "certificate": {"certificate": "deployer.pem"},
    "secret": {"clientId": OTHER, "clientSecretFile": "secret"},
    "workload-identity": {"clientId": OTHER, "federatedTokenFile": "token"},
    "github": {"clientId": OTHER},
    "managed-identity": {},
    "azure-cli": {},
}
OPTIONAL = {"arm": {"clientId"}, "certificate": {"clientId"}, "managed-identity": {"clientId"}}
VALUES = {"clientId": OTHER, "certificate": "a.pem", "clientSecretFile": "s", "federatedTokenFile": "t"}


def cluster(**access: Any) -> dict[str, Any]:
    return {"resourceGroup": "aks", "name": "mgmt", "access": access}


@pytest.mark.parametrize("login", LOGINS)
@pytest.mark.parametrize("flavour", ["idstack", "kubelogin"])
def test_a_login_with_what_it_needs_is_taken(login: str, flavour: str) -> None:
    access = {"login": login, "flavour": flavour, **LOGINS[login]}
    assert refusals(configuration(managementCluster=cluster(**access))) == []


@pytest.mark.parametrize(("login", "key"), [(login, key) for login, keys in LOGINS.items() for key in keys])
def test_what_a_login_needs_is_asked_for(login: str, key: str) -> None:
    access = {"login": login, **{name: value for name, value in LOGINS[login].items() if name != key}}
    path = f"managementCluster.access.{key}"
    config = configuration(managementCluster=cluster(**access))
    assert refusals(config) == [(path, "login-key-missing")]
    assert f"a value with login: {login}\n" in report(config)


@pytest.mark.parametrize(
    ("login", "key"),
    [(login, key) for login in LOGINS for key in VALUES if key not in {*LOGINS[login], *OPTIONAL.get(login, ())}],
)
def test_what_a_login_has_no_use_for_is_refused(login: str, key: str) -> None:
    path = f"managementCluster.access.{key}"
    access = {"login": login, **LOGINS[login], key: VALUES[key]}
    config = configuration(managementCluster=cluster(**access))
    assert refusals(config) == [(path, "login-key-unused")]
    assert f"nothing with login: {login}\n" in report(config)


def test_a_kubeconfig_of_the_users_own_leaves_no_room_for_another_way() -> None:
    config = configuration(managementCluster={**cluster(), "kubeconfig": "mgmt.kubeconfig"})
    assert refusals(config) == [("managementCluster.kubeconfig", "kubeconfig-beside-access")]


def test_a_context_is_one_of_the_users_own_kubeconfig() -> None:
    path = "managementCluster.context"
    assert refusals(configuration(managementCluster__kubeconfig=ABSENT, managementCluster__context="prod")) == [
        (path, "context-without-kubeconfig")
    ]


PATH = "managementCluster.create"
SHARED = {"sharedStack": "organization/idstack/shared-dev", "vault": ABSENT}


def refused(**create: Any) -> list[tuple[str, str]]:
    return refusals(configuration(managementCluster=creation(**create)))


def test_a_size_of_machine_and_an_authority_are_all_it_needs() -> None:
    """Machines and network are those of HyperShift's script."""
    existing, made = (load(configuration(**changes)) for changes in ({}, {"managementCluster": creation()}))

    assert existing.management_cluster is not None
    assert existing.management_cluster.create is None
    assert made.management_cluster is not None
    create = made.management_cluster.create
    assert create is not None
    machines, network = create.node_pool, create.network
    assert (create.kubernetes_version, machines.count, create.rotation_poll_interval) == (None, 3, "2m")
    assert (machines.zones, machines.max_pods, machines.os_sku, machines.fips) == ((1, 2, 3), 250, "AzureLinux", True)
    assert (network.plugin, network.policy) == ("azure", "azure")


def made(**create: Any) -> dict[str, Any]:
    """The changes of a stack that makes its management cluster so."""
    return {"managementCluster": creation(**create)}


def pool(**changes: Any) -> dict[str, Any]:
    return {"nodePool": {"vmSize": "Standard_D4s_v5", **changes}}


ZONES, POLICY = (
    [(f"{PATH}.{key}", rule)]
    for key, rule in (("nodePool.zones", "availability-zones"), ("network.policy", "network-policy-of-kubenet"))
)
CASES: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "a size of machine is asked for": (
        {**made(), "managementCluster__create__nodePool": ABSENT},
        [(f"{PATH}.nodePool", "missing")],
    ),
    "somebody has to decide who may do what": (
        made(azureRBAC=False),
        [(f"{PATH}.adminGroupObjectIDs", "no-cluster-authority")],
    ),
    "not two decide at once": (
        made(adminGroupObjectIDs=[OTHER]),
        [(f"{PATH}.adminGroupObjectIDs", "two-cluster-authorities")],
    ),
    "groups alone may decide": (made(azureRBAC=False, adminGroupObjectIDs=[OTHER]), []),
    "a kubeconfig is of a cluster that exists": (
        {"managementCluster": {**creation(), "kubeconfig": "mgmt.kubeconfig"}},
        [("managementCluster.kubeconfig", "kubeconfig-of-created-cluster")],
    ),
    "without local accounts there is no static credential": (
        {"managementCluster": {**creation(), "access": {"admin": True}}},
        [("managementCluster.access.admin", "admin-of-created-cluster")],
    ),
    "the stack with the vault makes the cluster": (
        {**made(), **SHARED},
        [(PATH, "created-cluster-in-sharing-stack")],
    ),
    **{f"a region may have the zones {zones}": (made(**pool(zones=zones)), []) for zones in ([], [2], [1, 3])},
    **{f"zones are ascending, not {zones}": (made(**pool(zones=zones)), ZONES) for zones in ([2, 1], [1, 1])},
    **{
        f"{plugin} has the policies of {policy}": (made(network={"plugin": plugin, "policy": policy}), expected)
        for plugin, policy, expected in (
            ("kubenet", "azure", POLICY),
            ("kubenet", "calico", []),
            ("kubenet", "none", []),
            ("azure", "calico", []),
        )
    },
}


@pytest.mark.parametrize(("changes", "expected"), CASES.values(), ids=CASES)
def test_what_must_fit_together(changes: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert refusals(configuration(**changes)) == expected


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


@pytest.mark.parametrize(("count", "is_refused"), [(261, False), (262, True)])
def test_every_pod_has_an_address(count: int, is_refused: bool) -> None:
    """65,531 addresses, 251 for a machine with 250 pods."""
    expected = [(f"{PATH}.nodePool.maxPods", "node-pool-addresses")] if is_refused else []

    kubenet = {"plugin": "kubenet", "policy": "calico"}
    assert refusals(configuration(**made(**pool(count=count)))) == expected
    assert refusals(configuration(**made(**pool(count=count, maxPods=30)))) == []
    assert refusals(configuration(**made(**pool(count=count), network=kubenet))) == []
