"""What the optional identities of a hosted cluster need."""

from __future__ import annotations

from typing import Any

import pytest

from identity.catalogue import CONTROL_PLANE, OPTIONAL
from tests.unit.identity.settings.world import OTHER, SUBSCRIPTION, configuration, hosted_cluster, load, refusals

ACCOUNT = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/backup/providers/Microsoft.Storage/storageAccounts/backups"
BACKUP = {"etcdBackup": {"enabled": True}}


def with_backup(**changes: Any) -> dict[str, Any]:
    return configuration(**{f"hostedClusters__0__{key}": value for key, value in changes.items()})


def test_an_identity_is_on_or_off_as_its_row_says() -> None:
    cluster = load(configuration()).hosted_clusters[0]

    assert {row.field: cluster.identity(row).enabled for row in CONTROL_PLANE} == {
        row.field: row.enabled_by_default for row in CONTROL_PLANE
    }
    assert not cluster.identities["etcdBackup"].enabled


def test_backups_need_their_storage_account_in_the_stacks_subscription() -> None:
    place, elsewhere = "hostedClusters[0].backupStorageAccountID", ACCOUNT.replace(SUBSCRIPTION, OTHER)

    assert refusals(with_backup(identities=BACKUP)) == [(place, "optional-resource-missing")]
    assert refusals(with_backup(identities=BACKUP, backupStorageAccountID=ACCOUNT)) == []
    assert refusals(with_backup(backupStorageAccountID=ACCOUNT)) == [], "it may wait for its identity"
    assert refusals(with_backup(identities=BACKUP, backupStorageAccountID=elsewhere)) == [
        (place, "optional-resource-in-other-subscription")
    ]


def test_a_managed_identity_is_the_catalogues_and_needs_what_its_role_is_for() -> None:
    assert refusals(with_backup(managedIdentities=["acrPul", "externalDNS"])) == [
        ("hostedClusters[0].managedIdentities[0]", "optional-identity")
    ]
    assert refusals(with_backup(managedIdentities=["acrPull", "velero"], managementIssuerURL=ISSUER)) == [
        ("hostedClusters[0].backupStorageAccountID", "optional-resource-missing"),
        ("hostedClusters[0].containerRegistryID", "optional-resource-missing"),
    ]
    assert refusals(with_backup(managedIdentities=["velero"], backupStorageAccountID=ACCOUNT)) == [
        ("hostedClusters[0].managementIssuerURL", "management-issuer-missing")
    ]


ZONE = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/public/providers/Microsoft.Network/dnszones/example.com"
REGISTRY = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/images/providers/Microsoft.ContainerRegistry/registries/acr01"
ISSUER = "https://oidc.example.com/mgmt/"


def test_external_dns_needs_the_zone_that_it_writes_into() -> None:
    elsewhere = ZONE.replace(SUBSCRIPTION, OTHER)

    assert refusals(with_backup(managedIdentities=["externalDNS"])) == [
        ("hostedClusters[0].externalDnsZoneID", "optional-resource-missing")
    ]
    assert refusals(with_backup(managedIdentities=["externalDNS"], externalDnsZoneID=elsewhere)) == [
        ("hostedClusters[0].externalDnsZoneID", "optional-resource-in-other-subscription")
    ]
    assert refusals(with_backup(managedIdentities=["externalDNS"], externalDnsZoneID=ZONE)) == []


def two_clusters(*managed: list[str]) -> dict[str, Any]:
    clusters = [
        hosted_cluster(
            name,
            managedIdentities=fields,
            backupStorageAccountID=ACCOUNT,
            containerRegistryID=REGISTRY,
            externalDnsZoneID=ZONE,
            managementIssuerURL=ISSUER,
        )
        for name, fields in zip(("hc1", "hc2"), managed, strict=True)
    ]
    return configuration(hostedClusters=clusters)


def test_what_a_management_cluster_uses_once_is_switched_on_once() -> None:
    """install: one external DNS; etcdbackup/reconciler.go:578-600: a service account keeps its first client id."""
    every = [row.field for row in OPTIONAL]

    assert refusals(two_clusters(every, every)) == [
        ("hostedClusters[1].managedIdentities[1]", "optional-identity-used-once"),
        ("hostedClusters[1].managedIdentities[2]", "optional-identity-used-once"),
    ]


@pytest.mark.parametrize(("first", "second"), [(["externalDNS"], ["velero"]), (["acrPull"], ["acrPull", "velero"])])
def test_clusters_may_share_the_work_or_have_what_is_their_own(first: list[str], second: list[str]) -> None:
    assert refusals(two_clusters(first, second)) == []
