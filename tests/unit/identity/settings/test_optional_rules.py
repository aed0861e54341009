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


def test_an_identity_of_backups_needs_their_storage_account() -> None:
    assert refusals(with_backup(identities=BACKUP)) == [
        ("hostedClusters[0].backupStorageAccountID", "optional-resource-missing")
    ]
    assert refusals(with_backup(identities=BACKUP, backupStorageAccountID=ACCOUNT)) == []


def test_a_storage_account_may_wait_for_its_identity() -> None:
    assert refusals(with_backup(backupStorageAccountID=ACCOUNT)) == []


def test_the_storage_account_is_in_the_stacks_subscription() -> None:
    elsewhere = ACCOUNT.replace(SUBSCRIPTION, OTHER)

    assert refusals(with_backup(identities=BACKUP, backupStorageAccountID=elsewhere)) == [
        ("hostedClusters[0].backupStorageAccountID", "optional-resource-in-other-subscription")
    ]


ZONE = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/public/providers/Microsoft.Network/dnszones/example.com"
REGISTRY = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/images/providers/Microsoft.ContainerRegistry/registries/acr01"
ISSUER = "https://oidc.example.com/mgmt/"


def test_a_managed_identity_is_one_of_the_catalogues() -> None:
    assert refusals(with_backup(managedIdentities=["acrPul", "externalDNS"])) == [
        ("hostedClusters[0].managedIdentities[0]", "optional-identity")
    ]


def test_a_managed_identity_needs_the_resource_of_its_role() -> None:
    assert refusals(with_backup(managedIdentities=["acrPull", "velero"], managementIssuerURL=ISSUER)) == [
        ("hostedClusters[0].backupStorageAccountID", "optional-resource-missing"),
        ("hostedClusters[0].containerRegistryID", "optional-resource-missing"),
    ]


def test_external_dns_needs_the_zone_that_it_writes_into() -> None:
    elsewhere = ZONE.replace(SUBSCRIPTION, OTHER)

    assert refusals(with_backup(managedIdentities=["externalDNS"])) == [
        ("hostedClusters[0].externalDnsZoneID", "optional-resource-missing")
    ]
    assert refusals(with_backup(managedIdentities=["externalDNS"], externalDnsZoneID=elsewhere)) == [
        ("hostedClusters[0].externalDnsZoneID", "optional-resource-in-other-subscription")
    ]
    assert refusals(with_backup(managedIdentities=["externalDNS"], externalDnsZoneID=ZONE)) == []


def test_service_accounts_need_the_issuer_of_their_cluster() -> None:
    assert refusals(with_backup(managedIdentities=["velero"], backupStorageAccountID=ACCOUNT)) == [
        ("hostedClusters[0].managementIssuerURL", "management-issuer-missing")
    ]


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


def test_all_optional_identities_fit_into_one_cluster() -> None:
    every = with_backup(
        identities=BACKUP,
        managedIdentities=["acrPull", "externalDNS", "velero"],
        backupStorageAccountID=ACCOUNT,
        containerRegistryID=REGISTRY,
        externalDnsZoneID=ZONE,
        managementIssuerURL=ISSUER,
    )

    assert refusals(every) == []
    assert [row.field for row in load(every).hosted_clusters[0].optional_rows] == ["acrPull", "externalDNS", "velero"]
