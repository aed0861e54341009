"""The report as a whole: all problems at once, each once, in a fixed order, and no secret in it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from identity.settings import ConfigurationError, load_settings
from tests.unit.golden_report import reviewed
from tests.unit.identity.settings.world import (
    ABSENT,
    MANAGED_IDENTITY,
    as_pulumi_passes_it,
    configuration,
    hosted_cluster,
    load,
    path_of,
    places,
    refusals,
    report,
)


def test_it_begins_with_the_number_of_problems() -> None:
    with pytest.raises(ConfigurationError) as one:
        load(configuration(tenantId=ABSENT))
    with pytest.raises(ConfigurationError) as two:
        load(configuration(tenantId=ABSENT, roles="x"))

    assert str(one.value).startswith("The stack's configuration has 1 problem; nothing was changed.\n\nidstack:")
    assert str(two.value).startswith("The stack's configuration has 2 problems; nothing was changed.\n\nidstack:")


def test_an_empty_configuration_names_everything_that_is_required() -> None:
    assert places({}) == [
        "tenantId",
        "subscriptionId",
        "location",
        "resourceGroup",
        "vault",
        "managementCluster",
    ]


def test_a_hosted_cluster_with_only_a_name_lists_what_is_required() -> None:
    assert sorted(places(configuration(hostedClusters=[{"name": "hc1"}]))) == [
        f"hostedClusters[0].{key}"
        for key in (
            "dnsZoneResourceGroup",
            "issuerURL",
            "resourceGroup",
            "securityGroupID",
            "subnetID",
            "vnetID",
        )
    ]


def test_unknown_keys_come_first_then_the_order_of_the_models() -> None:
    config = configuration(
        hostedClusters=[hosted_cluster(objectEncoding="x"), hosted_cluster("hc2", vnetID="x")],
        roles="x",
        tenantId="x",
        zzz="1",
    )

    assert places(config) == [
        "zzz",
        "tenantId",
        "roles",
        "hostedClusters[0].objectEncoding",
        "hostedClusters[1].vnetID",
    ]


def test_what_follows_from_a_bad_value_is_not_reported_again() -> None:
    """Nine secrets' names, namespace and infraID follow from the name, the clusters' location from the stack's."""
    config = configuration(hostedClusters__0__name="a_b", location="?", resourceGroup="?")

    assert places(config) == ["location", "resourceGroup", "hostedClusters[0].name"]


VAULT = {"name": "kv-identity", "defaultAction": "Allow"}


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        *(
            ({key: "x"}, key)
            for key in ("hostedCluster", "TenantID", "keyvaultuser", "zzz", "vault.name", "hostedClusters[0].name")
        ),
        ({"probe__imag": 1}, "probe.imag"),
        ({"credentials__propagation__sucesses": 1}, "credentials.propagation.sucesses"),
        ({"hostedClusters__0__kms__activekey": 1}, "hostedClusters[0].kms.activekey"),
        *(({"vault": {**VAULT, name: 1}}, f"vault[{json.dumps(name)}]") for name in ("[key]", "", "a.b", '"')),
    ],
)
def test_an_unknown_key_is_reported_in_its_place_with_the_nearest_one(changes: dict[str, Any], key: str) -> None:
    assert refusals(configuration(**changes)) == [(key, "unknown-key")]


@pytest.mark.parametrize(("name", "place"), [("imageRegistri", ".imageRegistri"), ("[key]", '["[key]"]')])
def test_an_unknown_identity_is_reported_with_the_nearest_one(name: str, place: str) -> None:
    assert refusals(configuration(hostedClusters__0__identities={name: {"enabled": 5, "[key]": 1}})) == [
        (f"hostedClusters[0].identities{place}", "identity-field")
    ]


@pytest.mark.parametrize(
    ("path", "key", "value"),
    [
        ("tags", "tags", ["x"]),
        ("vault", "vault", "kv-dev"),
        ("vault__allowedIpRanges", "vault.allowedIpRanges", "203.0.113.7"),
        ("hostedClusters", "hostedClusters", {"name": "hc1"}),
        ("hostedClusters__0", "hostedClusters[0]", "hc1"),
        ("hostedClusters__0__identities", "hostedClusters[0].identities", []),
        ("hostedClusters__0__kms", "hostedClusters[0].kms", 1),
        ("allowCredentialLoss", "allowCredentialLoss", "hc1"),
    ],
)
def test_a_structure_of_the_wrong_kind_is_written_as_yaml(path: str, key: str, value: Any) -> None:
    config = configuration(**{path: value})

    assert (key, "tags" if key == "tags" else "structure") in refusals(config)
    assert f"\n  fix:      write it as YAML at {key} in the stack file" in report(config)


@pytest.mark.parametrize(
    ("key", "text", "rule", "found"),
    [
        *(("vault", text, "structure", "vault") for text in ("{", "[" * 100_000, "kv-dev", "nul")),
        ("tags", '{"\\ud800": "x"}', "tags", "a mapping: one of its keys holds half of a character"),
    ],
)
def test_a_structure_that_is_no_json_or_has_half_of_a_character_in_a_key_is_one_problem(
    key: str, text: str, rule: str, found: str
) -> None:
    config = as_pulumi_passes_it(configuration()) | {key: text}
    with pytest.raises(ConfigurationError, match=found) as refused:
        load_settings(config, secret_keys=(), local=None)

    assert reviewed(refused.value.problems) == [(key, rule)]


@pytest.mark.parametrize(
    ("tags", "reason"),
    [
        ({str(number): "x" for number in range(10)}, "10 tags"),
        ({"Generation": "x"}, '"Generation", which the stack writes itself'),
        ({"team": "a", "Team": "b"}, "two names differ only in the case of letters"),
    ],
)
def test_tags_are_limited_in_number_and_names_ignore_case(tags: dict[str, str], reason: str) -> None:
    assert refusals(configuration(tags=tags)) == [("tags", "tags")]
    assert f"  found:    a mapping: {reason}\n" in report(configuration(tags=tags))


@pytest.mark.parametrize("name", ["azure-team", "Microsoft", "windows.x", "a/b", "a%", "x" * 513])
def test_a_tag_has_a_name_that_azure_takes(name: str) -> None:
    [(_, rule)] = refusals(configuration(tags={name: "x"}))

    assert rule == "tag-name"


def test_a_secret_that_is_no_string_is_not_shown_either() -> None:
    identity = {"source": "managed-identity", "resourceId": MANAGED_IDENTITY, "credential": {"file": 4711}}
    config = configuration(hostedClusters__0__identities={"imageRegistry": identity})

    [(place, rule)] = refusals(config)

    assert (place, rule) == ("hostedClusters[0].identities.imageRegistry.credential.file", "document-path")
    assert "4711" not in report(config)
    assert "found:    a number that is not shown because it may be a secret" in report(config)


IMPORTED = {"source": "managed-identity", "resourceId": MANAGED_IDENTITY, "credential": {"file": "x"}}
REGISTRY = "hostedClusters__0__identities__imageRegistry"


@pytest.mark.parametrize("value", ["MARKER", 4711, {"secure": "MARKER"}, None])
@pytest.mark.parametrize("others", [{}, {"file": "x"}, {"file": "x", "secretName": "y"}])
@pytest.mark.parametrize("secret_keys", [(), ("hostedClusters",)])
def test_a_document_in_the_configuration_is_refused_and_not_shown(
    value: object, others: dict[str, str], secret_keys: tuple[str, ...]
) -> None:
    config = configuration(**{REGISTRY: {**IMPORTED, "credential": {"value": value, **others}}})

    assert (f"{path_of(REGISTRY)}.credential.value", "unknown-key") in refusals(config, secret_keys=secret_keys)
    assert "MARKER" not in (written := report(config, secret_keys=secret_keys))
    assert "4711" not in written


@pytest.mark.parametrize("place", ["credential", "credential__file", "credential__secretName", "credential__other"])
def test_a_document_in_the_wrong_place_is_not_shown(place: str) -> None:
    assert "MARKER" not in report(configuration(**{REGISTRY: IMPORTED, f"{REGISTRY}__{place}": "MARKER" * 100}))


def test_a_key_in_the_place_of_its_files_path_is_not_shown() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMARKER" + "A" * 800
    written = report(configuration(hostedClusters__0__serviceAccountSigningKey={"file": key}))

    assert "MARKER" not in written
    assert "a string that is not shown because it may be a secret" in written


@pytest.mark.parametrize(("tags", "rule"), [({"[key]": 5}, "tag-value"), ({"[key]": "x", "a/b": "y"}, "tag-name")])
def test_a_name_that_pydantic_uses_itself_is_a_name_like_others(tags: dict[str, object], rule: str) -> None:
    [(_, found)] = refusals(configuration(tags=tags))

    assert found == rule


@pytest.mark.parametrize("broken", [{"vault": '{"name": "\\ud800"}'}, {"tags": '{"team": "\\ud800"}'}])
def test_a_report_can_be_printed_whatever_is_in_it(broken: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load_settings(as_pulumi_passes_it(configuration()) | broken, secret_keys=(), local=None)

    assert "half of a character" in str(refused.value).encode().decode()
