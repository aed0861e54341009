"""Infrastructure and issuer of a hosted cluster: given, or made by the stack."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.identity.settings.world import (
    ABSENT,
    DNS,
    NETWORK,
    SUBSCRIPTION,
    configuration,
    domains,
    hosted_cluster,
    load,
    refusals,
    report,
    with_change,
)

GROUPS = f"/subscriptions/{SUBSCRIPTION}/resourceGroups"
NAMED = ("resourceGroup", "vnetID", "subnetID", "securityGroupID", "dnsZoneResourceGroup")
UNNAMED: dict[str, Any] = dict.fromkeys(NAMED, ABSENT)
WITHOUT_DOMAIN = [("hostedClusters[0].dns", "created-infrastructure-without-domain")]


def created(name: str = "hc1", **changes: Any) -> dict[str, Any]:
    """A hosted cluster whose infrastructure the stack makes; a change to ABSENT removes a key."""
    zone = {"baseDomain": "example.com", "publicZoneID": f"{DNS}/dnszones/example.com"}
    given = {**UNNAMED, "infraID": f"{name}-x1", "infrastructure": "create", "dns": zone}
    return hosted_cluster(name, **given | changes)


def refused(**changes: Any) -> list[tuple[str, str]]:
    return refusals(configuration(hostedClusters=[created(**changes)]))


def test_every_name_follows_from_the_clusters() -> None:
    [cluster] = load(configuration(hostedClusters=[created()])).hosted_clusters

    assert cluster.resource_group == "hc1-hc1-x1"
    vnet = f"{GROUPS}/hc1-vnet-hc1-x1/providers/Microsoft.Network/virtualNetworks/hc1-hc1-x1"
    nsg = f"{GROUPS}/hc1-nsg-hc1-x1/providers/Microsoft.Network/networkSecurityGroups/hc1-hc1-x1-nsg"
    assert (cluster.vnet_id, cluster.subnet_id) == (vnet, f"{vnet}/subnets/default")
    assert cluster.security_group_id == nsg
    assert cluster.dns_zone_resource_group == "dns"
    assert cluster.dns is not None
    zone = f"{GROUPS}/hc1-hc1-x1/providers/Microsoft.Network/privateDnsZones/hc1.example.com"
    assert cluster.dns.private_zone_id == zone
    assert cluster.network is not None
    assert (cluster.network.address_prefix, cluster.network.subnet_address_prefix) == ("10.0.0.0/16", "10.0.0.0/24")


def test_the_same_names_may_be_said() -> None:
    [cluster] = load(configuration(hostedClusters=[created()])).hosted_clusters
    said = {"resourceGroup": cluster.resource_group, "vnetID": cluster.vnet_id, "subnetID": cluster.subnet_id}

    assert refused(**said, securityGroupID=cluster.security_group_id, dnsZoneResourceGroup="dns") == []


@pytest.mark.parametrize("key", ["resourceGroup", "vnetID", "subnetID", "securityGroupID"])
def test_another_name_contradicts_the_creation(key: str) -> None:
    assert (f"hostedClusters[0].{key}", "created-infrastructure-named") in refused(**{key: hosted_cluster()[key]})


@pytest.mark.parametrize(("key", "name"), [("routeTableID", "routeTables/r"), ("natGatewayID", "natGateways/n")])
def test_a_subnet_that_the_stack_makes_has_nothing_attached(key: str, name: str) -> None:
    assert refused(**{key: f"{NETWORK}/{name}"}) == [(f"hostedClusters[0].{key}", "created-infrastructure-named")]


def test_a_private_zone_is_the_domains_and_the_public_one_exists_already() -> None:
    given = domains(privateZoneID=f"{DNS}/privateDnsZones/hc1.apps.example.com")
    unnamed = [("hostedClusters[0].dns.publicZoneID", "created-infrastructure-without-public-zone")]

    assert refused(**given) == [("hostedClusters[0].dns.privateZoneID", "created-infrastructure-named")]
    assert refused(dns=ABSENT) == WITHOUT_DOMAIN
    assert refused(dns={"baseDomain": "example.com"}) == unnamed


def test_a_name_that_is_too_long_for_a_network_is_refused_once() -> None:
    assert refused(infraID="x" * 61) == [("hostedClusters[0].infraID", "created-network-name-too-long")]
    assert refused(infraID="x" * 60) == []


def test_a_subnet_is_inside_of_its_network() -> None:
    given = {"addressPrefix": "10.4.0.0/16"}
    expected = [("hostedClusters[0].network.subnetAddressPrefix", "subnet-range-outside-network")]
    assert refused(network=given) == expected
    assert refused(network={**given, "subnetAddressPrefix": "10.4.8.0/22"}) == []


@pytest.mark.parametrize(
    ("prefix", "key", "other"),
    [("10.128.0.0/9", "clusterNetwork", [{"cidr": "10.0.0.0/14"}]), ("172.31.0.0/16", "serviceNetwork", [])],
)
def test_nodes_are_not_in_the_networks_of_pods_and_services(prefix: str, key: str, other: Any) -> None:
    ranges = {"addressPrefix": prefix, "subnetAddressPrefix": prefix}
    expected = [("hostedClusters[0].network.subnetAddressPrefix", "network-of-pods-or-services")]
    spec: dict[str, Any] = {"serviceAccountSigningKey": {"name": "key"}}

    def refused_with(spec: dict[str, Any]) -> list[tuple[str, str]]:
        cluster = created(network=ranges, hostedCluster={"manifest": {"spec": spec}})
        return refusals(configuration(clusterSide="hypershift", hostedClusters=[cluster]))

    assert refused_with(spec) == expected
    assert refused_with({**spec, "networking": {key: other}}) == []
    assert refused(network=ranges) == [], "the tool that applies the HostedCluster may give others"
    ranges |= {"addressPrefix": "10.0.0.0/8", "subnetAddressPrefix": "10.200.0.0/16"}
    assert refused_with(spec) == [], "the rest of the network has no nodes"


def test_an_existing_network_has_its_ranges_and_is_named() -> None:
    given = hosted_cluster(network={"addressPrefix": "10.0.0.0/16"})
    expected = [("hostedClusters[0].network", "ranges-of-existing-network")]
    missing = [(f"hostedClusters[0].{key}", "missing") for key in NAMED]
    assert refusals(configuration(hostedClusters=[given])) == expected
    assert refusals(configuration(hostedClusters=[hosted_cluster(**UNNAMED)])) == missing


def test_a_group_that_is_made_holds_nothing_that_exists() -> None:
    group = "hc1-hc1-x1"
    expected = [("hostedClusters[0].infraID", "created-group-shared")]

    assert refusals(configuration(resourceGroup=group.upper(), hostedClusters=[created()])) == expected
    zone = f"{GROUPS}/{group}/providers/Microsoft.Network/dnszones/example.com"
    assert refused(dns={"baseDomain": "example.com", "publicZoneID": zone}) == expected
    second = hosted_cluster("hc2", resourceGroup="hc1-vnet-hc1-x1")
    assert refusals(configuration(hostedClusters=[created(), second])) == expected
    assert refusals(configuration(hostedClusters=[created(), created("hc2")])) == []


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"name": "Hc1", "infraID": "x1"}, "hostedClusters[0].name"),
        ({"infraID": "x_1"}, "hostedClusters[0].infraID"),
        (
            {"dns": {"baseDomain": "a b", "publicZoneID": f"{DNS}/dnszones/example.com"}},
            "hostedClusters[0].dns.baseDomain",
        ),
        ({"dns": {"baseDomain": "example.com", "publicZoneID": "zone"}}, "hostedClusters[0].dns.publicZoneID"),
    ],
    ids=["name", "infraID", "domain", "public zone"],
)
def test_what_follows_from_a_refused_value_is_not_refused_too(changes: dict[str, Any], place: str) -> None:
    assert [found for found, _ in refused(**changes)] == [place]
    config = configuration(subscriptionId="one", hostedClusters=[created()])
    assert [found for found, _ in refusals(config)] == ["subscriptionId"]


KEY = "hostedClusters[0].serviceAccountSigningKey"


def created_issuer(**key: Any) -> dict[str, Any]:
    changes: dict[str, Any] = {"issuer": "create", "issuerName": "hc1oidc", "issuerURL": ABSENT}
    return configuration(
        **{f"hostedClusters__0__{name}": value for name, value in changes.items()},
        **({"hostedClusters__0__serviceAccountSigningKey": key} if key else {}),
    )


def existing(**key: Any) -> dict[str, Any]:
    return configuration(hostedClusters__0__serviceAccountSigningKey=key)


@pytest.mark.parametrize(
    ("cloud", "suffix"),
    [
        ("AzurePublicCloud", "core.windows.net"),
        ("AzureUSGovernmentCloud", "core.usgovcloudapi.net"),
        ("AzureChinaCloud", "core.chinacloudapi.cn"),
    ],
)
def test_the_address_of_a_created_issuer_is_filled_in(cloud: str, suffix: str) -> None:
    config = with_change({**created_issuer(), "cloud": cloud}, "hostedClusters__0__kms", ABSENT)
    cluster = load(config).hosted_clusters[0]

    assert cluster.issuer_url == f"https://hc1oidc.blob.{suffix}/hc1oidc"
    assert cluster.signing_key is not None
    assert (cluster.signing_key.published, cluster.signing_key.signing) == ((1,), 1)
    assert cluster.signing_key_secret == "hc1-sa-signing-key"


def test_an_existing_issuer_has_a_signing_key_only_if_it_is_given() -> None:
    assert load(configuration()).hosted_clusters[0].signing_key is None
    assert load(existing(file="sa.pem")).hosted_clusters[0].signing_key is not None


def test_a_created_issuer_has_a_name_and_an_existing_one_an_address() -> None:
    unnamed = configuration(hostedClusters__0__issuer="create", hostedClusters__0__issuerURL=ABSENT)
    named = configuration(hostedClusters__0__issuerName="hc1oidc")

    assert refusals(unnamed) == [("hostedClusters[0].issuerName", "issuer-name-missing")]
    assert refusals(named) == [("hostedClusters[0].issuerName", "issuer-name-unused")]
    assert refusals(configuration(hostedClusters__0__issuerURL=ABSENT)) == [("hostedClusters[0].issuerURL", "missing")]


def test_a_created_issuer_has_no_other_address() -> None:
    config = created_issuer()
    config["hostedClusters"][0]["issuerURL"] = "https://oidc.example.com/hc1"
    assert refusals(config) == [("hostedClusters[0].issuerURL", "issuer-url-of-created")]

    config["hostedClusters"][0]["issuerURL"] = "https://hc1oidc.blob.core.windows.net/hc1oidc"
    assert refusals(config) == []


def test_two_issuers_have_two_storage_accounts() -> None:
    clusters = [hosted_cluster(name, issuer="create", issuerName="oidc", issuerURL=ABSENT) for name in ("hc1", "hc2")]

    assert refusals(configuration(hostedClusters=clusters)) == [
        ("hostedClusters[1].issuerName", "duplicate-issuer-name")
    ]


@pytest.mark.parametrize(("key", "value"), [("vaultSecretName", "sa"), ("file", "sa.pem")])
def test_the_key_of_a_created_issuer_comes_from_nowhere_else(key: str, value: str) -> None:
    assert refusals(created_issuer(**{key: value})) == [(f"{KEY}.{key}", "signing-key-of-created-issuer")]


def test_the_key_that_signs_is_published() -> None:
    assert refusals(created_issuer(published=[1, 2], signing=2)) == []
    assert refusals(created_issuer(published=[1, 2], signing=3)) == [(f"{KEY}.signing", "signing-key-not-published")]


def test_a_leaked_key_is_not_published() -> None:
    assert refusals(created_issuer(published=[2], signing=2, leaked=[1])) == []
    assert refusals(created_issuer(published=[1, 2], signing=2, leaked=[1])) == [
        (f"{KEY}.published", "leaked-key-published")
    ]
    assert refusals(created_issuer(leaked=[1])) == [(f"{KEY}.published", "leaked-key-published")]


@pytest.mark.parametrize(("key", "value"), [("published", [1, 2]), ("signing", 1), ("leaked", [2])])
def test_the_key_of_an_existing_issuer_has_no_number(key: str, value: Any) -> None:
    assert refusals(existing(file="sa.pem", **{key: value})) == [(f"{KEY}.{key}", "signing-key-of-existing-issuer")]


@pytest.mark.parametrize("key", [{}, {"file": "sa.pem", "vaultSecretName": "sa"}])
def test_the_key_of_an_existing_issuer_comes_from_one_place(key: dict[str, str]) -> None:
    assert refusals(existing(**key)) == [(KEY, "one-signing-key")]


def test_a_key_in_the_place_of_its_files_path_is_not_shown() -> None:
    written = report(existing(file="-----BEGIN RSA PRIVATE KEY-----\nMARKER" + "A" * 800))

    assert "MARKER" not in written
    assert "a string that is not shown because it may be a secret" in written
