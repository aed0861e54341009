"""Who may do what on kube-apiserver: the deployer and the kubelet have what they need, and nobody else has anything."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.harness import LocalStack

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_NAMESPACE = "clusters-hc1"
_RIGHTS: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("rights.yaml").read_text(encoding="utf-8"))
_RESOURCES = {resource for user in ("deployer", "kubelet", "nobody") for resource in _RIGHTS[user]}
_VERBS = (*_RIGHTS["write"], "update", "deletecollection", "impersonate", "escalate", "bind")


def granted(http: httpx.Client, named: str) -> set[str]:
    """The verbs that kube-apiserver's own authorizer grants on a resource, or on a subresource, as kubectl names it."""
    named, _, subresource = named.partition("/")
    resource, _, group = named.partition(".")
    place = {"namespace": _NAMESPACE, "group": group, "resource": resource, "subresource": subresource}

    def is_granted(verb: str) -> bool:
        attributes = {**place, "verb": verb}
        answer = http.post(_REVIEWS, json={"spec": {"resourceAttributes": attributes}})
        return bool(answer.raise_for_status().json()["status"]["allowed"])

    return {verb for verb in _VERBS if is_granted(verb)}


@pytest.mark.parametrize("user", ["deployer", "kubelet"])
def test_a_user_may_do_what_its_work_needs_and_nothing_else(stack: LocalStack, user: str) -> None:
    with stack.kubernetes(user) as http:
        found = {resource: granted(http, resource) for resource in _RESOURCES}

    assert found == {resource: set(_RIGHTS[user].get(resource, ())) for resource in found}


def test_a_refusal_names_user_verb_and_resource(kubelet: httpx.Client) -> None:
    refused = kubelet.delete(f"/apis/apps/v1/namespaces/{_NAMESPACE}/deployments/probe-cpo")

    assert refused.status_code == 403
    assert refused.json()["message"] == (
        'deployments.apps "probe-cpo" is forbidden: User "kubelet" cannot delete resource "deployments" '
        'in API group "apps" in the namespace "clusters-hc1"'
    )


@pytest.mark.parametrize("token", [None, "not-a-token"])
def test_who_does_not_sign_in_reads_health_only(stack: LocalStack, token: str | None) -> None:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    trusting = ssl.create_default_context(cafile=stack.environment.ca_file)
    with httpx.Client(base_url=stack.environment.kubernetes_endpoint, verify=trusting, headers=headers) as http:
        assert http.get("/api/v1/namespaces").status_code == 401
        assert http.get("/apis").status_code == 401
        assert http.get("/readyz").status_code == (401 if token else 200)
