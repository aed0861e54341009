"""The way to the management cluster: what a login needs. `cases/access.yaml` has what else must fit together."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.identity.settings.world import OTHER, configuration, creation, load, refusals, report

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


NEEDED = [(login, key) for login, keys in LOGINS.items() for key in keys]
UNUSED = [(login, key) for login in LOGINS for key in VALUES if key not in {*LOGINS[login], *OPTIONAL.get(login, ())}]


@pytest.mark.parametrize(("login", "key"), [*NEEDED, *UNUSED])
def test_what_a_login_needs_is_asked_for_and_what_it_has_no_use_for_refused(login: str, key: str) -> None:
    access = {"login": login, key: VALUES[key], **LOGINS[login]}
    is_needed = key in LOGINS[login]
    if is_needed:
        del access[key]
    config = configuration(managementCluster=cluster(**access))

    rule, accepted = ("login-key-missing", "a value") if is_needed else ("login-key-unused", "nothing")
    assert refusals(config) == [(f"managementCluster.access.{key}", rule)]
    assert f"{accepted} with login: {login}\n" in report(config)


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
