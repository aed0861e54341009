"""What must fit together in a stack and in its hosted clusters, and the report where it does not."""

from __future__ import annotations

from typing import Any

import pytest

from identity.clouds import LOCAL_SUBSCRIPTION_ID, LOCAL_TENANT_ID
from tests.unit.identity.settings.world import (
    ABSENT,
    LOCAL,
    OTHER,
    SUBSCRIPTION,
    TENANT,
    VNET,
    configuration,
    hosted_cluster,
    refusals,
    report,
)

SHARED = "organization/idstack/shared-dev"
LOCAL_IDS = {"tenantId": LOCAL_TENANT_ID, "subscriptionId": LOCAL_SUBSCRIPTION_ID}


def test_a_vault_or_a_shared_stack_is_needed() -> None:
    assert refusals(configuration(vault=ABSENT)) == [("vault", "vault-missing")]


def test_vault_and_key_vault_user_belong_to_the_shared_stack() -> None:
    changes = {"sharedStack": SHARED, "keyVaultUser": {"source": "existing"}, "keyVaultUserScope": "secrets"}

    refused = ("vault", "keyVaultUser", "keyVaultUserScope")
    assert refusals(configuration(**changes)) == [(key, "vault-of-shared-stack") for key in refused]


def test_with_a_shared_stack_nothing_else_is_missing() -> None:
    assert refusals(configuration(sharedStack=SHARED, vault=ABSENT)) == []
    hypershift = {"clusterSide": "hypershift", "managementCluster": ABSENT, "probe": ABSENT}
    assert refusals(configuration(sharedStack=SHARED, vault=ABSENT, **hypershift)) == []


def test_without_hosted_clusters_neither_kubeconfig_nor_probe_are_needed() -> None:
    cluster = {"resourceGroup": "aks", "name": "mgmt"}

    assert refusals(configuration(hostedClusters=[], probe=ABSENT, managementCluster=cluster)) == []


@pytest.mark.parametrize(
    ("key", "reserved"), [("tenantId", LOCAL_TENANT_ID), ("subscriptionId", LOCAL_SUBSCRIPTION_ID)]
)
def test_the_local_clouds_ids_belong_to_it_both_ways(key: str, reserved: str) -> None:
    ours = {"tenantId": TENANT, "subscriptionId": SUBSCRIPTION}[key]
    local = {**LOCAL_IDS, "cloud": "local", "hostedClusters": [], "managementCluster__kubeconfig": ABSENT}

    assert refusals(configuration(**{key: reserved}, hostedClusters=[])) == [(key, "local-cloud-id-reserved")]
    assert refusals(configuration(**{**local, key: ours}), local=LOCAL) == [(key, "local-cloud-id-required")]


def test_the_local_cloud_has_a_kubeconfig_of_its_own() -> None:
    config = configuration(**LOCAL_IDS, cloud="local", hostedClusters=[])

    assert refusals(config, local=LOCAL) == [("managementCluster.kubeconfig", "kubeconfig-of-local-cloud")]


def test_the_local_cloud_has_a_backend_of_its_own() -> None:
    cloud = {**LOCAL_IDS, "cloud": "local", "hostedClusters": [], "managementCluster__kubeconfig": ABSENT}

    assert refusals(configuration(**cloud, backend="file:///srv/states"), local=LOCAL) == [
        ("backend", "backend-of-local-cloud")
    ]


def test_a_block_of_metadata_is_refused_where_hypershift_makes_the_namespaces() -> None:
    config = configuration(blockInstanceMetadata=True, clusterSide="hypershift")

    assert refusals(config) == [("blockInstanceMetadata", "metadata-block-without-effect")]
    assert refusals(configuration(blockInstanceMetadata=True)) == []


def test_a_metadata_block_is_refused_where_all_have_workload_identities() -> None:
    cluster = hosted_cluster(authentication="workload-identities", topology="Public")
    config = configuration(blockInstanceMetadata=True, hostedClusters=[cluster])

    assert refusals(config) == [("blockInstanceMetadata", "metadata-block-without-effect")]


@pytest.mark.parametrize(
    ("vault", "fix"),
    [
        (
            {"publicNetworkAccess": False},
            "`.venv/bin/idstack pulumi -- config set --path vault.publicNetworkAccess true`",
        ),
        ({"defaultAction": "Allow"}, "`.venv/bin/idstack pulumi -- config set --path vault.defaultAction Deny`"),
    ],
)
def test_lists_of_networks_without_effect_are_refused(vault: dict[str, Any], fix: str) -> None:
    lists = {"allowedIpRanges": ["203.0.113.7"], "allowedSubnetIds": [f"{VNET}/subnets/aks"]}
    config = configuration(vault={"name": "kv-dev", **vault, **lists})

    assert refusals(config) == [(f"vault.{key}", "vault-networks-without-effect") for key in lists]
    assert report(config).count(fix) == 2


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ({}, [("vault.defaultAction", "vault-admits-nobody")]),
        ({"allowedIpRanges": [], "allowedSubnetIds": []}, [("vault.defaultAction", "vault-admits-nobody")]),
        ({"allowedIpRanges": ["20.61.7.16/28"]}, []),
        ({"allowedSubnetIds": [f"{VNET}/subnets/aks"]}, []),
        ({"publicNetworkAccess": False}, []),
    ],
    ids=["nothing", "empty lists", "a range", "a subnet", "private endpoints"],
)
def test_a_vault_that_admits_nobody_is_refused(lists: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    for action in ({}, {"defaultAction": "Deny"}):
        config = configuration(vault={"name": "kv-dev", **action, **lists})

        assert refusals(config) == expected
        assert not expected or "`.venv/bin/idstack pulumi -- config set --path vault.defaultAction Allow`" in report(
            config
        )


@pytest.mark.parametrize(
    ("user", "missing"),
    [({"source": "existing"}, ["clientId", "objectId"]), ({"source": "created"}, ["name"])],
)
def test_the_key_vault_user_is_described_as_its_source_needs(user: dict[str, str], missing: list[str]) -> None:
    assert refusals(configuration(keyVaultUser=user)) == [
        (f"keyVaultUser.{key}", "key-vault-user-key-missing") for key in missing
    ]


@pytest.mark.parametrize(
    ("source", "key", "value"),
    [
        ("aks-addon", "clientId", OTHER),
        ("aks-addon", "objectId", OTHER),
        ("aks-addon", "name", "kv-user"),
        ("existing", "name", "kv-user"),
        ("created", "clientId", OTHER),
    ],
)
def test_the_key_vault_user_has_nothing_that_another_source_needs(source: str, key: str, value: str) -> None:
    needed = {"aks-addon": {}, "existing": {"clientId": OTHER, "objectId": OTHER}, "created": {"name": "kv-user"}}

    assert refusals(configuration(keyVaultUser={"source": source, **needed[source], key: value})) == [
        (f"keyVaultUser.{key}", "key-vault-user-key-unused")
    ]


@pytest.mark.parametrize(
    ("changes", "reasons"),
    [
        (
            {},
            "keyVaultUser.source: aks-addon reads its add-on's identity and clusterSide: stack creates objects in it",
        ),
        ({"clusterSide": "hypershift"}, "keyVaultUser.source: aks-addon reads its add-on's identity"),
        ({"sharedStack": SHARED, "vault": ABSENT}, "clusterSide: stack creates objects in it"),
    ],
)
def test_a_management_cluster_is_named_where_it_is_needed(changes: dict[str, Any], reasons: str) -> None:
    config = configuration(managementCluster=ABSENT, **changes)

    assert refusals(config) == [("managementCluster", "management-cluster-missing")]
    assert f"resourceGroup and name of the AKS cluster: {reasons}\n" in report(config)


def test_the_stacks_cluster_side_needs_a_probe_but_no_kubeconfig() -> None:
    assert refusals(configuration(managementCluster__kubeconfig=ABSENT, probe=ABSENT)) == [
        ("probe.image", "probe-image-missing"),
    ]


@pytest.mark.parametrize(("first", "second"), [("hc1", "hc1"), ("a.b", "a-b")])
def test_hosted_clusters_have_names_of_their_own(first: str, second: str) -> None:
    assert refusals(configuration(hostedClusters=[hosted_cluster(first), hosted_cluster(second)])) == [
        ("hostedClusters[1].name", "duplicate-cluster-name")
    ]


def test_hosted_clusters_have_infra_ids_of_their_own() -> None:
    assert refusals(configuration(hostedClusters=[hosted_cluster(), hosted_cluster("hc2", infraID="hc1")])) == [
        ("hostedClusters[1].infraID", "duplicate-infra-id")
    ]


def test_one_secret_holds_one_credential_whatever_its_letters_case() -> None:
    second = hosted_cluster("hc2", identities={"kms": {"secretName": "CPO-hc1-json"}})

    assert refusals(configuration(hostedClusters=[hosted_cluster(), second])) == [
        ("hostedClusters[1].identities.kms.secretName", "duplicate-secret-name")
    ]


def test_the_secret_of_an_identity_that_is_off_may_be_anothers() -> None:
    identities = {"imageRegistry": {"enabled": False}, "kms": {"secretName": "ciro-hc1-json"}}

    assert refusals(configuration(hostedClusters=[hosted_cluster(identities=identities)])) == []
