"""What each key accepts, and YAML's types where a string belongs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from identity.settings import ConfigurationError, Problem, load_settings
from identity.settings.schema.schema_node import PLACEHOLDER
from identity.settings.stack_file import require_unique_keys, written
from tests.unit.golden_report import reviewed
from tests.unit.identity.settings.world import (
    DNS,
    KEY_VERSION,
    NETWORK,
    VNET,
    as_pulumi_passes_it,
    configuration,
    domains,
    hosted_cluster,
    load,
    path_of,
    read,
    refusals,
    report,
    steps,
    with_change,
)

CLUSTER = "hostedClusters__0__"


@pytest.mark.parametrize(
    ("case", "path", "value", "is_good"),
    [
        pytest.param(case, path, value, is_good, id=f"{path} {str(value)[:30]}")
        for case in read("values.yaml")
        for path in (case.get("at") or case["entries"])
        for is_good, values in ((False, case["refused"]), (True, case.get("accepted", [])))
        for value in values
    ],
)
def test_a_bad_value_is_one_problem_at_its_place_and_a_good_one_none(
    case: Mapping[str, Any], path: str, value: Any, is_good: bool
) -> None:
    key = path_of(steps(path)) + ("[0]" if "entries" in case else "")
    changes = {**case.get("also", {}), path: [value] if "entries" in case else value}

    assert refusals(configuration(**{steps(place): change for place, change in changes.items()})) == (
        [] if is_good else [(key, case["rule"])]
    )


@pytest.mark.parametrize(
    ("case", "value"),
    [
        pytest.param(case, value, id=f"{case['at']} {value}")
        for case in read("resource-ids.yaml")
        for value in case["refused"]
    ],
)
def test_a_resource_id_is_checked_down_to_the_names_in_it(case: Mapping[str, Any], value: str) -> None:
    changes = {**case.get("also", {}), case["at"]: value}
    config = configuration(**{steps(place): change for place, change in changes.items()})
    reason = case["refused"][value]

    assert refusals(config) == [(path_of(steps(case["at"])), case["rule"])]
    assert f'  found:    "{value}"{f": {reason}" if reason else ""}\n' in report(config)


@pytest.mark.parametrize("case", [str.lower, str.upper])
@pytest.mark.parametrize(
    ("path", "canonical"),
    [
        ("dns__publicZoneID", f"{DNS}/dnszones/apps.example.com"),
        ("dns__privateZoneID", f"{DNS}/privateDnsZones/hc1.apps.example.com"),
        ("subnetID", f"{VNET}/subnets/default"),
        ("routeTableID", f"{NETWORK}/routeTables/Routes"),
    ],
)
def test_an_id_is_handed_on_in_azures_letter_case(path: str, canonical: str, case: Callable[[str], str]) -> None:
    _, *pieces = canonical.split("/")
    names = {1, 3, *range(7, len(pieces), 2)}
    typed = "".join(f"/{piece if place in names else case(piece)}" for place, piece in enumerate(pieces))

    loaded = load(configuration(hostedClusters=[hosted_cluster(**domains())], **{f"{CLUSTER}{path}": typed}))

    assert canonical in str(loaded.hosted_clusters[0].model_dump())


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://kv-etcd.vault.azure.net/keys/etcd", ""),
        (f"http://kv-etcd.vault.azure.net/keys/etcd/{KEY_VERSION}", ""),
        (f"https://kv-etcd.vault.azure.net/secrets/etcd/{KEY_VERSION}", ""),
        (f"https://kv-etcd.vault.azure.cn/keys/etcd/{KEY_VERSION}", "the vaults of this cloud are at vault.azure.net"),
        (f"https://kv_etcd.vault.azure.net/keys/etcd/{KEY_VERSION}", "keyVaultName: not a valid value"),
        (f"https://kv-etcd.vault.azure.net/keys/a_b/{KEY_VERSION}", "keyName: not a valid value"),
        (f"https://kv-etcd.vault.azure.net/keys/etcd/{'0' * 32}", f"keyVersion: {PLACEHOLDER}"),
    ],
)
def test_the_url_of_an_encryption_key_is_checked_part_by_part(url: str, reason: str) -> None:
    config = configuration(hostedClusters__0__kms__activeKey=url)

    assert refusals(config) == [("hostedClusters[0].kms.activeKey", "kms-key")]
    assert f'  found:    "{url}"{f": {reason}" if reason else ""}\n' in report(config)


@pytest.mark.parametrize("service", ["vault", "managedhsm"])
def test_the_url_of_an_encryption_key_has_the_clouds_suffix(service: str) -> None:
    url = f"https://kv-etcd.{service}.azure.cn/keys/etcd/{KEY_VERSION}"

    assert refusals(configuration(cloud="AzureChinaCloud", hostedClusters__0__kms__activeKey=url)) == []


def problems(line: str, *, has_file: bool = True) -> list[Problem]:
    """What is refused of a configuration whose stack file has this line (`resourceGroup: true`) at its top level."""
    config = {**configuration(), **yaml.safe_load(line)}
    file = yaml.safe_dump({"config": {f"idstack:{key}": value for key, value in config.items()}})
    return _refused(config, written(file) if has_file else None)


def _refused(config: Mapping[str, Any], written: Mapping[str, object] | None) -> list[Problem]:
    try:
        load_settings(as_pulumi_passes_it(config), secret_keys=(), local=None, written=written)
    except ConfigurationError as error:
        reviewed(error.problems)
        return list(error.problems)
    return []


@pytest.mark.parametrize("value", ["true", "false", "2024", "20.24"])
def test_a_value_without_quotes_is_refused_where_quotes_make_it_a_name(value: str) -> None:
    [problem] = problems(f"resourceGroup: {value}")

    assert problem.rule == "resource-group"
    blank = "2024" if value == "2024" else "<resource-group>"
    assert problem.fix.startswith(
        f"`.venv/bin/idstack pulumi -- config set --type string resourceGroup {blank}`, or write it in quotes in "
    )


@pytest.mark.parametrize("value", ["true", "2024", "20.24"])
def test_the_same_in_quotes_is_a_name(value: str) -> None:
    assert problems(f'resourceGroup: "{value}"') == []


def test_where_the_file_is_not_at_hand_the_words_of_booleans_are_booleans() -> None:
    [problem] = problems('resourceGroup: "true"', has_file=False)

    assert (problem.rule, problem.found) == ("resource-group", "true")
    assert "write it in quotes" in problem.fix
    assert problems('resourceGroup: "2024"', has_file=False) == []


@pytest.mark.parametrize("has_file", [True, False])
@pytest.mark.parametrize("value", ["true", '"true"', "2024"])
def test_no_region_is_called_as_a_boolean_or_number(value: str, has_file: bool) -> None:
    [problem] = [
        refusal for refusal in problems(f"location: {value}", has_file=has_file) if refusal.place == ("location",)
    ]

    assert problem.rule == "location"
    assert problem.fix.startswith("`.venv/bin/idstack pulumi -- config set location <region>`"), (
        "quotes make no region of it"
    )


@pytest.mark.parametrize(
    ("path", "value", "rule"),
    [
        ("hostedClusters__0__name", 2024, "cluster-name"),
        ("hostedClusters__0__name", True, "cluster-name"),
        ("tags__year", 2024, "tag-value"),
        ("managementCluster__resourceGroup", 2024, "resource-group"),
    ],
)
def test_in_a_structure_it_is_refused_with_the_quotes_that_it_needs(path: str, value: object, rule: str) -> None:
    config = with_change(configuration(hostedClusters=[hosted_cluster()]), path, value)
    found = {refusal.rule: refusal.fix for refusal in _refused(config, config)}

    assert found[rule].startswith("`.venv/bin/idstack pulumi -- config set --type string --path ")
    assert "or write it in quotes in the stack file" in found[rule]
    assert (f" {value}`" in found[rule]) == (value == 2024)


@given(st.integers() | st.booleans() | st.floats(allow_nan=False))
def test_no_value_of_another_type_becomes_a_name(value: object) -> None:
    config = configuration(resourceGroup=value)
    with pytest.raises(ConfigurationError):
        load_settings(as_pulumi_passes_it(config), secret_keys=(), local=None, written=config)


@pytest.mark.parametrize(
    ("text", "is_refused"),
    [
        ("a: 1\nb: 2\na: 1", True),
        ("a: [{b: 1, b: 1}]", True),
        ("{a: 1, 'a': 1}", True),
        ("a: 1\n---\na: 1", False),
        ("a: &a {x: 1, y: 1}\nb: &b {<<: *a, x: 2}\nc: {<<: *b, y: 3}", False),
        ("a: &a [*a, {b: *a}]", False),
    ],
)
def test_a_key_that_occurs_twice_in_one_mapping_is_refused_as_pulumi_does(text: str, is_refused: bool) -> None:
    with pytest.raises(yaml.YAMLError, match="occurs twice") if is_refused else nullcontext():
        require_unique_keys(text)
