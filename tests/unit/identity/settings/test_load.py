"""What a good configuration becomes."""

from __future__ import annotations

import pytest

from identity.catalogue import CONTROL_PLANE
from identity.clouds import CLOUDS
from identity.settings import KmsKey
from tests.unit.identity.settings.world import (
    ABSENT,
    KEY_VERSION,
    LOCAL,
    LOCAL_CLOUD_KEYS,
    MANAGED_IDENTITY,
    TENANT,
    configuration,
    hosted_cluster,
    load,
)


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
    assert kms.active_key == expected


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
