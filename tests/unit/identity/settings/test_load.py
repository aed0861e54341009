"""What a good configuration becomes."""

from __future__ import annotations

import pytest

from identity.catalogue import CONTROL_PLANE
from identity.clouds import CLOUDS, LOCAL_SUBSCRIPTION_ID, LOCAL_TENANT_ID
from identity.settings import KmsKey
from tests.unit.identity.settings.world import (
    ABSENT,
    KEY_VERSION,
    LOCAL,
    MANAGED_IDENTITY,
    TENANT,
    configuration,
    hosted_cluster,
    load,
    refusals,
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
        "default_action": "Deny",
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
    assert (cluster.infra_id, cluster.location, cluster.kms.key_vault_resource_group) == (
        "hc-one",
        "eastus",
        "identity",
    )
    assert {row.field: cluster.identity(row).secret_name for row in CONTROL_PLANE} == {
        "cloudProvider": "cloud-provider-hc-one-json",
        "nodePoolManagement": "nodepool-mgmt-hc-one-json",
        "controlPlaneOperator": "cpo-hc-one-json",
        "imageRegistry": "ciro-hc-one-json",
        "ingress": "ingress-hc-one-json",
        "network": "cncc-hc-one-json",
        "disk": "azure-disk-hc-one-json",
        "file": "azure-file-hc-one-json",
        "kms": "kms-hc-one-json",
    }


def test_what_is_written_overrides_what_follows() -> None:
    cluster = load(
        configuration(
            hostedClusters__0__infraID="infra",
            hostedClusters__0__location="westus",
            hostedClusters__0__kms__keyVaultResourceGroup="etcd",
            hostedClusters__0__identities__ingress__secretName="mine",
        )
    ).hosted_clusters[0]

    assert (cluster.infra_id, cluster.location, cluster.kms.key_vault_resource_group) == ("infra", "westus", "etcd")
    assert cluster.identities["ingress"].secret_name == "mine"


@pytest.mark.parametrize(
    "key",
    [
        f"https://kv-etcd.vault.azure.net/keys/etcd/{KEY_VERSION}",
        {"keyVaultName": "kv-etcd", "keyName": "etcd", "keyVersion": KEY_VERSION},
    ],
)
def test_the_encryption_key_is_a_url_or_three_fields(key: object) -> None:
    settings = load(configuration(hostedClusters__0__kms__activeKey=key))

    expected = KmsKey.model_validate({"keyVaultName": "kv-etcd", "keyName": "etcd", "keyVersion": KEY_VERSION})
    assert settings.hosted_clusters[0].kms.active_key == expected


def test_a_secret_that_exists_is_used_under_its_own_name() -> None:
    settings = load(
        configuration(
            hostedClusters__0__identities__imageRegistry={
                "source": "managed-identity",
                "resourceId": MANAGED_IDENTITY,
                "credential": {"secretName": "uamsi-ciro"},
            }
        )
    )

    assert settings.hosted_clusters[0].identities["imageRegistry"].secret_name == "uamsi-ciro"


def test_a_secret_value_is_taken_and_never_printed() -> None:
    settings = load(
        configuration(
            hostedClusters__0__identities__imageRegistry={
                "source": "managed-identity",
                "resourceId": MANAGED_IDENTITY,
                "credential": {"value": "MARKER"},
            }
        ),
        secret_keys=["hostedClusters"],
    )

    credential = settings.hosted_clusters[0].identities["imageRegistry"].credential
    assert credential is not None
    assert credential.value is not None
    assert credential.value.get_secret_value() == "MARKER"
    assert "MARKER" not in repr(settings) + str(settings) + settings.model_dump_json(exclude={"cloud"})


def test_uuids_are_kept_in_lower_case_as_azure_answers() -> None:
    tenant = "ABCDEFAB-1111-4111-8111-111111111111"

    assert load(configuration(tenantId=tenant)).tenant_id == tenant.lower()


def test_empty_values_count_as_left_out() -> None:
    empty = {"keyVaultUser": {}, "tags": {}, "credentials": {}, "clusterSide": "", "roles": ""}

    assert load(configuration(**empty)) == load(configuration())


@pytest.mark.parametrize(("written", "expected"), [("true", True), ("false", False)])
def test_booleans_are_read(written: str, expected: bool) -> None:
    assert load(configuration(protect=written)).protect is expected


def test_the_local_cloud_brings_its_endpoints_and_the_stack_its_kubeconfig() -> None:
    config = configuration(
        cloud="local",
        tenantId=LOCAL_TENANT_ID,
        subscriptionId=LOCAL_SUBSCRIPTION_ID,
        managementCluster__kubeconfig=ABSENT,
        hostedClusters=[],
    )

    settings = load(config, local=LOCAL)

    assert settings.cloud.vault_endpoint == LOCAL.key_vault_endpoint
    assert settings.management_cluster is not None
    assert settings.management_cluster.kubeconfig is None


def test_the_cluster_side_of_hypershift_needs_neither_kubeconfig_nor_image() -> None:
    config = configuration(clusterSide="hypershift", probe=ABSENT, managementCluster__kubeconfig=ABSENT)

    assert refusals(config) == []


def test_without_addon_and_cluster_side_no_management_cluster_is_needed() -> None:
    user = {"source": "existing", "clientId": TENANT, "objectId": TENANT}
    config = configuration(clusterSide="hypershift", managementCluster=ABSENT, keyVaultUser=user)

    assert load(config).management_cluster is None


def test_settings_cannot_be_changed() -> None:
    settings = load(configuration())

    with pytest.raises(ValueError, match="frozen"):
        settings.location = "westus"  # type: ignore[misc]
