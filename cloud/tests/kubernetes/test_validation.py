"""The API's errors for documents that are not valid, and the definitions, which have the upstream ones' rules."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import pytest
from kubernetes import dynamic
from kubernetes.dynamic.exceptions import DynamicApiError

from localcloud.kubernetes import schemas, write_schemas
from localcloud.kubernetes.kinds import KINDS, Definition, definitions, version
from localcloud.kubernetes.schemas import components
from localcloud.testing.hosted_clusters import (
    ABSENT,
    INVALID_CHANGES,
    UNKNOWN_FIELDS,
    VALID_CHANGES,
    InvalidChange,
    changed,
    hosted_cluster,
)
from localcloud.testing.kubernetes import deployment, refusal
from localcloud.testing.upstream_definitions import FEATURE_SETS, schema_of, upstream
from tests.coverage.tables import code, table

# The schemas in the repository are those of the installed client.


def test_the_written_schemas_are_the_installed_clients() -> None:
    written = json.loads(write_schemas.FILE.read_text(encoding="utf-8"))

    assert written == write_schemas.schemas(), "run: python -m localcloud.kubernetes.write_schemas"


def test_every_kind_has_a_schema() -> None:
    assert {kind.kind for kind in KINDS} <= set(components())


# The built-in API takes and refuses HostedClusters as kube-apiserver does, but for the rules in CEL.

_KIND = next(kind for kind in KINDS if kind.kind == "HostedCluster")
_WITHOUT_CEL = [bad for bad in INVALID_CHANGES if not bad.is_cel]


def refusals(document: dict[str, Any]) -> list[str]:
    _, findings = schemas.check(_KIND, document)
    return [f"{cause.field}: {cause.message}" for cause in findings.causes]


def test_every_definition_serves_one_version() -> None:
    for definition in definitions():
        names = definition["spec"]["names"]
        assert definition["metadata"]["name"] == f"{names['plural']}.{definition['spec']['group']}"
        assert [(version["served"], version["storage"]) for version in definition["spec"]["versions"]] == [(True, True)]


@pytest.mark.parametrize(("path", "value"), VALID_CHANGES, ids=[path for path, _ in VALID_CHANGES])
def test_a_good_document_is_taken(path: str, value: Any) -> None:
    assert refusals(changed(hosted_cluster(), path, value)) == []


@pytest.mark.parametrize("bad", _WITHOUT_CEL, ids=lambda bad: bad.name)
def test_a_bad_document_is_refused_in_the_api_servers_words(bad: InvalidChange) -> None:
    assert bad.refusal in refusals(changed(hosted_cluster(), bad.path, bad.value))


@pytest.mark.parametrize("field", UNKNOWN_FIELDS)
def test_an_unknown_field_is_found(field: str) -> None:
    _, findings = schemas.check(_KIND, changed(hosted_cluster(), field, "x"))

    assert findings.unknown == [field]


def test_defaults_are_filled_in() -> None:
    group = "spec.platform.azure.resourceGroup"

    taken, findings = schemas.check(_KIND, changed(hosted_cluster(), group, ABSENT))

    assert findings.causes == []
    assert taken["spec"]["platform"]["azure"]["resourceGroup"] == "default"


NAMESPACE = "default"


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({"metadata": {"name": "Upper"}}, "metadata.name"),
        ({"metadata": {"name": "s"}, "data": {"a": "%%"}}, "data[a]"),
        ({"metadata": {"name": "s"}, "data": {"a b": ""}}, "data[a b]"),
        ({"metadata": {"name": "s"}, "data": {"a": 1}}, "data.a must be of type string"),
        ({"metadata": {"name": "s", "labels": {"a": True}}}, "metadata.labels.a must be of type string"),
    ],
)
def test_an_invalid_secret_is_refused_by_field(
    untyped: dynamic.DynamicClient, document: dict[str, Any], problem: str
) -> None:
    secrets = untyped.resources.get(api_version="v1", kind="Secret")

    with pytest.raises(DynamicApiError) as raised:
        secrets.create(document, NAMESPACE)

    code, reason, message = refusal(raised)
    assert (code, reason) == (422, "Invalid")
    assert problem in message


def test_unknown_fields_are_dropped_or_refused(untyped: dynamic.DynamicClient) -> None:
    deployments = untyped.resources.get(api_version="apps/v1", kind="Deployment")
    misspelt = deployment(container={"imag": "x"})

    dropped = deployments.create(misspelt, NAMESPACE, dry_run="All")
    with pytest.raises(DynamicApiError) as raised:
        deployments.create(misspelt, NAMESPACE, query_params=[("fieldValidation", "Strict")])

    (container,) = dropped.to_dict()["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example.com/c:1"
    assert "imag" not in container
    assert refusal(raised)[:2] == (400, "BadRequest")
    assert 'strict decoding error: unknown field "spec.template.spec.containers[0].imag"' in refusal(raised)[2]


def test_parameters_of_a_secret_provider_class_are_strings(untyped: dynamic.DynamicClient) -> None:
    classes = untyped.resources.get(api_version="secrets-store.csi.x-k8s.io/v1", kind="SecretProviderClass")

    def provider_class(use_pod_identity: object) -> dict[str, Any]:
        spec = {"provider": "azure", "parameters": {"usePodIdentity": use_pod_identity}}
        return {"metadata": {"name": "a-class"}, "spec": spec}

    with pytest.raises(DynamicApiError) as raised:
        classes.create(provider_class(False), NAMESPACE)
    made = classes.create(provider_class("false"), NAMESPACE)

    assert "spec.parameters.usePodIdentity must be of type string" in refusal(raised)[2]
    assert made.to_dict()["spec"]["parameters"] == {"usePodIdentity": "false"}


def test_discovery_leads_to_custom_kinds(untyped: dynamic.DynamicClient) -> None:
    identities = untyped.resources.get(
        api_version="infrastructure.cluster.x-k8s.io/v1beta1", kind="AzureClusterIdentity"
    )
    spec = {"type": "UserAssignedIdentityCredential", "tenantID": "t", "clientID": ""}

    made = identities.create({"metadata": {"name": "hc1"}, "spec": spec}, NAMESPACE)

    assert (made.spec.tenantID, made.metadata.generation) == ("t", 1)


def test_a_disruption_budget_has_one_of_its_two_limits(untyped: dynamic.DynamicClient) -> None:
    budgets = untyped.resources.get(api_version="policy/v1", kind="PodDisruptionBudget")

    def budget(**spec: Any) -> dict[str, Any]:
        return {"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, **spec}}

    kept = budgets.create(budget(maxUnavailable=1), NAMESPACE, dry_run="All")
    with pytest.raises(DynamicApiError) as raised:
        budgets.create(budget(maxUnavailable=1, minAvailable="50%"), NAMESPACE)

    assert kept.to_dict()["spec"] == {"selector": {"matchLabels": {"a": "b"}}, "maxUnavailable": 1}
    assert "minAvailable and maxUnavailable cannot be both set" in refusal(raised)[2]


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
