"""The HostedCluster that the stack applies, and the identities that existed before it."""

from __future__ import annotations

from typing import Any

import pytest

from identity.catalogue import DATA_PLANE
from identity.naming import data_plane_identity_name
from tests.unit.identity.settings.world import (
    ABSENT,
    OTHER,
    VNET,
    configuration,
    domains,
    hosted_cluster,
    load,
    refusals,
    report,
)

PLACE = "hostedClusters[0].hostedCluster"
WRITTEN = {"releaseImage": "quay.io/ocp/release:4.20", "pullSecret": "pull", "serviceAccountSigningKey": "signing-key"}


def with_hosted_cluster(given: Any, **changes: Any) -> dict[str, Any]:
    clusters = [hosted_cluster(hostedCluster=given)]
    return configuration(clusterSide="hypershift", hostedClusters=clusters, **changes)


def test_a_hosted_cluster_is_applied_to_a_management_cluster() -> None:
    user = {"source": "existing", "clientId": OTHER, "objectId": OTHER}
    config = with_hosted_cluster({"file": "hc1.yaml"}, managementCluster=ABSENT, keyVaultUser=user)

    assert refusals(config) == [("managementCluster", "management-cluster-missing")]
    assert "AKS cluster: hostedClusters[0].hostedCluster creates objects in it\n" in report(config)


def with_written_cluster(given: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A HostedCluster that the stack writes, with its domains; `changes` are the hosted cluster's."""
    cluster = hosted_cluster(**{**domains(), "hostedCluster": given, **changes})
    return configuration(clusterSide="hypershift", hostedClusters=[cluster])


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in WRITTEN.items() if name != key}


FILE: dict[str, Any] = {"file": "hc1.yaml"}
MANIFEST: dict[str, Any] = {"manifest": {}}


@pytest.mark.parametrize(
    "config",
    [
        with_hosted_cluster({"manifest": {"spec": {"release": {"image": "x"}}}}),
        with_hosted_cluster(FILE),
        with_hosted_cluster(FILE, managementCluster__kubeconfig=ABSENT),
        with_written_cluster(WRITTEN),
        *(with_written_cluster(WRITTEN | part) for part in (MANIFEST, FILE)),
        *(with_written_cluster(part) for part in (MANIFEST, FILE)),  # they may name the signing key themselves
        *(with_written_cluster(WRITTEN | {"etcdEncryption": how}, kms=ABSENT) for how in ("aescbc", "none")),
    ],
)
def test_a_hosted_cluster_is_given_here_or_in_a_file_or_written(config: dict[str, Any]) -> None:
    assert refusals(config) == []


@pytest.mark.parametrize(
    ("config", "place", "rule"),
    [
        (configuration(hostedClusters=[hosted_cluster(hostedCluster=FILE)]), "", "hosted-cluster-with-stack-side"),
        (with_written_cluster(WRITTEN | {"manifest": {}, **FILE}), "", "hosted-cluster-given-once"),
        (with_written_cluster({"serviceAccountSigningKey": "signing-key"}), "", "hosted-cluster-missing"),
        (with_written_cluster(without("releaseImage")), ".releaseImage", "release-without-pull-secret"),
        (with_written_cluster(without("pullSecret")), ".pullSecret", "release-without-pull-secret"),
        (
            with_written_cluster(without("serviceAccountSigningKey")),
            ".serviceAccountSigningKey",
            "signing-key-missing",
        ),
        (with_written_cluster(WRITTEN | {"etcdEncryption": "none"}), ".etcdEncryption", "etcd-encryption-twice"),
        (with_written_cluster(WRITTEN | {"etcdEncryption": "aescbc"}), ".etcdEncryption", "etcd-encryption-twice"),
        (with_hosted_cluster({**FILE, "etcdEncryption": "none"}), ".etcdEncryption", "etcd-encryption-of-given"),
    ],
)
def test_what_does_not_fit_together_is_refused_at_its_place(config: dict[str, Any], place: str, rule: str) -> None:
    assert refusals(config) == [(f"{PLACE}{place}", rule)]


def test_a_cluster_that_the_stack_writes_has_zones_and_host_names() -> None:
    config = with_written_cluster(WRITTEN, dns=ABSENT, externalDnsDomain=ABSENT)

    assert refusals(config) == [
        ("hostedClusters[0].dns.baseDomain", "hosted-cluster-without-domain"),
        ("hostedClusters[0].dns.publicZoneID", "hosted-cluster-without-domain"),
        ("hostedClusters[0].dns.privateZoneID", "hosted-cluster-without-domain"),
        ("hostedClusters[0].externalDnsDomain", "hosted-cluster-without-host-names"),
    ]


LINK = {"type": "PrivateLink", "privateLink": {"natSubnetID": f"{VNET}/subnets/nat"}}
SWIFT = {"type": "Swift", "swift": {"podNetworkInstance": "pni"}}


@pytest.mark.parametrize(
    ("access", "is_needed"),
    [
        ({}, True),
        ({"topology": "Public"}, True),
        ({"topology": "PublicAndPrivate", "private": LINK}, True),
        ({"topology": "PublicAndPrivate", "private": SWIFT}, True),
        ({"topology": "Private", "private": SWIFT}, True),
        ({"topology": "Private", "private": LINK}, False),
    ],
)
def test_only_a_private_link_alone_needs_no_host_names(access: dict[str, Any], is_needed: bool) -> None:
    """control-plane-operator/controllers/hostedcontrolplane/infra/infra.go:254-276 (routes) and 519-536 (address)."""
    config = with_written_cluster(WRITTEN, externalDnsDomain=ABSENT, **access)

    expected = [("hostedClusters[0].externalDnsDomain", "hosted-cluster-without-host-names")]
    assert refusals(config) == (expected if is_needed else [])


@pytest.mark.parametrize(
    "key", [{"serviceAccountSigningKey": {"vaultSecretName": "k"}}, {"issuer": "create", "issuerName": "hc1oidc"}]
)
def test_a_signing_key_that_the_stack_knows_is_not_named_again(key: dict[str, Any]) -> None:
    issuer = {"issuerURL": ABSENT} if "issuer" in key else {}
    unnamed = with_written_cluster(without("serviceAccountSigningKey"), **key, **issuer)

    assert refusals(unnamed) == []
    assert load(unnamed).hosted_clusters[0].signing_key_reference == "hc1-sa-signing-key"
    assert refusals(with_written_cluster(WRITTEN, **key, **issuer)) == [
        (f"{PLACE}.serviceAccountSigningKey", "signing-key-named-twice")
    ]


ROW = DATA_PLANE[0]


def existing(**settings: Any) -> dict[str, Any]:
    return configuration(hostedClusters__0__dataPlaneIdentities={ROW.field: settings})


def test_an_identity_without_settings_has_the_name_that_hypershift_gives() -> None:
    cluster = load(configuration()).hosted_clusters[0]

    names = [cluster.identity_names[row.field] for row in DATA_PLANE]

    assert names == [data_plane_identity_name(cluster.name, row.name, cluster.infra_id) for row in DATA_PLANE]


def test_an_identity_keeps_the_name_that_it_has() -> None:
    settings = load(existing(name="image-registry-MI-x"))

    found = [settings.hosted_clusters[0].identity_names[row.field] for row in DATA_PLANE]

    assert found[0] == "image-registry-MI-x"
    assert "image-registry-MI-x" not in found[1:]


@pytest.mark.parametrize(
    ("field", "settings", "place", "rule"),
    [
        ("diskMSI", {}, "", "data-plane-field"),
        (ROW.field, {"name": "a b c"}, ".name", "managed-identity-name"),
        (ROW.field, {"location": "East US"}, ".location", "location"),
        *(
            (ROW.field, {"federatedCredentials": {word: name}}, f".federatedCredentials.{word}", rule)
            for word, name, rule in (
                ("registry", "a", "federated-credential-name"),
                ("nod", "abc", "federated-suffix"),
                ("node", "abc", "federated-credential-of-other-identity"),
            )
        ),
    ],
)
def test_an_identity_is_the_catalogues_and_a_setting_fits(
    field: str, settings: dict[str, Any], place: str, rule: str
) -> None:
    config = configuration(hostedClusters__0__dataPlaneIdentities={field: settings})

    assert refusals(config) == [(f"hostedClusters[0].dataPlaneIdentities.{field}{place}", rule)]
