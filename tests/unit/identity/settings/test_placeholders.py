"""What only an example has is refused in the file of a stack on Azure, in its place."""

from __future__ import annotations

from typing import Any

import pytest

from identity.settings import ConfigurationError, Settings, load_settings
from tests.unit.golden_report import reviewed
from tests.unit.identity.settings.world import (
    ABSENT,
    DNS,
    LOCAL,
    LOCAL_CLOUD_KEYS,
    VNET,
    as_pulumi_passes_it,
    configuration,
    hosted_cluster,
)

IMAGE = {"image": "idstack.azurecr.io/probe:1"}


def load(**changes: Any) -> Settings:
    """The settings in a stack's file."""
    config = configuration(**{"probe": IMAGE, **changes})
    return load_settings(as_pulumi_passes_it(config), secret_keys=(), local=None, written=config)


def refused(**changes: Any) -> list[tuple[str, str]]:
    try:
        load(**changes)
    except ConfigurationError as error:
        return reviewed(error.problems)
    return []


def deny(**lists: Any) -> dict[str, Any]:
    return {"name": "kv-identity", "defaultAction": "Deny", **lists}


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"probe": {"image": "registry.example.com/probe:1"}}, "probe.image"),
        ({"vault": {"name": "kv-example-dev", "defaultAction": "Allow"}}, "vault.name"),
        ({"resourceGroup": "example-dev"}, "resourceGroup"),
        ({"vault": deny(allowedIpRanges=["203.0.113.16/28"])}, "vault.allowedIpRanges[0]"),
        ({"vault": deny(allowedIpRanges=["20.1.2.3", "198.51.100.7"])}, "vault.allowedIpRanges[1]"),
        ({"vault": deny(allowedIpRanges=["192.0.2.0/24"])}, "vault.allowedIpRanges[0]"),
        (
            {"vault": deny(allowedSubnetIds=[f"{VNET.replace('/net/', '/example-dev/')}/subnets/aks"])},
            "vault.allowedSubnetIds[0]",
        ),
        (
            {"hostedClusters": [hosted_cluster(issuerURL="https://oidc.example.com/hc1")]},
            "hostedClusters[0].issuerURL",
        ),
        (
            {"hostedClusters": [hosted_cluster(externalDnsDomain="planes.example.org")]},
            "hostedClusters[0].externalDnsDomain",
        ),
        ({"managementCluster__name": "example-dev"}, "managementCluster.name"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_placeholder_is_refused_in_its_place(changes: dict[str, Any], place: str) -> None:
    assert refused(**changes) == [(place, "placeholder")]


def test_the_issuers_name_of_a_sample_is_refused_once() -> None:
    created = hosted_cluster(issuer="create", issuerName="exampledevhc1", issuerURL=ABSENT)

    assert refused(hostedClusters=[created]) == [("hostedClusters[0].issuerName", "placeholder")]


def test_what_follows_from_a_placeholder_is_not_reported_beside_it() -> None:
    cluster = {"name": "hc1", "issuerURL": "https://hc1.blob.core.windows.net/hc1", "infrastructure": "create"}
    dns = {"baseDomain": "apps.example.com", "publicZoneID": f"{DNS}/dnszones/apps.example.com"}

    assert refused(hostedClusters=[{**cluster, "dns": dns}]) == [
        ("hostedClusters[0].dns.baseDomain", "placeholder"),
        ("hostedClusters[0].dns.publicZoneID", "placeholder"),
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"resourceGroup": "examples"},
        {"tags": {"owner": "somebody@example.com"}},
        {"vault": deny(allowedIpRanges=["203.0.112.0/24"])},
        {"hostedClusters": [hosted_cluster(issuerURL="https://example.community/hc1")]},
    ],
    ids=["a longer word", "a tag", "the next network", "a longer domain"],
)
def test_what_only_resembles_one_is_a_value_like_others(changes: dict[str, Any]) -> None:
    assert refused(**changes) == []


def test_the_local_cloud_has_domains_of_documentation() -> None:
    config = configuration(
        **LOCAL_CLOUD_KEYS,
        managementCluster={"resourceGroup": "aks-example-dev", "name": "mgmt"},
        probe={"image": "registry.example.com/probe:1"},
        hostedClusters=[],
    )

    load_settings(as_pulumi_passes_it(config), secret_keys=(), local=LOCAL, written=config)
