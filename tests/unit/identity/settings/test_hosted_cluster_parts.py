"""The parts of a hosted cluster: zones, encryption of etcd, private access, and optional identities."""

from __future__ import annotations

from typing import Any

import pytest

from identity.catalogue import CONTROL_PLANE, OPTIONAL
from tests.unit.identity.settings.world import (
    ABSENT,
    DNS,
    KEY_VERSION,
    LOCAL,
    LOCAL_CLOUD_KEYS,
    MANAGED,
    NETWORK,
    OTHER,
    SUBSCRIPTION,
    VNET,
    configuration,
    domains,
    hosted_cluster,
    load,
    refusals,
    report,
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


KMS = "hostedClusters[0].kms"
HSM = f"https://hsm-etcd.managedhsm.azure.net/keys/etcd/{KEY_VERSION}"
BEFORE = f"https://kv-before.vault.azure.net/keys/etcd/{KEY_VERSION}"
GROUP = {"backupKeyVaultResourceGroup": "before"}


def with_kms(**changes: Any) -> dict[str, Any]:
    return configuration(**{f"hostedClusters__0__kms__{key}": value for key, value in changes.items()})


@pytest.mark.parametrize(("changes", "off"), [({}, []), ({"hostedClusters__0__kms": ABSENT}, ["kms"])])
def test_an_identity_is_on_or_off_as_its_row_says_and_off_without_its_setting(
    changes: dict[str, Any], off: list[str]
) -> None:
    [cluster] = load(configuration(**changes)).hosted_clusters

    assert [row.field for row in CONTROL_PLANE if cluster.identity(row).enabled is not row.enabled_by_default] == off
    assert not cluster.identities["etcdBackup"].enabled


@pytest.mark.parametrize("enabled", [True, False])
def test_without_kms_its_identity_cannot_be_on(enabled: bool) -> None:
    changes = {"hostedClusters__0__kms": ABSENT, "hostedClusters__0__identities": {"kms": {"enabled": enabled}}}
    place = ("hostedClusters[0].identities.kms.enabled", "identity-without-purpose")

    assert refusals(configuration(**changes)) == ([place] if enabled else [])


def test_a_workload_cannot_mount_an_identity_without_purpose() -> None:
    workload = {"name": "backup", "image": "registry.example.com/backup:1", "identities": ["kms"]}

    assert refusals(configuration(hostedClusters__0__kms=ABSENT, hostedClusters__0__workloads=[workload])) == [
        ("hostedClusters[0].workloads[0].identities[0]", "workload-identity-disabled")
    ]


def test_the_backup_key_is_a_url_or_three_fields_as_the_active_one() -> None:
    [cluster] = load(with_kms(backupKey=BEFORE, backupKeyVaultResourceGroup="before")).hosted_clusters

    assert cluster.kms is not None
    assert cluster.kms.vaults == {"kv-etcd": "identity", "kv-before": "before"}
    fields = {"keyVaultName": "kv-before", "keyName": "etcd", "keyVersion": KEY_VERSION}
    assert load(with_kms(backupKey=fields, backupKeyVaultResourceGroup="before")).hosted_clusters == (cluster,)


@pytest.mark.parametrize(
    ("changes", "place", "rule"),
    [
        ({"backupKey": BEFORE.replace("before", "etcd")}, "backupKey", "backup-key-is-active"),
        (
            {"backupKey": BEFORE.replace("kv-before", "KV-etcd").replace("etcd/", "other/"), **GROUP},
            "backupKeyVaultResourceGroup",
            "backup-key-group-mismatch",
        ),
        ({"activeKey": HSM, "keyVaultType": "HSM"}, "keyVaultType", "choice"),
    ],
)
def test_one_key_or_vault_is_not_named_twice(changes: dict[str, str], place: str, rule: str) -> None:
    """A type that is refused itself decides nothing."""
    assert refusals(with_kms(**changes)) == [(f"{KMS}.{place}", rule)]


@pytest.mark.parametrize(
    ("changes", "place", "reason"),
    [
        ({"activeKey": HSM, "keyVaultType": "KeyVault"}, "activeKey", "vaults of this cloud are at vault.azure.net"),
        ({"keyVaultType": "ManagedHSM"}, "activeKey", "managed HSMs of this cloud are at managedhsm.azure.net"),
        ({"backupKey": HSM}, "backupKey", "vaults of this cloud are at vault.azure.net"),
        ({"activeKey": HSM, "backupKey": BEFORE}, "backupKey", "managed HSMs of this cloud are at managedhsm"),
    ],
)
def test_both_keys_are_in_the_service_of_the_active_ones_url(changes: dict[str, str], place: str, reason: str) -> None:
    [cluster] = load(with_kms(activeKey=HSM)).hosted_clusters
    assert cluster.kms is not None
    assert cluster.kms.is_managed_hsm
    assert refusals(with_kms(**changes)) == [(f"{KMS}.{place}", "kms-key")]
    assert reason in report(with_kms(**changes))


def test_the_local_cloud_has_no_managed_hsm() -> None:
    found = refusals({**with_kms(activeKey=HSM), **LOCAL_CLOUD_KEYS}, local=LOCAL)

    assert (f"{KMS}.keyVaultType", "managed-hsm-on-local-cloud") in found


PRIVATE_ACCESS = "hostedClusters[0].private"
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
    assert refusals(with_access(topology, None)) == [(PRIVATE_ACCESS, "private-access-missing")]


@pytest.mark.parametrize("topology", [None, "Public"])
def test_a_public_cluster_has_no_private_access(topology: str | None) -> None:
    assert refusals(with_access(topology, SWIFT)) == [(PRIVATE_ACCESS, "private-access-without-topology")]


def test_the_keys_are_those_of_the_type() -> None:
    assert refusals(with_access("Private", {"type": "Swift"})) == [
        (f"{PRIVATE_ACCESS}.swift", "private-access-incomplete")
    ]
    assert refusals(with_access("Private", {**SWIFT, "privateLink": LINK["privateLink"]})) == [
        (f"{PRIVATE_ACCESS}.privateLink", "private-access-unused")
    ]


def test_a_private_link_is_not_empty() -> None:
    assert refusals(with_access("Private", {"type": "PrivateLink", "privateLink": {}})) == [
        (f"{PRIVATE_ACCESS}.privateLink", "private-link-empty")
    ]


@pytest.mark.parametrize(
    "subscriptions", [[OTHER, SUBSCRIPTION, OTHER], [f"{at:08}-0000-4000-8000-000000000000" for at in range(1, 52)]]
)
def test_subscriptions_are_few_and_different(subscriptions: list[str]) -> None:
    link = {"type": "PrivateLink", "privateLink": {"additionalAllowedSubscriptions": subscriptions}}

    assert refusals(with_access("Private", link)) == [
        (f"{PRIVATE_ACCESS}.privateLink.additionalAllowedSubscriptions", "private-link-subscriptions")
    ]


ACCOUNT = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/backup/providers/Microsoft.Storage/storageAccounts/backups"
BACKUP = {"etcdBackup": {"enabled": True}}


def with_backup(**changes: Any) -> dict[str, Any]:
    return configuration(**{f"hostedClusters__0__{key}": value for key, value in changes.items()})


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
