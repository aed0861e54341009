"""Hosted clusters that sign in by workload identities, beside `cases/authentication.yaml`."""

from __future__ import annotations

from typing import Any

import pytest

from identity.catalogue import CONTROL_PLANE
from identity.settings import HostedClusterSettings
from identity.settings.rules.authentication import refuse_changed_authentication
from identity.settings.schema.problems import ConfigurationError
from tests.unit.golden_report import reviewed
from tests.unit.identity.settings.world import ABSENT, configuration, hosted_cluster, load, refusals

CLUSTER = "hostedClusters[0]"
WAY = "workload-identities"
WITHOUT_SECRETS = {"vault": ABSENT, "managementCluster": ABSENT, "probe": ABSENT}
LINK = {
    "type": "PrivateLink",
    "privateLink": {"additionalAllowedSubscriptions": ["33333333-3333-4333-8333-333333333333"]},
}


def self_managed(name: str = "hc1", **changes: Any) -> dict[str, Any]:
    return hosted_cluster(name, authentication=WAY, topology="Public", **changes)


def with_clusters(*clusters: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return configuration(hostedClusters=list(clusters), clusterSide="hypershift", **changes)


def loaded(*clusters: dict[str, Any], **changes: Any) -> HostedClusterSettings:
    return load(with_clusters(*clusters, **changes)).hosted_clusters[0]


def test_without_credentials_a_stack_needs_neither_vault_nor_key_vault_user() -> None:
    user = {"source": "created", "name": "reader"}
    key = self_managed(issuer="create", issuerName="hc1oidc", issuerURL=ABSENT)
    settings = load(with_clusters(self_managed(), **WITHOUT_SECRETS))

    assert settings.vault is None
    assert not settings.has_key_vault_user
    assert not load(with_clusters(key, managementCluster=ABSENT)).has_key_vault_user, "a key in it is nobody's to read"
    assert load(with_clusters(self_managed(), keyVaultUser=user)).has_key_vault_user, "a vault for other stacks"


def test_workloads_mount_credentials_alone() -> None:
    container = {"name": "w", "image": "registry.example.com/w:1", "identities": ["disk"]}
    config = configuration(hostedClusters=[self_managed(workloads=[container])])

    assert (f"{CLUSTER}.workloads", "key-of-other-authentication") in refusals(config)


def test_hypershift_makes_the_objects_of_workload_identities_alone() -> None:
    settings = load(configuration(hostedClusters=[hosted_cluster("hc1"), self_managed("hc2")]))
    alone = load(configuration(hostedClusters=[self_managed()], **WITHOUT_SECRETS))

    assert [settings.makes_cluster_side(cluster) for cluster in settings.hosted_clusters] == [True, False]
    assert (settings.makes_cluster_sides, alone.makes_cluster_sides) == (True, False)


def test_the_identities_are_those_of_the_table() -> None:
    def fields(cluster: HostedClusterSettings) -> list[str]:
        return [row.field for row in cluster.federated_rows]

    every = [row.field for row in CONTROL_PLANE if row.workload is not None]
    (private,) = (row.field for row in CONTROL_PLANE if row.workload is not None and row.workload.private)
    settings = {row.field for row in CONTROL_PLANE if row.setting is not None}

    assert fields(loaded(self_managed() | {"topology": "Private", "private": LINK})) == every
    assert fields(loaded(self_managed())) == [field for field in every if field != private]
    assert private in fields(loaded(self_managed(workloadIdentities={private: {}}))), "it existed before"
    assert not settings & {*fields(loaded(self_managed(kms=ABSENT)))}
    assert loaded(self_managed()).disabled_capabilities == ()


def test_a_changed_way_is_refused() -> None:
    azure: Any = {"azureAuthenticationConfig": {"managedIdentities": {}}}
    last: Any = {"hostedClusters": {"hc1": {"hostedClusterSpec": {"platform": {"azure": azure}}}}}
    settings = load(with_clusters(self_managed(), self_managed("hc2")))

    with pytest.raises(ConfigurationError) as refused:
        refuse_changed_authentication(((row.name, row.authentication) for row in settings.hosted_clusters), last)

    assert reviewed(refused.value.problems) == [(f"{CLUSTER}.authentication", "authentication-changed")]
