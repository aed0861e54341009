"""Who may do what on kube-apiserver: the deployer and the kubelet have what they need, and nobody else has anything."""

from __future__ import annotations

import ssl

import httpx
import pytest

from tests.harness import LocalStack

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_NAMESPACE = "clusters-hc1"
_STORE = "secrets-store.csi.x-k8s.io"
_WRITE = ("create", "get", "list", "watch", "patch", "delete")

_DEPLOYER = {
    ("", "namespaces"): _WRITE,
    ("", "secrets"): _WRITE,
    ("", "configmaps"): _WRITE,
    ("apps", "deployments"): _WRITE,
    ("policy", "poddisruptionbudgets"): _WRITE,
    ("networking.k8s.io", "networkpolicies"): _WRITE,
    (_STORE, "secretproviderclasses"): _WRITE,
    ("infrastructure.cluster.x-k8s.io", "azureclusteridentities"): _WRITE,
    ("hypershift.openshift.io", "hostedclusters"): _WRITE,
    ("", "pods"): ("get", "list", "watch"),
    ("", "events"): ("get", "list", "watch"),
    ("apps", "replicasets"): ("get", "list", "watch"),
    ("", "persistentvolumeclaims"): ("get", "list", "watch"),
    (_STORE, "secretproviderclasspodstatuses"): ("get", "list", "watch"),
    ("hypershift.openshift.io", "hostedcontrolplanes"): ("get", "list", "watch"),
    ("apiextensions.k8s.io", "customresourcedefinitions"): ("get", "list", "watch"),
}
_KUBELET = {
    ("", "pods"): ("get", "list", "watch", "create", "delete"),
    ("", "pods/status"): ("patch",),
    ("", "nodes"): ("get", "create"),
    ("", "nodes/status"): ("patch",),
    ("", "secrets"): _WRITE,
    ("", "serviceaccounts/token"): ("create",),
    ("", "configmaps"): ("get", "list", "watch"),
    ("", "events"): ("create", "patch"),
    ("apps", "deployments"): ("get", "list", "watch", "patch"),
    ("apps", "deployments/status"): ("patch",),
    ("apps", "replicasets"): _WRITE,
    ("apps", "replicasets/status"): ("patch",),
    (_STORE, "secretproviderclasses"): ("get", "list", "watch"),
    (_STORE, "secretproviderclasspodstatuses"): ("create", "patch", "delete"),
}
_NOBODYS = {
    ("", "serviceaccounts"),
    ("", "pods/exec"),
    ("", "pods/log"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
}
_VERBS = (*_WRITE, "update", "deletecollection", "impersonate", "escalate", "bind")


def granted(http: httpx.Client, group: str, resource: str) -> set[str]:
    """The verbs that kube-apiserver's own authorizer grants on a resource, or on a subresource (`pods/status`)."""
    resource, _, subresource = resource.partition("/")
    place = {"namespace": _NAMESPACE, "group": group, "resource": resource, "subresource": subresource}

    def is_granted(verb: str) -> bool:
        attributes = {**place, "verb": verb}
        answer = http.post(_REVIEWS, json={"spec": {"resourceAttributes": attributes}})
        return bool(answer.raise_for_status().json()["status"]["allowed"])

    return {verb for verb in _VERBS if is_granted(verb)}


def test_the_deployer_may_do_what_the_stack_needs_and_nothing_else(deployer: httpx.Client) -> None:
    found = {resource: granted(deployer, *resource) for resource in {*_DEPLOYER, *_KUBELET, *_NOBODYS}}

    assert found == {resource: set(_DEPLOYER.get(resource, ())) for resource in found}


def test_the_kubelet_may_run_pods_and_nothing_else(kubelet: httpx.Client) -> None:
    found = {resource: granted(kubelet, *resource) for resource in {*_DEPLOYER, *_KUBELET, *_NOBODYS}}

    assert found == {resource: set(_KUBELET.get(resource, ())) for resource in found}


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
