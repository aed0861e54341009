"""What must fit together in one hosted cluster and in each of its identities."""

from __future__ import annotations

from typing import Any

import pytest

from identity.catalogue import CONTROL_PLANE
from identity.settings.rules.hosted_cluster import _LONGEST_NAMESPACE
from tests.unit.identity.settings.world import (
    MANAGED_IDENTITY,
    NETWORK,
    OTHER,
    SUBSCRIPTION,
    VNET,
    configuration,
    refusals,
    report,
    with_change,
)

REGISTRY = "hostedClusters[0].identities.imageRegistry"
IMPORTED = {"source": "managed-identity", "resourceId": MANAGED_IDENTITY, "credential": {"file": "x"}}


def with_registry(**identity: Any) -> dict[str, Any]:
    return configuration(hostedClusters__0__identities={"imageRegistry": identity})


def test_a_namespace_is_a_dns_label_with_the_clusters_name() -> None:
    assert _LONGEST_NAMESPACE == 63
    longest = {"hostedClusters__0__name": "hc1", "hostedClusters__0__infraID": "i"}

    assert refusals(configuration(**longest, hostedClusters__0__namespace="n" * 59)) == []
    assert refusals(configuration(**longest, hostedClusters__0__namespace="n" * 60)) == [
        ("hostedClusters[0].name", "namespace-too-long")
    ]


def test_a_subnet_is_one_of_the_network() -> None:
    subnet = f"{NETWORK}/virtualNetworks/vnet-10/subnets/default"

    assert refusals(configuration(hostedClusters__0__subnetID=subnet)) == [
        ("hostedClusters[0].subnetID", "subnet-outside-vnet")
    ]
    assert refusals(configuration(hostedClusters__0__subnetID=f"{VNET}/subnets/default".upper())) == []


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("securityGroupID", "networkSecurityGroups/nsg-1"),
        ("routeTableID", "routeTables/routes"),
        ("natGatewayID", "natGateways/nat"),
    ],
)
def test_the_network_is_in_the_stacks_subscription(key: str, name: str) -> None:
    elsewhere = NETWORK.replace(SUBSCRIPTION, OTHER)

    assert refusals(configuration(**{f"hostedClusters__0__{key}": f"{elsewhere}/{name}"})) == [
        (f"hostedClusters[0].{key}", "network-in-other-subscription")
    ]
    assert refusals(configuration(**{f"hostedClusters__0__{key}": f"{NETWORK}/{name}"})) == []


OWNER, ADMINISTRATOR = "8e3af657-a8ff-443c-a75c-2fe8c4bcb635", "f58310d9-a9f6-439a-9e8d-f62e7b41a168"


@pytest.mark.parametrize("role", [OWNER, ADMINISTRATOR.upper()])
def test_a_role_that_assigns_roles_is_not_kept(role: str) -> None:
    key = "hostedClusters__0__identities__ingress__customRole"

    assert refusals(configuration(**{key: role})) == [
        ("hostedClusters[0].identities.ingress.customRole", "custom-role-assigns-roles")
    ]
    assert refusals(configuration(**{key: "7d8bb4e4-6fa7-4545-96cf-20fce11b705d"})) == []


@pytest.mark.parametrize("field", [row.field for row in CONTROL_PLANE if not row.optional])
def test_an_identity_that_the_api_requires_is_not_switched_off(field: str) -> None:
    assert refusals(configuration(hostedClusters__0__identities={field: {"enabled": False}})) == [
        (f"hostedClusters[0].identities.{field}.enabled", "identity-required")
    ]


def test_a_managed_identity_is_named_and_has_a_credential() -> None:
    assert refusals(with_registry(source="managed-identity")) == [
        (f"{REGISTRY}.resourceId", "managed-identity-without-resource-id"),
        (f"{REGISTRY}.credential", "managed-identity-without-credential"),
    ]
    assert refusals(with_registry(source="managed-identity", enabled=False)) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [("resourceId", MANAGED_IDENTITY), ("clientId", OTHER), ("credential", {"file": "x"})],
)
def test_an_application_has_nothing_of_a_managed_identity(key: str, value: Any) -> None:
    assert refusals(with_registry(**{key: value})) == [(f"{REGISTRY}.{key}", "application-with-managed-identity-key")]


@pytest.mark.parametrize(
    ("credential", "reason"), [({}, "it is empty"), ({"file": "x", "secretName": "y"}, "it holds file and secretName")]
)
def test_a_credential_comes_from_one_place(credential: dict[str, str], reason: str) -> None:
    config = with_registry(**{**IMPORTED, "credential": credential})

    assert refusals(config) == [(f"{REGISTRY}.credential", "one-imported-credential")]
    assert f"found:    a mapping: {reason}\n" in report(config)


@pytest.mark.parametrize("value", ["MARKER", 4711, {"secure": "MARKER"}, None])
@pytest.mark.parametrize("others", [{}, {"file": "x"}, {"file": "x", "secretName": "y"}])
@pytest.mark.parametrize("secret_keys", [(), ("hostedClusters",)])
def test_a_document_in_the_configuration_is_refused_and_not_shown(
    value: object, others: dict[str, str], secret_keys: tuple[str, ...]
) -> None:
    config = with_registry(**{**IMPORTED, "credential": {"value": value, **others}})

    assert (f"{REGISTRY}.credential.value", "unknown-key") in refusals(config, secret_keys=secret_keys)
    assert "MARKER" not in (written := report(config, secret_keys=secret_keys))
    assert "4711" not in written


@pytest.mark.parametrize("path", ['{"client_secret": "x"}', "-----BEGIN PRIVATE KEY-----", "x" * 501, "a\nb", ""])
def test_a_path_of_a_document_is_not_the_document(path: str) -> None:
    config = with_registry(**{**IMPORTED, "credential": {"file": path}})

    assert refusals(config) == [(f"{REGISTRY}.credential.file", "document-path")]


@pytest.mark.parametrize("place", ["credential", "credential__file", "credential__secretName", "credential__other"])
def test_a_document_in_the_wrong_place_is_not_shown(place: str) -> None:
    key = "MARKER" * 100
    config = with_change(with_registry(**IMPORTED), f"hostedClusters__0__identities__imageRegistry__{place}", key)

    assert "MARKER" not in report(config)


def test_a_secret_that_exists_keeps_its_name() -> None:
    identity = {**IMPORTED, "credential": {"secretName": "uamsi"}, "secretName": "mine"}

    assert refusals(with_registry(**identity)) == [(f"{REGISTRY}.secretName", "existing-secret-renamed")]
