"""What must fit together in a stack and in its hosted clusters, and the report where it does not."""

from __future__ import annotations

from typing import Any

import pytest

from identity.clouds import LOCAL_SUBSCRIPTION_ID, LOCAL_TENANT_ID
from tests.unit.identity.settings.world import (
    ABSENT,
    LOCAL,
    MANAGED_IDENTITY,
    OTHER,
    SUBSCRIPTION,
    TENANT,
    VNET,
    block,
    configuration,
    hosted_cluster,
    refusals,
)

SHARED = "organization/idstack/shared-dev"
REGISTRY = "hostedClusters[0].identities.imageRegistry"
LOCAL_IDS = {"tenantId": LOCAL_TENANT_ID, "subscriptionId": LOCAL_SUBSCRIPTION_ID}
IMPORTED = {"source": "managed-identity", "resourceId": MANAGED_IDENTITY, "credential": {"file": "x"}}


def registry(**identity: Any) -> dict[str, Any]:
    return configuration(hostedClusters__0__identities={"imageRegistry": identity})


def test_a_vault_or_a_shared_stack_is_needed() -> None:
    assert refusals(configuration(vault=ABSENT)) == [
        block(
            "vault",
            "nothing",
            "the Key Vault of the credentials, by its name; or sharedStack, the stack that has it",
            "`pulumi config set --path vault.name <vault>`, "
            "or `pulumi config set sharedStack <organization>/<project>/<stack>`",
        )
    ]


def test_vault_and_reader_belong_to_the_shared_stack() -> None:
    changes = {"sharedStack": SHARED, "keyVaultUser": {"source": "existing"}}
    accepted = "nothing with sharedStack, which has the vault and its reader"

    assert refusals(configuration(**changes)) == [
        block(key, "a mapping", accepted, f"`pulumi config rm {key}`, or `pulumi config rm sharedStack`")
        for key in ("vault", "keyVaultUser")
    ]


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

    assert refusals(configuration(**{key: reserved}, hostedClusters=[])) == [
        block(
            key,
            f'"{reserved}"',
            "an id of your own: this one is reserved for cloud: local",
            f"`pulumi config set {key} <uuid>`, or use the local cloud with `pulumi config set cloud local`",
        )
    ]
    assert refusals(configuration(**{**local, key: ours}), local=LOCAL) == [
        block(
            key,
            f'"{ours}"',
            f"{reserved} with cloud: local, which has no other",
            f"`pulumi config set {key} {reserved}`, or name a real cloud with `pulumi config set cloud <cloud>`",
        )
    ]


def test_the_local_cloud_has_a_kubeconfig_of_its_own() -> None:
    config = configuration(**LOCAL_IDS, cloud="local", hostedClusters=[])

    assert refusals(config, local=LOCAL) == [
        block(
            "managementCluster.kubeconfig",
            '"mgmt.kubeconfig"',
            "nothing with cloud: local, whose own kubeconfig is taken",
            "`pulumi config rm --path managementCluster.kubeconfig`",
        )
    ]


@pytest.mark.parametrize(
    ("vault", "overruling", "fix"),
    [
        (
            {"publicNetworkAccess": False},
            "publicNetworkAccess: false, which leaves private endpoints only",
            "`pulumi config set --path vault.publicNetworkAccess true`",
        ),
        (
            {"defaultAction": "Allow"},
            "defaultAction: Allow, which lets every network in",
            "`pulumi config set --path vault.defaultAction Deny`",
        ),
    ],
)
def test_lists_of_networks_without_effect_are_refused(vault: dict[str, Any], overruling: str, fix: str) -> None:
    lists = {"allowedIpRanges": ["203.0.113.7"], "allowedSubnetIds": [f"{VNET}/subnets/aks"]}

    assert refusals(configuration(vault={"name": "kv-dev", **vault, **lists})) == [
        block(
            f"vault.{key}",
            "a list",
            f"nothing with {overruling}",
            f"`pulumi config rm --path vault.{key}`, or {fix}",
        )
        for key in lists
    ]


@pytest.mark.parametrize(
    ("user", "missing"),
    [
        (
            {"source": "existing"},
            {
                "clientId": ("the client id of the identity with which the CSI driver reads the vault", "<uuid>"),
                "objectId": (
                    "the object id of that identity's service principal: it gets the role on the vault",
                    "<uuid>",
                ),
            },
        ),
        ({"source": "created"}, {"name": ("the name of the managed identity to create", "<name>")}),
    ],
)
def test_the_reader_is_described_as_its_source_needs(user: dict[str, str], missing: dict[str, tuple[str, str]]) -> None:
    assert refusals(configuration(keyVaultUser=user)) == [
        block(f"keyVaultUser.{key}", "nothing", accepted, f"`pulumi config set --path keyVaultUser.{key} {blank}`")
        for key, (accepted, blank) in missing.items()
    ]


@pytest.mark.parametrize(
    ("source", "key", "value"),
    [
        ("aks-addon", "clientId", OTHER),
        ("aks-addon", "objectId", OTHER),
        ("aks-addon", "name", "reader"),
        ("existing", "name", "reader"),
        ("created", "clientId", OTHER),
    ],
)
def test_the_reader_has_nothing_that_another_source_needs(source: str, key: str, value: str) -> None:
    needed = {"aks-addon": {}, "existing": {"clientId": OTHER, "objectId": OTHER}, "created": {"name": "reader"}}

    assert refusals(configuration(keyVaultUser={"source": source, **needed[source], key: value})) == [
        block(
            f"keyVaultUser.{key}",
            f'"{value}"',
            f"nothing with source: {source}",
            f"`pulumi config rm --path keyVaultUser.{key}`, or choose another keyVaultUser.source",
        )
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
    assert refusals(configuration(managementCluster=ABSENT, **changes)) == [
        block(
            "managementCluster",
            "nothing",
            f"resourceGroup and name of the AKS cluster: {reasons}",
            "`pulumi config set --path managementCluster.resourceGroup <resource-group>` "
            "and `pulumi config set --path managementCluster.name <aks-cluster>`",
        )
    ]


def test_the_stacks_cluster_side_needs_a_probe_and_makes_a_kubeconfig_of_its_own() -> None:
    assert refusals(configuration(managementCluster__kubeconfig=ABSENT, probe=ABSENT)) == [
        block(
            "probe.image",
            "nothing",
            "the image of the credential probe: clusterSide: stack runs one for each mount",
            "`pulumi config set --path probe.image <image>`, or `pulumi config set clusterSide hypershift`",
        ),
    ]


@pytest.mark.parametrize(("lifetime", "before"), [(90, 44), (90, 90), (91, 45), (3, 1)])
def test_a_spare_lives_until_its_turn(lifetime: int, before: int) -> None:
    assert refusals(configuration(credentials={"lifetimeDays": lifetime, "renewBeforeDays": before})) == [
        block(
            "credentials.renewBeforeDays",
            f"the number {before}",
            "less than credentials.lifetimeDays and at least half of it: the spare must live until its turn",
            "`pulumi config set --path credentials.renewBeforeDays <days>`, or change credentials.lifetimeDays",
        )
    ]


def test_the_gate_has_time_to_settle() -> None:
    assert refusals(configuration(credentials={"propagation": {"settleSeconds": 60, "timeoutSeconds": 60}})) == [
        block(
            "credentials.propagation.timeoutSeconds",
            "the number 60",
            "more than credentials.propagation.settleSeconds",
            "`pulumi config set --path credentials.propagation.timeoutSeconds <seconds>`",
        )
    ]


@pytest.mark.parametrize(("first", "second"), [("hc1", "hc1"), ("a.b", "a-b")])
def test_hosted_clusters_have_names_of_their_own(first: str, second: str) -> None:
    assert refusals(configuration(hostedClusters=[hosted_cluster(first), hosted_cluster(second)])) == [
        block(
            "hostedClusters[1].name",
            f'"{second}"',
            "a name other than hostedClusters[0].name; a dot counts as a hyphen",
            "`pulumi config set --path 'hostedClusters[1].name' <cluster>`",
        )
    ]


def test_hosted_clusters_have_infra_ids_of_their_own() -> None:
    assert refusals(configuration(hostedClusters=[hosted_cluster(), hosted_cluster("hc2", infraID="hc1")])) == [
        block(
            "hostedClusters[1].infraID",
            '"hc1"',
            "an id other than hostedClusters[0].infraID: the names of role assignments are made of it",
            "`pulumi config set --path 'hostedClusters[1].infraID' <infra-id>`",
        )
    ]


def test_one_secret_holds_one_credential_whatever_its_letters_case() -> None:
    second = hosted_cluster("hc2", identities={"kms": {"secretName": "CPO-hc1-json"}})

    assert refusals(configuration(hostedClusters=[hosted_cluster(), second])) == [
        block(
            "hostedClusters[1].identities.kms.secretName",
            '"CPO-hc1-json"',
            "a name other than hostedClusters[0].identities.controlPlaneOperator.secretName: "
            "one secret holds one credential",
            "`pulumi config set --path 'hostedClusters[1].identities.kms.secretName' <secret>`",
        )
    ]


def test_the_secret_of_an_identity_that_is_off_may_be_anothers() -> None:
    identities = {"imageRegistry": {"enabled": False}, "kms": {"secretName": "ciro-hc1-json"}}

    assert refusals(configuration(hostedClusters=[hosted_cluster(identities=identities)])) == []
