"""What must fit together in one hosted cluster and in each of its identities."""

from __future__ import annotations

from typing import Any

import pytest

from identity.settings.cluster_rules import _LONGEST_NAMESPACE
from tests.unit.identity.settings.world import (
    MANAGED_IDENTITY,
    NETWORK,
    OTHER,
    SUBSCRIPTION,
    VNET,
    block,
    configuration,
    refusals,
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
        block(
            "hostedClusters[0].name",
            '"hc1": the namespace has 64',
            "a name with which the namespace <namespace>-<name> has at most 63 characters",
            "`pulumi config set --path 'hostedClusters[0].name' <cluster>`, or a shorter hostedClusters[0].namespace",
        )
    ]


def test_a_subnet_is_one_of_the_network() -> None:
    subnet = f"{NETWORK}/virtualNetworks/vnet-10/subnets/default"

    assert refusals(configuration(hostedClusters__0__subnetID=subnet)) == [
        block(
            "hostedClusters[0].subnetID",
            f'"{subnet}"',
            "a subnet of hostedClusters[0].vnetID",
            "`pulumi config set --path 'hostedClusters[0].subnetID' <resource id>`",
        )
    ]
    assert refusals(configuration(hostedClusters__0__subnetID=f"{VNET}/subnets/default".upper())) == []


def test_the_network_is_in_the_stacks_subscription() -> None:
    elsewhere = NETWORK.replace(SUBSCRIPTION, OTHER)
    group = f"{elsewhere}/networkSecurityGroups/nsg-1"

    assert refusals(configuration(hostedClusters__0__securityGroupID=group)) == [
        block(
            "hostedClusters[0].securityGroupID",
            f'"{group}"',
            "a resource in the subscription of subscriptionId: a HostedCluster has one for all",
            "`pulumi config set --path 'hostedClusters[0].securityGroupID' <resource id>`",
        )
    ]


@pytest.mark.parametrize(
    "field",
    ["cloudProvider", "nodePoolManagement", "controlPlaneOperator", "ingress", "network", "disk", "file", "kms"],
)
def test_only_the_image_registry_may_be_switched_off(field: str) -> None:
    assert refusals(configuration(hostedClusters__0__identities={field: {"enabled": False}})) == [
        block(
            f"hostedClusters[0].identities.{field}.enabled",
            "false",
            "true: a HostedCluster needs this identity; only imageRegistry may be switched off",
            f"`pulumi config rm --path 'hostedClusters[0].identities.{field}.enabled'`",
        )
    ]


def test_a_managed_identity_is_named_and_has_a_credential() -> None:
    assert refusals(with_registry(source="managed-identity")) == [
        block(
            f"{REGISTRY}.resourceId",
            "nothing",
            "the resource id of the managed identity, to which the roles are assigned",
            f"`pulumi config set --path '{REGISTRY}.resourceId' <resource id>`",
        ),
        block(
            f"{REGISTRY}.credential",
            "nothing",
            "the credential of the managed identity, issued elsewhere, as one of value (a secret), file and secretName",
            f"`pulumi config set --path '{REGISTRY}.credential.file' <path>`",
        ),
    ]
    assert refusals(with_registry(source="managed-identity", enabled=False)) == []


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        ("resourceId", MANAGED_IDENTITY, f'"{MANAGED_IDENTITY}"'),
        ("clientId", OTHER, f'"{OTHER}"'),
        ("credential", {"file": "x"}, "a mapping"),
    ],
)
def test_an_application_has_nothing_of_a_managed_identity(key: str, value: Any, found: str) -> None:
    assert refusals(with_registry(**{key: value})) == [
        block(
            f"{REGISTRY}.{key}",
            found,
            "nothing with source: entra-application, where the stack issues the credential itself",
            f"`pulumi config rm --path '{REGISTRY}.{key}'`, "
            f"or `pulumi config set --path '{REGISTRY}.source' managed-identity`",
        )
    ]


@pytest.mark.parametrize(
    ("credential", "found", "fix"),
    [
        ({}, "it is empty", f"`pulumi config set --path '{REGISTRY}.credential.file' <path>`"),
        (
            {"file": "x", "secretName": "y"},
            "it holds file and secretName",
            f"`pulumi config rm --path '{REGISTRY}.credential.file'` "
            f"or `pulumi config rm --path '{REGISTRY}.credential.secretName'`",
        ),
    ],
)
def test_a_credential_comes_from_one_place(credential: dict[str, str], found: str, fix: str) -> None:
    assert refusals(with_registry(**{**IMPORTED, "credential": credential})) == [
        block(
            f"{REGISTRY}.credential",
            f"a mapping: {found}",
            "exactly one of value (a secret), file and secretName",
            fix,
        )
    ]


def test_a_credential_in_clear_is_refused_and_not_shown() -> None:
    report = refusals(with_registry(**{**IMPORTED, "credential": {"value": "MARKER"}}))

    assert report == [
        block(
            f"{REGISTRY}.credential.value",
            "a string that is not shown because it may be a secret",
            "a secret, which is encrypted in the stack file; this one stands there in clear",
            f"`pulumi config set --secret --path '{REGISTRY}.credential.value' < <file>`; "
            "have a credential that others could read issued anew",
        )
    ]


def test_a_secret_that_exists_keeps_its_name() -> None:
    identity = {**IMPORTED, "credential": {"secretName": "uamsi"}, "secretName": "mine"}

    assert refusals(with_registry(**identity)) == [
        block(
            f"{REGISTRY}.secretName",
            '"mine"',
            f"nothing beside {REGISTRY}.credential.secretName: the secret is used under its own name",
            f"`pulumi config rm --path '{REGISTRY}.secretName'`",
        )
    ]
