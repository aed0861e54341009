"""The report as a whole: all problems at once, each once, in a fixed order, and no secret in it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from identity.settings import ConfigurationError, load_settings
from tests.unit.identity.settings.world import (
    ABSENT,
    MANAGED_IDENTITY,
    as_pulumi_passes_it,
    block,
    configuration,
    hosted_cluster,
    load,
    refusals,
)

KEYS = (
    "cloud, tenantId, subscriptionId, location, resourceGroup, tags, protect, clusterSide, roles, sharedStack, vault, "
    "keyVaultUser, managementCluster, credentials, probe, hostedClusters and allowCredentialLoss"
)


def places(blocks: list[str]) -> list[str]:
    return [each.partition("\n")[0].removeprefix("idstack:") for each in blocks]


def test_it_begins_with_the_number_of_problems() -> None:
    with pytest.raises(ConfigurationError) as one:
        load(configuration(tenantId=ABSENT))
    with pytest.raises(ConfigurationError) as two:
        load(configuration(tenantId=ABSENT, roles="x"))

    assert str(one.value).startswith("The stack's configuration has 1 problem; nothing was changed.\n\nidstack:")
    assert str(two.value).startswith("The stack's configuration has 2 problems; nothing was changed.\n\nidstack:")


def test_an_empty_configuration_names_everything_that_is_required() -> None:
    assert places(refusals({})) == [
        "tenantId",
        "subscriptionId",
        "location",
        "resourceGroup",
        "vault",
        "managementCluster",
    ]


def test_a_hosted_cluster_of_which_only_the_name_is_given_names_everything_that_is_required() -> None:
    assert sorted(places(refusals(configuration(hostedClusters=[{"name": "hc1"}])))) == [
        f"hostedClusters[0].{key}"
        for key in (
            "dnsZoneResourceGroup",
            "issuerURL",
            "kms",
            "resourceGroup",
            "securityGroupID",
            "subnetID",
            "vnetID",
        )
    ]


def test_unknown_keys_come_first_then_the_order_of_the_table_and_the_clusters() -> None:
    config = configuration(
        hostedClusters=[hosted_cluster(objectEncoding="x"), hosted_cluster("hc2", vnetID="x")],
        roles="x",
        tenantId="x",
        zzz="1",
    )

    assert places(refusals(config)) == [
        "zzz",
        "tenantId",
        "roles",
        "hostedClusters[0].objectEncoding",
        "hostedClusters[1].vnetID",
    ]


def test_what_follows_from_a_bad_value_is_not_told_again() -> None:
    """Nine secrets' names, namespace and infraID follow from the name, the clusters' location from the stack's."""
    config = configuration(hostedClusters__0__name="a_b", location="?", resourceGroup="?")

    assert places(refusals(config)) == ["location", "resourceGroup", "hostedClusters[0].name"]


@pytest.mark.parametrize(
    ("key", "fix"),
    [
        ("hostedCluster", "rename it to hostedClusters"),
        ("TenantID", "rename it to tenantId"),
        ("keyvaultuser", "rename it to keyVaultUser"),
        ("zzz", "`pulumi config rm zzz`"),
        (
            "vault.name",
            "`pulumi config rm vault.name`, then `pulumi config set --path vault.name <value>`: a path needs --path",
        ),
        (
            "hostedClusters[0].name",
            "`pulumi config rm 'hostedClusters[0].name'`, "
            "then `pulumi config set --path 'hostedClusters[0].name' <value>`: a path needs --path",
        ),
    ],
)
def test_an_unknown_key_is_told_with_the_nearest_known_one(key: str, fix: str) -> None:
    assert refusals(configuration() | {key: "x"}) == [block(key, "a key that nothing reads", f"the keys {KEYS}", fix)]


@pytest.mark.parametrize(
    ("path", "key", "known", "fix"),
    [
        ("probe__imag", "probe.imag", "image", "rename it to probe.image"),
        (
            "credentials__propagation__sucesses",
            "credentials.propagation.sucesses",
            "successes, settleSeconds and timeoutSeconds",
            "rename it to credentials.propagation.successes",
        ),
        (
            "hostedClusters__0__kms__activekey",
            "hostedClusters[0].kms.activekey",
            "activeKey and keyVaultResourceGroup",
            "rename it to hostedClusters[0].kms.activeKey",
        ),
    ],
)
def test_an_unknown_key_inside_is_told_in_its_place(path: str, key: str, known: str, fix: str) -> None:
    found = refusals(configuration(**{path: 1}))

    assert found == [block(key, "a key that nothing reads", f"the keys {known}", fix)]


def test_an_unknown_identity_is_told_with_the_nearest_one() -> None:
    assert refusals(configuration(hostedClusters__0__identities={"imageRegistri": {"enabled": 5}})) == [
        block(
            "hostedClusters[0].identities.imageRegistri",
            '"imageRegistri"',
            "one of cloudProvider, nodePoolManagement, controlPlaneOperator, imageRegistry, ingress, network, disk, "
            "file or kms",
            "rename it to imageRegistry",
        )
    ]


@pytest.mark.parametrize(
    ("path", "key", "value", "found", "accepted"),
    [
        ("tags", "tags", ["x"], "a list", "at most 50 tags, a name and a string each"),
        ("vault", "vault", "kv-dev", '"kv-dev"', None),
        ("vault__allowedIpRanges", "vault.allowedIpRanges", "203.0.113.7", '"203.0.113.7"', "a list"),
        ("hostedClusters", "hostedClusters", {"name": "hc1"}, "a mapping", "a list"),
        ("hostedClusters__0", "hostedClusters[0]", "hc1", '"hc1"', None),
        ("hostedClusters__0__identities", "hostedClusters[0].identities", [], "a list", "a mapping"),
        ("hostedClusters__0__kms", "hostedClusters[0].kms", 1, "the number 1", None),
        ("allowCredentialLoss", "allowCredentialLoss", "hc1", '"hc1"', "a list"),
    ],
)
def test_a_structure_of_the_wrong_kind_is_written_as_yaml(
    path: str, key: str, value: Any, found: str, accepted: str | None
) -> None:
    [problem] = [each for each in refusals(configuration(**{path: value})) if each.startswith(f"idstack:{key}\n")]

    assert f"\n  found:    {found}\n  accepted: {accepted or 'a mapping with the keys '}" in problem
    assert problem.endswith(f"\n  fix:      write it as YAML at {key} in the stack file")


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "kv-dev", "nul"])
def test_a_structure_that_is_no_json_is_one_problem(text: str) -> None:
    config = as_pulumi_passes_it(configuration()) | {"vault": text}
    with pytest.raises(ConfigurationError) as refused:
        load_settings(config, secret_keys=(), local=None)

    assert [each.place for each in refused.value.problems] == [("vault",)]


@pytest.mark.parametrize(
    ("tags", "reason"),
    [
        ({str(number): "x" for number in range(51)}, "51 tags"),
        ({"team": "a", "Team": "b"}, "two names differ only in the case of letters"),
    ],
)
def test_tags_are_as_many_as_azure_takes_and_told_apart_without_case(tags: dict[str, str], reason: str) -> None:
    assert refusals(configuration(tags=tags)) == [
        block(
            "tags",
            f"a mapping: {reason}",
            "at most 50 tags, a name and a string each",
            "write it as YAML at tags in the stack file",
        )
    ]


@pytest.mark.parametrize("name", ["azure-team", "Microsoft", "windows.x", "a/b", "a%", "x" * 513])
def test_a_tag_has_a_name_that_azure_takes(name: str) -> None:
    [problem] = refusals(configuration(tags={name: "x"}))

    assert (
        "\n  accepted: a tag name: 1-512 characters without < > % & \\ ? /, not beginning with azure, microsoft or "
        "windows\n  fix:      `pulumi config rm --path "
    ) in problem


def test_nothing_out_of_a_key_with_a_secret_is_shown() -> None:
    marker = "MARKER-" + "x" * 20
    cluster = hosted_cluster(
        name=marker,
        vnetID=marker,
        objectEncoding=marker,
        kms={"activeKey": marker},
        identities={"imageRegistry": {"source": "managed-identity", "credential": {"value": marker, "file": marker}}},
    )

    report = "\n\n".join(refusals(configuration(hostedClusters=[cluster]), secret_keys=["hostedClusters"]))

    assert "MARKER" not in report
    assert "a string that is not shown because it may be a secret" in report


def test_a_secret_that_is_no_text_is_not_shown_either() -> None:
    identity = {"source": "managed-identity", "resourceId": MANAGED_IDENTITY, "credential": {"value": 4711}}
    config = configuration(hostedClusters__0__identities={"imageRegistry": identity})

    [problem] = refusals(config)

    assert "4711" not in problem
    assert "found:    a number that is not shown because it may be a secret" in problem
    assert "pulumi config set --secret --path" in problem


def test_a_report_can_be_printed_whatever_is_in_it() -> None:
    config = as_pulumi_passes_it(configuration()) | {"vault": json.dumps({"name": "\ud800"})}

    with pytest.raises(ConfigurationError) as refused:
        load_settings(config, secret_keys=(), local=None)

    assert str(refused.value).encode("utf-8")
