"""The way to the management cluster: which keys a login needs, and what does not go together."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.identity.settings.world import ABSENT, OTHER, configuration, refusals, report

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
