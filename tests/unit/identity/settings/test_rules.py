"""What must fit together across the settings of a stack."""

from __future__ import annotations

from typing import Any

import pytest

from identity.clouds import LOCAL_SUBSCRIPTION_ID, LOCAL_TENANT_ID
from tests.unit.identity.settings.world import (
    ABSENT,
    LOCAL,
    LOCAL_CLOUD_KEYS,
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
LOCAL_STACK = {**LOCAL_CLOUD_KEYS, "hostedClusters": [], "managementCluster__kubeconfig": ABSENT}
OF_WORKLOADS = hosted_cluster(authentication="workload-identities", topology="Public")
OF_SHARED = {"sharedStack": SHARED, "keyVaultUser": {"source": "existing"}, "keyVaultUserScope": "secrets"}
HYPERSHIFT_ALONE = {"clusterSide": "hypershift", "managementCluster": ABSENT, "probe": ABSENT}
KMS_LIKE_CPO = hosted_cluster("hc2", identities={"kms": {"secretName": "CPO-hc1-json"}})
REGISTRY_OFF = hosted_cluster(identities={"imageRegistry": {"enabled": False}, "kms": {"secretName": "ciro-hc1-json"}})
NO_EFFECT = [("blockInstanceMetadata", "metadata-block-without-effect")]
USER_NEEDS = {"aks-addon": {}, "existing": {"clientId": OTHER, "objectId": OTHER}, "created": {"name": "kv-user"}}
CASES: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "a vault or a shared stack is needed": ({"vault": ABSENT}, [("vault", "vault-missing")]),
    "vault and key-vault-user are the shared stack's": (
        OF_SHARED,
        [(key, "vault-of-shared-stack") for key in ("vault", "keyVaultUser", "keyVaultUserScope")],
    ),
    "with a shared stack nothing else is missing": ({"sharedStack": SHARED, "vault": ABSENT}, []),
    "nor with HyperShift's cluster side": ({"sharedStack": SHARED, "vault": ABSENT, **HYPERSHIFT_ALONE}, []),
    "without hosted clusters nothing is needed for probes": (
        {"hostedClusters": [], "probe": ABSENT, "managementCluster": {"resourceGroup": "aks", "name": "mgmt"}},
        [],
    ),
    "the stack's cluster side needs a probe but no kubeconfig": (
        {"managementCluster__kubeconfig": ABSENT, "probe": ABSENT},
        [("probe.image", "probe-image-missing")],
    ),
    "the local cloud has a kubeconfig of its own": (
        {**LOCAL_CLOUD_KEYS, "hostedClusters": []},
        [("managementCluster.kubeconfig", "kubeconfig-of-local-cloud")],
    ),
    "the local cloud has a backend of its own": (
        {**LOCAL_STACK, "backend": "file:///srv/states"},
        [("backend", "backend-of-local-cloud")],
    ),
    "metadata is blocked in the stack's own namespaces": ({"blockInstanceMetadata": True}, []),
    "not where HyperShift makes the namespaces": (
        {"blockInstanceMetadata": True, "clusterSide": "hypershift"},
        NO_EFFECT,
    ),
    "nor where all have workload identities": (
        {"blockInstanceMetadata": True, "hostedClusters": [OF_WORKLOADS]},
        NO_EFFECT,
    ),
    "hosted clusters have names of their own": (
        {"hostedClusters": [hosted_cluster(), hosted_cluster()]},
        [("hostedClusters[1].name", "duplicate-cluster-name")],
    ),
    "whatever stands for the dot": (
        {"hostedClusters": [hosted_cluster("a.b"), hosted_cluster("a-b")]},
        [("hostedClusters[1].name", "duplicate-cluster-name")],
    ),
    "one secret holds one credential whatever its letters' case": (
        {"hostedClusters": [hosted_cluster(), KMS_LIKE_CPO]},
        [("hostedClusters[1].identities.kms.secretName", "duplicate-secret-name")],
    ),
    "the secret of an identity that is off may be another's": ({"hostedClusters": [REGISTRY_OFF]}, []),
    **{
        f"a key-vault-user that is {source} needs {', '.join(missing)}": (
            {"keyVaultUser": {"source": source}},
            [(f"keyVaultUser.{key}", "key-vault-user-key-missing") for key in missing],
        )
        for source, missing in (("existing", ["clientId", "objectId"]), ("created", ["name"]))
    },
    **{
        f"a key-vault-user from {source} has no {key}": (
            {"keyVaultUser": {"source": source, **USER_NEEDS[source], key: value}},
            [(f"keyVaultUser.{key}", "key-vault-user-key-unused")],
        )
        for source, key, value in (
            ("aks-addon", "clientId", OTHER),
            ("aks-addon", "objectId", OTHER),
            ("aks-addon", "name", "kv-user"),
            ("existing", "name", "kv-user"),
            ("created", "clientId", OTHER),
        )
    },
}


@pytest.mark.parametrize(("changes", "expected"), CASES.values(), ids=CASES)
def test_what_must_fit_together_in_a_stack(changes: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert refusals(configuration(**changes), local=LOCAL) == expected


@pytest.mark.parametrize(
    ("key", "reserved"), [("tenantId", LOCAL_TENANT_ID), ("subscriptionId", LOCAL_SUBSCRIPTION_ID)]
)
def test_the_local_clouds_ids_belong_to_it_both_ways(key: str, reserved: str) -> None:
    ours = {"tenantId": TENANT, "subscriptionId": SUBSCRIPTION}[key]

    assert refusals(configuration(**{key: reserved}, hostedClusters=[])) == [(key, "local-cloud-id-reserved")]
    assert refusals(configuration(**{**LOCAL_STACK, key: ours}), local=LOCAL) == [(key, "local-cloud-id-required")]


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


def test_hosted_clusters_have_infra_ids_of_their_own() -> None:
    assert refusals(configuration(hostedClusters=[hosted_cluster(), hosted_cluster("hc2", infraID="hc1")])) == [
        ("hostedClusters[1].infraID", "duplicate-infra-id")
    ]


@pytest.mark.parametrize(
    ("lifetime", "before", "is_accepted"),
    [
        (90, 45, True),
        (90, 89, True),
        (730, 729, True),
        (90, 30, True),
        (730, 30, True),
        (90, 29, False),
        (90, 90, False),
        (30, 9, False),
        (3, 1, False),
        (2, 1, True),
    ],
)
def test_a_certificate_is_renewed_in_the_last_third_of_its_life_at_the_latest(
    lifetime: int, before: int, is_accepted: bool
) -> None:
    found = refusals(configuration(credentials={"lifetimeDays": lifetime, "renewBeforeDays": before}))
    assert found == ([] if is_accepted else [("credentials.renewBeforeDays", "renewal-date")])


@pytest.mark.parametrize(("settle", "timeout", "is_accepted"), [(30, 31, True), (30, 30, False), (0, 1, True)])
def test_the_gate_must_have_time_to_settle(settle: int, timeout: int, is_accepted: bool) -> None:
    propagation = {"settleSeconds": settle, "timeoutSeconds": timeout}
    found = refusals(configuration(credentials={"propagation": propagation}))
    wrong = ("credentials.propagation.timeoutSeconds", "propagation-timeout-too-short")
    assert found == ([] if is_accepted else [wrong])
