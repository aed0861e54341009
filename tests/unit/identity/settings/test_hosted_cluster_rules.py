"""What must fit together in a HostedCluster that the stack applies."""

from __future__ import annotations

from typing import Any

import pytest

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


@pytest.mark.parametrize("given", [{"manifest": {"spec": {"release": {"image": "x"}}}}, {"file": "hc1.yaml"}])
def test_a_hosted_cluster_is_given_here_or_in_a_file(given: dict[str, Any]) -> None:
    assert refusals(with_hosted_cluster(given)) == []


def test_with_the_stacks_cluster_side_no_hosted_cluster_is_applied() -> None:
    assert refusals(configuration(hostedClusters=[hosted_cluster(hostedCluster={"file": "hc1.yaml"})])) == [
        ("hostedClusters[0].hostedCluster", "hosted-cluster-with-stack-side")
    ]


def test_a_hosted_cluster_is_applied_with_a_kubeconfig_of_the_stacks_own() -> None:
    assert refusals(with_hosted_cluster({"file": "hc1.yaml"}, managementCluster__kubeconfig=ABSENT)) == []


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


@pytest.mark.parametrize("part", [{}, {"manifest": {}}, {"file": "hc1.yaml"}])
def test_a_release_and_a_pull_secret_are_a_hosted_cluster(part: dict[str, Any]) -> None:
    assert refusals(with_written_cluster(WRITTEN | part)) == []


def test_the_users_part_is_given_at_most_once() -> None:
    config = with_written_cluster(WRITTEN | {"manifest": {}, "file": "hc1.yaml"})

    assert refusals(config) == [(PLACE, "hosted-cluster-given-once")]


def test_nothing_is_no_hosted_cluster() -> None:
    config = with_written_cluster({"serviceAccountSigningKey": "signing-key"})

    assert refusals(config) == [(PLACE, "hosted-cluster-missing")]


@pytest.mark.parametrize("key", ["releaseImage", "pullSecret"])
def test_release_and_pull_secret_come_together(key: str) -> None:
    assert refusals(with_written_cluster(without(key))) == [(f"{PLACE}.{key}", "release-without-pull-secret")]


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


def test_a_cluster_that_the_stack_writes_names_its_signing_key() -> None:
    config = with_written_cluster(without("serviceAccountSigningKey"))

    assert refusals(config) == [(f"{PLACE}.serviceAccountSigningKey", "signing-key-missing")]


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


@pytest.mark.parametrize("part", [{"manifest": {}}, {"file": "hc1.yaml"}])
def test_a_manifest_may_name_the_signing_key_itself(part: dict[str, Any]) -> None:
    assert refusals(with_written_cluster(part)) == []


KMS = {"activeKey": "https://kv-etcd.vault.azure.net/keys/etcd/0123456789abcdef0123456789abcdef"}


@pytest.mark.parametrize("how", ["aescbc", "none"])
def test_what_encrypts_etcd_is_said_without_kms(how: str) -> None:
    assert refusals(with_written_cluster(WRITTEN | {"etcdEncryption": how}, kms=ABSENT)) == []


@pytest.mark.parametrize("how", ["aescbc", "none"])
def test_with_kms_nothing_else_encrypts_etcd(how: str) -> None:
    config = with_written_cluster(WRITTEN | {"etcdEncryption": how}, kms=KMS)

    assert refusals(config) == [(f"{PLACE}.etcdEncryption", "etcd-encryption-twice")]


def test_a_given_hosted_cluster_says_itself_how_etcd_is_encrypted() -> None:
    config = with_hosted_cluster({"file": "hc1.yaml", "etcdEncryption": "none"})

    assert refusals(config) == [(f"{PLACE}.etcdEncryption", "etcd-encryption-of-given")]
