"""Private access to the API server: what the HostedCluster API would refuse at the end is refused at the beginning."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.identity.settings.world import OTHER, SUBSCRIPTION, VNET, configuration, refusals

PRIVATE = "hostedClusters[0].private"
SWIFT = {"type": "Swift", "swift": {"podNetworkInstance": "pni"}}
LINK = {"type": "PrivateLink", "privateLink": {"natSubnetID": f"{VNET}/subnets/nat"}}


def with_access(topology: str | None, private: dict[str, Any] | None) -> dict[str, Any]:
    return configuration(hostedClusters__0__topology=topology, hostedClusters__0__private=private)


@pytest.mark.parametrize(
    ("topology", "private"),
    [
        (None, None),
        ("Public", None),
        ("Private", SWIFT),
        ("PublicAndPrivate", LINK),
        ("Private", {"type": "PrivateLink", "privateLink": {"additionalAllowedSubscriptions": [OTHER]}}),
    ],
)
def test_a_topology_with_what_it_needs_is_accepted(topology: str | None, private: dict[str, Any] | None) -> None:
    assert refusals(with_access(topology, private)) == []


@pytest.mark.parametrize("topology", ["Private", "PublicAndPrivate"])
def test_private_access_needs_a_way(topology: str) -> None:
    assert refusals(with_access(topology, None)) == [(PRIVATE, "private-access-missing")]


@pytest.mark.parametrize("topology", [None, "Public"])
def test_a_public_cluster_has_no_private_access(topology: str | None) -> None:
    assert refusals(with_access(topology, SWIFT)) == [(PRIVATE, "private-access-without-topology")]


def test_the_keys_are_those_of_the_type() -> None:
    assert refusals(with_access("Private", {"type": "Swift"})) == [(f"{PRIVATE}.swift", "private-access-incomplete")]
    assert refusals(with_access("Private", {**SWIFT, "privateLink": LINK["privateLink"]})) == [
        (f"{PRIVATE}.privateLink", "private-access-unused")
    ]


def test_a_private_link_is_not_empty() -> None:
    assert refusals(with_access("Private", {"type": "PrivateLink", "privateLink": {}})) == [
        (f"{PRIVATE}.privateLink", "private-link-empty")
    ]


@pytest.mark.parametrize(
    "subscriptions", [[OTHER, SUBSCRIPTION, OTHER], [f"{at:08}-0000-4000-8000-000000000000" for at in range(1, 52)]]
)
def test_subscriptions_are_few_and_different(subscriptions: list[str]) -> None:
    link = {"type": "PrivateLink", "privateLink": {"additionalAllowedSubscriptions": subscriptions}}

    assert refusals(with_access("Private", link)) == [
        (f"{PRIVATE}.privateLink.additionalAllowedSubscriptions", "private-link-subscriptions")
    ]
