"""The API's errors for documents that the official client's models refuse to build."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes import dynamic
from kubernetes.dynamic.exceptions import DynamicApiError

from localcloud.testing.kubernetes import deployment, refusal

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
