"""The rendered fleet on a real API server: strict about every field, with the rights and the pods that it describes.

The operator itself runs in `tests/operator`, which compares the definition here with its own.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import yaml

from ops.fleet.reading import LONGEST_STACK_NAME
from ops.fleet.tree import tree
from tests.apiserver.installed import DEFINITIONS, PATH
from tests.unit.ops.fleet.world import build, document, fleet

_DEFINITION: Final = yaml.safe_load(
    (Path(__file__).parent / "definitions/stacks.pulumi.com.yaml").read_text(encoding="utf-8")
)
_FLEET: Final = "/namespaces/idstack-fleet"
_PATHS: Final = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": f"/api/v1{_FLEET}/serviceaccounts",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "NetworkPolicy": f"/apis/networking.k8s.io/v1{_FLEET}/networkpolicies",
    "Stack": f"/apis/pulumi.com/v1{_FLEET}/stacks",
}
_STRICT: Final = {"fieldValidation": "Strict"}
_ACCOUNT: Final = "system:serviceaccount:idstack-fleet:idstack-prod"


@pytest.fixture(scope="module")
def objects() -> list[dict[str, Any]]:
    """Everything that is rendered for an environment, drift previews among it."""
    changed = document()
    changed["environments"][1]["operator"]["drift"] = True
    return build(tree(fleet(changed)), "environments/prod")


@pytest.fixture(scope="module")
def applied(
    administrator: httpx.Client, objects: list[dict[str, Any]]
) -> Iterator[dict[tuple[str, str], httpx.Response]]:
    """The API server's answer for each object, after the definition of Stack."""
    administrator.post(DEFINITIONS, params=_STRICT, json=_DEFINITION).raise_for_status()
    name = _DEFINITION["metadata"]["name"]
    watch = {"watch": "true", "fieldSelector": f"metadata.name={name}", "timeoutSeconds": "60"}
    with administrator.stream("GET", DEFINITIONS, params=watch, timeout=90) as events:
        assert any(_established(line) for line in events.iter_lines())
    yield {
        (obj["kind"], obj["metadata"]["name"]): administrator.post(_PATHS[obj["kind"]], params=_STRICT, json=obj)
        for obj in objects
    }
    for obj in reversed(objects):
        administrator.delete(f"{_PATHS[obj['kind']]}/{obj['metadata']['name']}")
    administrator.delete(PATH.format(name))


def _established(line: str) -> bool:
    conditions = json.loads(line)["object"].get("status", {}).get("conditions") or []
    return any((condition["type"], condition["status"]) == ("Established", "True") for condition in conditions)


def test_every_object_is_taken_whole_under_strict_validation(
    applied: dict[tuple[str, str], httpx.Response], objects: list[dict[str, Any]]
) -> None:
    refused = {name: answer.text for name, answer in applied.items() if answer.status_code != 201}
    assert not refused
    stacks = [obj for obj in objects if obj["kind"] == "Stack"]
    assert len(stacks) == 12
    for obj in stacks:
        assert applied[obj["kind"], obj["metadata"]["name"]].json()["spec"] == obj["spec"]


def a_stack(objects: list[dict[str, Any]]) -> dict[str, Any]:
    """A copy of the first stack, to be changed."""
    return copy.deepcopy(next(obj for obj in objects if obj["kind"] == "Stack"))


@pytest.mark.parametrize("field", ["prerequisite", "workspaceTemplate.spec.podTemplate.spec.initContainer"])
def test_a_field_that_the_operator_does_not_have_is_refused(
    applied: dict[tuple[str, str], httpx.Response],
    objects: list[dict[str, Any]],
    administrator: httpx.Client,
    field: str,
) -> None:
    changed = a_stack(objects)
    changed["metadata"]["name"] = "wrong"
    *holders, last = field.split(".")
    holder = changed["spec"]
    for part in holders:
        holder = holder[part]
    holder[last] = []
    refused = administrator.post(_PATHS["Stack"], params=_STRICT, json=changed)

    assert refused.status_code == 400
    assert f'unknown field "spec.{field}"' in refused.json()["message"]


def test_the_longest_name_of_a_stack_leaves_room_for_that_of_its_preview(
    applied: dict[tuple[str, str], httpx.Response], objects: list[dict[str, Any]], administrator: httpx.Client
) -> None:
    stack = a_stack(objects)
    answers = []
    for length in (LONGEST_STACK_NAME, LONGEST_STACK_NAME + 1):
        stack["metadata"]["name"] = f"{'s' * length}-drift"
        answers.append(administrator.post(_PATHS["Stack"], params={"dryRun": "All", **_STRICT}, json=stack))

    assert [answer.status_code for answer in answers] == [201, 422]
    assert "no more than 42 characters" in answers[1].json()["message"]


@pytest.mark.parametrize(
    ("group", "resource", "verb", "is_allowed"),
    [
        ("authentication.k8s.io", "tokenreviews", "create", True),
        ("authorization.k8s.io", "subjectaccessreviews", "create", True),
        ("", "secrets", "list", False),
        ("", "pods", "create", False),
        ("", "serviceaccounts/token", "create", False),
        ("pulumi.com", "stacks", "patch", False),
        ("auto.pulumi.com", "workspaces", "get", False),
    ],
)
def test_a_workspace_may_ask_who_calls_it_and_nothing_else(
    applied: dict[tuple[str, str], httpx.Response],
    administrator: httpx.Client,
    group: str,
    resource: str,
    verb: str,
    is_allowed: bool,
) -> None:
    name, _, subresource = resource.partition("/")
    attributes = {"group": group, "resource": name, "subresource": subresource, "verb": verb}
    groups = ["system:serviceaccounts", "system:serviceaccounts:idstack-fleet", "system:authenticated"]
    review = administrator.post(
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        json={
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": _ACCOUNT,
                "groups": groups,
                "resourceAttributes": {**attributes, "namespace": "idstack-fleet"},
            },
        },
    )
    assert review.json()["status"]["allowed"] is is_allowed


def _pod(stack: dict[str, Any]) -> dict[str, Any]:
    """The workspace's pod as the operator makes it (workspace_controller.go, newStatefulSet), in what PSS reads."""
    workspace = stack["spec"]["workspaceTemplate"]["spec"]
    template = copy.deepcopy(workspace["podTemplate"]["spec"])
    restricted = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}
    [pulumi] = template["containers"]
    pulumi["securityContext"]["capabilities"]["add"] = ["NET_BIND_SERVICE"]
    bootstrap = {"name": "bootstrap", "image": "operator", "securityContext": restricted}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "workspace", "labels": workspace["podTemplate"]["metadata"]["labels"]},
        "spec": {
            "serviceAccountName": stack["spec"]["serviceAccountName"],
            "securityContext": {
                "seccompProfile": {"type": "RuntimeDefault"},
                "runAsNonRoot": True,
                "runAsUser": 1000,
                "runAsGroup": 1000,
            },
            "initContainers": [bootstrap, *template["initContainers"]],
            "containers": [{**pulumi, "image": workspace["image"], "resources": workspace["resources"]}],
            "volumes": [*template["volumes"], {"name": "share", "emptyDir": {}}],
        },
    }


def test_the_workspaces_pod_keeps_to_the_namespaces_restricted_standard(
    applied: dict[tuple[str, str], httpx.Response], objects: list[dict[str, Any]], administrator: httpx.Client
) -> None:
    path = f"/api/v1{_FLEET}/pods"
    pod = _pod(a_stack(objects))
    taken = administrator.post(path, params={"dryRun": "All", **_STRICT}, json=pod)
    assert taken.status_code == 201, taken.text

    pod["spec"]["initContainers"][1]["securityContext"]["allowPrivilegeEscalation"] = True
    refused = administrator.post(path, params={"dryRun": "All", **_STRICT}, json=pod)
    assert refused.status_code == 403
    assert 'violates PodSecurity "restricted:latest"' in refused.json()["message"]
