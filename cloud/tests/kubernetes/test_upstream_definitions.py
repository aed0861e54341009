"""The local definitions beside those that a cluster gets: HyperShift's and the Secrets Store CSI driver's."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import pytest

from localcloud.kubernetes.kinds import Definition, definitions, version
from localcloud.testing.upstream_definitions import FEATURE_SETS, schema_of, upstream
from tests.coverage.tables import code, table

# What fields mean and how they are called decides about no object.
_WORDS: Final = "description"
_ANYTHING: Final = "x-kubernetes-preserve-unknown-fields: true"
_KNOWN: Final = "is known"

Rule = tuple[str, str]
# Where the definitions differ: what happens locally, how many of the real rules are left out, how many are added.
Difference = tuple[str, int, int]


def local(plural: str) -> Definition:
    return next(definition for definition in definitions() if definition["spec"]["names"]["plural"] == plural)


def rules(schema: Any, path: str = "") -> Iterator[Rule]:
    """Each rule of a schema, with the path of what it is about; the order of a list of names means nothing."""
    for name, value in schema.items():
        if name == "properties":
            for key, subschema in value.items():
                yield f"{path}.{key}", _KNOWN
                yield from rules(subschema, f"{path}.{key}")
        elif name in ("items", "additionalProperties") and isinstance(value, dict):
            yield from rules(value, f"{path}[]")
        elif name == "x-kubernetes-validations":
            yield from ((path, f"CEL: {' '.join(validation['rule'].split())}") for validation in value)
        elif name != _WORDS:
            known = sorted(value) if name in ("required", "enum") else value
            yield path, f"{name}: {json.dumps(known, sort_keys=True)}"


def differences(mine: set[Rule], theirs: set[Rule]) -> dict[str, Difference]:
    """By the uppermost field at which the definitions part: one takes anything, one does not know it, rules differ."""
    parted = {path: "anything is taken" for path, rule in mine - theirs if rule == _ANYTHING}
    known, really_known = ({path for path, rule in side if rule == _KNOWN} for side in (mine, theirs))
    for path in sorted((known ^ really_known) - parted.keys(), key=len):
        if not _is_below(path, parted):
            parted[path] = "is unknown" if path in really_known else "is known"
    lacks = Counter(path for path, _ in theirs - mine if not _is_below(path, parted))
    adds = Counter(path for path, _ in mine - theirs if not _is_below(path, parted))
    differing = {path: ("differs", lacks[path], adds[path]) for path in lacks.keys() | adds.keys()}
    return {path: (how, 0, 0) for path, how in parted.items()} | differing


def _is_below(path: str, parted: dict[str, str]) -> bool:
    return any(path == upper or path.startswith((f"{upper}.", f"{upper}[")) for upper in parted)


def served(plural: str, feature_set: str = FEATURE_SETS[0]) -> tuple[set[Rule], set[Rule]]:
    """The rules of the one local version, and those of the real one."""
    mine = version(local(plural))
    theirs = schema_of(upstream(plural, feature_set), mine["name"])
    return set(rules(mine["schema"]["openAPIV3Schema"])), set(rules(theirs))


@pytest.mark.parametrize(
    "plural", ["azureclusteridentities", "secretproviderclasses", "secretproviderclasspodstatuses"]
)
def test_a_local_definition_is_as_strict_as_the_real_one(plural: str) -> None:
    local_rules, real_rules = served(plural)

    assert local_rules == real_rules


@pytest.mark.parametrize("plural", [definition["spec"]["names"]["plural"] for definition in definitions()])
def test_a_local_definition_is_called_and_served_as_the_real_one(plural: str) -> None:
    mine, real = local(plural), upstream(plural)
    theirs = next(
        real_version for real_version in real["spec"]["versions"] if real_version["name"] == version(mine)["name"]
    )

    assert version(mine).get("subresources") == theirs.get("subresources")
    assert (theirs["served"], theirs["storage"]) == (True, True)
    assert {mine["spec"][part] for part in ("group", "scope")} == {real["spec"][part] for part in ("group", "scope")}
    assert mine["spec"]["names"] == real["spec"]["names"]


@pytest.mark.parametrize("feature_set", FEATURE_SETS)
def test_a_hosted_cluster_has_the_real_rules_but_for_what_the_table_says(feature_set: str) -> None:
    tabled = {
        code(row["field"]): (row["locally"], int(row["lacks"]), int(row["adds"]))
        for row in table("#### The definition of a HostedCluster")
        if row["feature sets"] in ("all", "others than Default" if feature_set != FEATURE_SETS[0] else "Default")
    }

    assert differences(*served("hostedclusters", feature_set)) == tabled


def test_a_rule_that_differs_is_found() -> None:
    schema = {"type": "object", "required": ["b", "a"], "properties": {"a": {"type": "string", "maxLength": 3}}}

    assert set(rules(schema)) == {
        ("", 'type: "object"'),
        ("", 'required: ["a", "b"]'),
        (".a", _KNOWN),
        (".a", 'type: "string"'),
        (".a", "maxLength: 3"),
    }


@pytest.mark.parametrize(
    ("mine", "difference"),
    [
        ({"properties": {"a": {"type": "string"}}}, {".a": ("differs", 1, 0)}),
        ({"properties": {"a": {"type": "string", "maxLength": 4}}}, {".a": ("differs", 1, 1)}),
        ({"properties": {}}, {".a": ("is unknown", 0, 0)}),
        ({"properties": {"a": {"x-kubernetes-preserve-unknown-fields": True}}}, {".a": ("anything is taken", 0, 0)}),
        ({"properties": {"a": {"type": "string", "maxLength": 3}, "b": {}}}, {".b": ("is known", 0, 0)}),
        ({"required": ["a"], "properties": {"a": {"type": "string", "maxLength": 3}}}, {"": ("differs", 0, 1)}),
    ],
    ids=["fewer rules", "another rule", "unknown", "anything", "known", "more rules"],
)
def test_a_difference_is_seen_in_both_directions(mine: Any, difference: dict[str, Difference]) -> None:
    real = {"properties": {"a": {"type": "string", "maxLength": 3}}}

    assert differences(set(rules(mine)), set(rules(real))) == difference
