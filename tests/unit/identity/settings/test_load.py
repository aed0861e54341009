"""What a good configuration becomes."""

from __future__ import annotations

from typing import Any

import pytest

from identity.catalogue import CONTROL_PLANE, DATA_PLANE
from identity.clouds import CLOUDS
from identity.naming import data_plane_identity_name
from identity.settings import KmsKey
from tests.unit.identity.settings.world import (
    ABSENT,
    DNS,
    GROUPS,
    KEY_VERSION,
    LOCAL,
    LOCAL_CLOUD_KEYS,
    MANAGED_IDENTITY,
    TENANT,
    configuration,
    domains,
    hosted_cluster,
    load,
)

CREATED_ISSUER: dict[str, Any] = {"issuer": "create", "issuerName": "hc1oidc", "issuerURL": ABSENT}


def test_what_is_left_out_has_the_documented_default() -> None:
    settings = load(configuration())

    assert settings.cloud is CLOUDS["AzurePublicCloud"]
    assert (settings.protect, settings.cluster_side, settings.roles) == (True, "stack", "hypershift")
    assert settings.vault is not None
    assert settings.vault.model_dump() == {
        "name": "kv-identity",
        "soft_delete_retention_days": 90,
        "purge_protection": True,
        "public_network_access": True,
        "default_action": "Allow",
        "allowed_ip_ranges": (),
        "allowed_subnet_ids": (),
    }
    assert settings.credentials.model_dump() == {
        "lifetime_days": 90,
        "renew_before_days": 45,
        "key_size": 2048,
        "renewal": "auto",
        "propagation": {"successes": 5, "settle_seconds": 30, "timeout_seconds": 600},
    }
    assert settings.key_vault_user.source == "aks-addon"


def test_what_follows_from_other_values_is_filled_in() -> None:
    cluster = load(configuration(hostedClusters=[hosted_cluster("hc.one")])).hosted_clusters[0]

    assert cluster.namespace_name == "clusters-hc-one"
    assert (cluster.infra_id, cluster.location) == ("hc-one", "eastus")
    assert cluster.kms is not None
    assert (cluster.kms.key_vault_resource_group, cluster.kms.backup_key_vault_resource_group) == ("identity",) * 2
    assert {identity.object_encoding for identity in cluster.identities.values()} == {"utf-8"}
    assert {row.field: cluster.identity(row).secret_name for row in CONTROL_PLANE} == {
        row.field: f"{row.secret_stem}-hc-one-json" for row in CONTROL_PLANE
    }


def test_what_is_written_overrides_what_follows() -> None:
    tenant, imported = "ABCDEFAB-1111-4111-8111-111111111111", {"secretName": "uamsi-ciro"}
    user = {"source": "existing", "clientId": TENANT, "objectId": TENANT}
    settings = load(
        configuration(
            tenantId=tenant,
            protect="false",
            clusterSide="hypershift",
            managementCluster=ABSENT,
            probe=ABSENT,
            keyVaultUser=user,
            hostedClusters__0__infraID="infra",
            hostedClusters__0__location="westus",
            hostedClusters__0__kms__keyVaultResourceGroup="etcd",
            hostedClusters__0__identities={
                "ingress": {"secretName": "mine"},
                "imageRegistry": {
                    "source": "managed-identity",
                    "resourceId": MANAGED_IDENTITY,
                    "credential": imported,
                },
            },
        )
    )

    [cluster] = settings.hosted_clusters
    assert (settings.tenant_id, settings.protect) == (tenant.lower(), False)
    assert settings.management_cluster is None, "neither the add-on nor the cluster side needs one"
    assert (cluster.infra_id, cluster.location) == ("infra", "westus")
    assert cluster.kms is not None
    assert (cluster.kms.key_vault_resource_group, cluster.kms.backup_key_vault_resource_group) == ("etcd",) * 2
    assert cluster.identities["ingress"].secret_name == "mine"
    assert cluster.identities["imageRegistry"].secret_name == "uamsi-ciro", "the secret that exists keeps its name"


@pytest.mark.parametrize(
    "key",
    [
        f"https://kv-etcd.vault.azure.net/keys/etcd/{KEY_VERSION}",
        {"keyVaultName": "kv-etcd", "keyName": "etcd", "keyVersion": KEY_VERSION},
    ],
)
def test_the_encryption_key_is_a_url_or_three_fields(key: object) -> None:
    kms = load(configuration(hostedClusters__0__kms__activeKey=key)).hosted_clusters[0].kms

    expected = KmsKey.model_validate({"keyVaultName": "kv-etcd", "keyName": "etcd", "keyVersion": KEY_VERSION})
    assert kms is not None
    assert (kms.active_key, kms.is_managed_hsm) == (expected, False)


@pytest.mark.parametrize(
    "key",
    [
        f"https://kv-before.vault.azure.net/keys/etcd/{KEY_VERSION}",
        {"keyVaultName": "kv-before", "keyName": "etcd", "keyVersion": KEY_VERSION},
    ],
)
def test_the_backup_key_is_one_too_and_an_hsm_is_told_by_the_url(key: object) -> None:
    backup = {"hostedClusters__0__kms__backupKey": key, "hostedClusters__0__kms__backupKeyVaultResourceGroup": "before"}
    kms = load(configuration(**backup)).hosted_clusters[0].kms
    url = f"https://hsm-etcd.managedhsm.azure.net/keys/etcd/{KEY_VERSION}"
    hsm = load(configuration(hostedClusters__0__kms__activeKey=url)).hosted_clusters[0].kms

    assert kms is not None
    assert kms.vaults == {"kv-etcd": "identity", "kv-before": "before"}
    assert hsm is not None
    assert hsm.is_managed_hsm


def test_empty_values_count_as_left_out() -> None:
    empty = {"keyVaultUser": {}, "tags": {}, "credentials": {}, "clusterSide": "", "roles": ""}

    assert load(configuration(**empty)) == load(configuration())


def test_the_local_cloud_brings_its_endpoints_and_the_stack_its_kubeconfig() -> None:
    config = configuration(**LOCAL_CLOUD_KEYS, managementCluster__kubeconfig=ABSENT, hostedClusters=[])

    settings = load(config, local=LOCAL)

    assert settings.cloud.vault_endpoint == LOCAL.key_vault_endpoint
    assert settings.management_cluster is not None
    assert settings.management_cluster.kubeconfig is None


def test_settings_cannot_be_changed() -> None:
    settings = load(configuration())

    with pytest.raises(ValueError, match="frozen"):
        settings.location = "westus"  # type: ignore[misc]


def test_a_workload_needs_a_name_an_image_and_identities() -> None:
    given = {"name": "backup", "image": "registry.example.com/backup:1", "identities": ["network"]}
    [workload] = load(configuration(hostedClusters__0__workloads=[given])).hosted_clusters[0].workloads

    assert workload.model_dump() == {
        "name": "backup",
        "image": "registry.example.com/backup:1",
        "command": (),
        "args": (),
        "identities": ("network",),
        "replicas": 1,
        "resources": {"requests": {}, "limits": {}},
        "service_account": None,
        "node_selector": {},
        "tolerations": (),
    }


@pytest.mark.parametrize(("changes", "off"), [({}, []), ({"hostedClusters__0__kms": ABSENT}, ["kms"])])
def test_an_identity_is_on_or_off_as_its_row_says_and_off_without_its_setting(
    changes: dict[str, Any], off: list[str]
) -> None:
    [cluster] = load(configuration(**changes)).hosted_clusters

    assert [row.field for row in CONTROL_PLANE if cluster.identity(row).enabled is not row.enabled_by_default] == off
    assert not cluster.identities["etcdBackup"].enabled


@pytest.mark.parametrize("key", [{"serviceAccountSigningKey": {"vaultSecretName": "k"}}, CREATED_ISSUER])
def test_a_hosted_cluster_refers_to_the_signing_key_that_the_stack_knows(key: dict[str, Any]) -> None:
    given = {"releaseImage": "quay.io/ocp/release:4.20", "pullSecret": "pull"}
    cluster = hosted_cluster(**domains(), hostedCluster=given, **key)
    settings = load(configuration(clusterSide="hypershift", hostedClusters=[cluster]))

    assert settings.hosted_clusters[0].signing_key_reference == "hc1-sa-signing-key"


def test_an_identity_has_the_name_that_hypershift_gives_or_the_one_that_it_has() -> None:
    existing = {DATA_PLANE[0].field: {"name": "image-registry-MI-x"}}
    given, kept = (
        load(configuration(hostedClusters__0__dataPlaneIdentities=identities)).hosted_clusters[0]
        for identities in ({}, existing)
    )

    names = {row.field: data_plane_identity_name(given.name, row.name, given.infra_id) for row in DATA_PLANE}
    assert given.identity_names.items() >= names.items()
    assert kept.identity_names.items() >= {**names, DATA_PLANE[0].field: "image-registry-MI-x"}.items()


def test_infrastructure_that_is_made_has_names_that_follow_from_the_clusters_or_say_the_same() -> None:
    named = ("resourceGroup", "vnetID", "subnetID", "securityGroupID", "dnsZoneResourceGroup")
    zone = {"baseDomain": "example.com", "publicZoneID": f"{DNS}/dnszones/example.com"}
    created: dict[str, Any] = {
        **dict.fromkeys(named, ABSENT),
        "infraID": "hc1-x1",
        "infrastructure": "create",
        "dns": zone,
    }
    [cluster] = load(configuration(hostedClusters=[hosted_cluster(**created)])).hosted_clusters

    assert cluster.resource_group == "hc1-hc1-x1"
    vnet = f"{GROUPS}/hc1-vnet-hc1-x1/providers/Microsoft.Network/virtualNetworks/hc1-hc1-x1"
    nsg = f"{GROUPS}/hc1-nsg-hc1-x1/providers/Microsoft.Network/networkSecurityGroups/hc1-hc1-x1-nsg"
    assert (cluster.vnet_id, cluster.subnet_id) == (vnet, f"{vnet}/subnets/default")
    assert cluster.security_group_id == nsg
    assert cluster.dns_zone_resource_group == "dns"
    assert cluster.dns is not None
    private = f"{GROUPS}/hc1-hc1-x1/providers/Microsoft.Network/privateDnsZones/hc1.example.com"
    assert cluster.dns.private_zone_id == private
    assert cluster.network is not None
    assert (cluster.network.address_prefix, cluster.network.subnet_address_prefix) == ("10.0.0.0/16", "10.0.0.0/24")
    said = dict(zip(named, ("hc1-hc1-x1", vnet, f"{vnet}/subnets/default", nsg, "dns"), strict=True))
    assert load(configuration(hostedClusters=[hosted_cluster(**created | said)])).hosted_clusters == (cluster,)


@pytest.mark.parametrize(
    ("cloud", "suffix"),
    [
        ("AzurePublicCloud", "core.windows.net"),
        ("AzureUSGovernmentCloud", "core.usgovcloudapi.net"),
        ("AzureChinaCloud", "core.chinacloudapi.cn"),
    ],
)
def test_the_address_of_a_created_issuer_is_filled_in(cloud: str, suffix: str) -> None:
    config = configuration(cloud=cloud, hostedClusters=[hosted_cluster(kms=ABSENT, **CREATED_ISSUER)])
    cluster = load(config).hosted_clusters[0]

    assert cluster.issuer_url == f"https://hc1oidc.blob.{suffix}/hc1oidc"
    assert cluster.signing_key is not None
    assert (cluster.signing_key.published, cluster.signing_key.signing) == ((1,), 1)
    assert cluster.signing_key_secret == "hc1-sa-signing-key"


def test_an_existing_issuer_has_a_signing_key_only_if_it_is_given() -> None:
    given = configuration(hostedClusters__0__serviceAccountSigningKey={"file": "sa.pem"})

    assert load(configuration()).hosted_clusters[0].signing_key is None
    assert load(given).hosted_clusters[0].signing_key is not None
