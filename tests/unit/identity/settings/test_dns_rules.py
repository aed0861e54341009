"""What must fit together in the domains and zones of a hosted cluster."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.identity.settings.world import (
    DNS,
    MANAGED,
    NETWORK,
    OTHER,
    SUBSCRIPTION,
    configuration,
    domains,
    hosted_cluster,
    refusals,
    with_change,
)

PUBLIC = "hostedClusters[0].dns.publicZoneID"
PRIVATE = "hostedClusters[0].dns.privateZoneID"


def with_domains(external: str = "control-planes.example.com", name: str = "hc1", **dns: Any) -> dict[str, Any]:
    keys = domains(**dns) | {"externalDnsDomain": external}
    return configuration(hostedClusters=[hosted_cluster(name, resourceGroup="hc1-managed", **keys)])


def test_domains_with_both_zones_are_accepted() -> None:
    assert refusals(with_domains()) == []


@pytest.mark.parametrize("external", ["example.com", "apps.example.com", "hc1.apps.example.com"])
def test_the_external_domain_does_not_hold_the_clusters_own(external: str) -> None:
    assert refusals(with_domains(external)) == [
        ("hostedClusters[0].externalDnsDomain", "external-domain-shadows-applications")
    ]


@pytest.mark.parametrize("external", ["s.example.com", "x.hc1.apps.example.com", "other.apps.example.com"])
def test_a_domain_beside_or_below_the_clusters_own_is_accepted(external: str) -> None:
    assert refusals(with_domains(external)) == []


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("example.com", []),
        ("EXAMPLE.com", []),
        ("control-planes.example.com", []),
        ("planes.example.com", ["external-zone-of-other-domain"]),
        ("api.control-planes.example.com", ["external-zone-of-other-domain"]),
    ],
)
def test_the_zone_of_external_dns_holds_the_external_domain(zone: str, expected: list[str]) -> None:
    config = with_change(with_domains(), "hostedClusters__0__externalDnsZoneID", f"{DNS}/dnszones/{zone}")

    assert refusals(config) == [("hostedClusters[0].externalDnsZoneID", rule) for rule in expected]


def test_a_label_of_a_host_name_is_at_most_63_characters() -> None:
    too_long = configuration(hostedClusters=[hosted_cluster("x" * 51, externalDnsDomain="example.com", namespace="n")])
    dotted = f"{'x' * 50}.y"
    longest = configuration(hostedClusters=[hosted_cluster(dotted, externalDnsDomain="example.com", namespace="n")])

    assert refusals(too_long) == [("hostedClusters[0].name", "host-name-too-long")]
    assert refusals(longest) == []


@pytest.mark.parametrize("zone", ["ps.example.com", "x.apps.example.com", "example.org"])
def test_a_zone_holds_the_clusters_domain(zone: str) -> None:
    config = with_domains(publicZoneID=f"{DNS}/dnszones/{zone}", privateZoneID=f"{MANAGED}/privateDnsZones/{zone}")

    assert refusals(config) == [(PUBLIC, "zone-of-other-domain"), (PRIVATE, "zone-of-other-domain")]


@pytest.mark.parametrize("group", [DNS, MANAGED, NETWORK, DNS.upper()])
def test_a_zone_is_where_the_ingress_operator_has_its_role(group: str) -> None:
    assert refusals(with_domains(publicZoneID=f"{group}/dnszones/apps.example.com")) == []


@pytest.mark.parametrize(
    "group", [DNS.replace("/dns/", "/other/"), DNS.replace(SUBSCRIPTION, OTHER)], ids=["group", "subscription"]
)
def test_a_zone_elsewhere_is_refused(group: str) -> None:
    config = with_domains(
        publicZoneID=f"{group}/dnszones/apps.example.com", privateZoneID=f"{group}/privateDnsZones/example.com"
    )

    assert refusals(config) == [(PUBLIC, "zone-without-role"), (PRIVATE, "zone-without-role")]


def test_with_builtin_roles_a_zone_is_in_any_group_of_the_subscription() -> None:
    group, elsewhere = DNS.replace("/dns/", "/other/"), DNS.replace(SUBSCRIPTION, OTHER)
    config = with_domains(
        publicZoneID=f"{group}/dnszones/apps.example.com", privateZoneID=f"{elsewhere}/privateDnsZones/example.com"
    )

    assert refusals(with_change(config, "roles", "builtin")) == [(PRIVATE, "zone-without-role")]


def test_a_network_that_was_refused_itself_decides_nothing_about_zones() -> None:
    config = with_change(with_domains(), "hostedClusters__0__vnetID", "vnet-1")

    assert refusals(config) == [("hostedClusters[0].vnetID", "vnet-id")]
