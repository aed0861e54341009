"""The API's errors for documents that the official client's models refuse to build."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kubernetes import dynamic
from kubernetes.dynamic.exceptions import DynamicApiError

from localcloud.kubernetes import schemas, write_schemas
from localcloud.kubernetes.kinds import KINDS, definitions
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
