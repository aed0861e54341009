"""What the official Python client, typed and dynamic, asks of the API."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from kubernetes import client, dynamic, watch
from kubernetes.client.exceptions import ApiException

from tests.unit.localcloud.kubernetes_world import RunningApi, deployment, secret, write_kubeconfig

NAMESPACE = "default"
CLASS = {
    "apiVersion": "secrets-store.csi.x-k8s.io/v1",
    "kind": "SecretProviderClass",
    "metadata": {"name": "managed-azure-cpo"},
    "spec": {"provider": "azure", "parameters": {"usePodIdentity": "false"}},
}


@pytest.fixture
def core(official: client.ApiClient) -> client.CoreV1Api:
    return client.CoreV1Api(official)


@pytest.fixture
def apps(official: client.ApiClient) -> client.AppsV1Api:
    return client.AppsV1Api(official)


@pytest.fixture
def custom(official: client.ApiClient) -> client.CustomObjectsApi:
    return client.CustomObjectsApi(official)


def refusal(raised: pytest.ExceptionInfo[ApiException]) -> tuple[int, str, str]:
    status = json.loads(raised.value.body)
    assert status["kind"] == "Status"
    return status["code"], status["reason"], status["message"]


def test_a_created_object_gets_what_the_server_sets(apps: client.AppsV1Api) -> None:
    made = apps.create_namespaced_deployment(NAMESPACE, deployment())

    assert (made.metadata.namespace, made.metadata.generation) == (NAMESPACE, 1)
    assert made.metadata.uid
    assert made.metadata.creation_timestamp
    assert made.spec.replicas == 1, "defaults are filled in"
    assert apps.read_namespaced_deployment("web", NAMESPACE).metadata.resource_version == made.metadata.resource_version


def test_string_data_of_a_secret_becomes_data(core: client.CoreV1Api) -> None:
    core.create_namespaced_secret(NAMESPACE, secret(config="{}"))

    read = core.read_namespaced_secret("pull", NAMESPACE)

    assert read.data == {"config": base64.b64encode(b"{}").decode()}
    assert (read.string_data, read.type) == (None, "Opaque")


def test_an_existing_name_is_refused(core: client.CoreV1Api) -> None:
    core.create_namespaced_secret(NAMESPACE, secret())

    with pytest.raises(ApiException) as raised:
        core.create_namespaced_secret(NAMESPACE, secret())

    assert refusal(raised) == (409, "AlreadyExists", 'secrets "pull" already exists')


def test_a_missing_object_is_named(apps: client.AppsV1Api) -> None:
    with pytest.raises(ApiException) as raised:
        apps.read_namespaced_deployment("none", NAMESPACE)

    assert refusal(raised) == (404, "NotFound", 'deployments.apps "none" not found')


def test_an_object_needs_its_namespace(core: client.CoreV1Api) -> None:
    with pytest.raises(ApiException) as raised:
        core.create_namespaced_secret("nowhere", secret())

    assert refusal(raised) == (404, "NotFound", 'namespaces "nowhere" not found')


def test_an_update_of_a_stale_version_is_a_conflict(core: client.CoreV1Api) -> None:
    read = core.create_namespaced_config_map(NAMESPACE, {"metadata": {"name": "c"}, "data": {"a": "1"}})
    core.patch_namespaced_config_map("c", NAMESPACE, {"data": {"a": "2"}})

    with pytest.raises(ApiException) as raised:
        core.replace_namespaced_config_map("c", NAMESPACE, read)

    assert refusal(raised)[:2] == (409, "Conflict")
    assert core.read_namespaced_config_map("c", NAMESPACE).data == {"a": "2"}


def test_a_write_that_changes_nothing_keeps_the_version(core: client.CoreV1Api) -> None:
    made = core.create_namespaced_config_map(NAMESPACE, {"metadata": {"name": "c"}, "data": {"a": "1"}})

    patched = core.patch_namespaced_config_map("c", NAMESPACE, {"data": {"a": "1"}})

    assert patched.metadata.resource_version == made.metadata.resource_version


def test_only_a_change_of_the_spec_is_a_new_generation(apps: client.AppsV1Api) -> None:
    apps.create_namespaced_deployment(NAMESPACE, deployment())

    labelled = apps.patch_namespaced_deployment("web", NAMESPACE, {"metadata": {"labels": {"a": "b"}}})
    scaled = apps.patch_namespaced_deployment("web", NAMESPACE, {"spec": {"replicas": 2}})

    assert (labelled.metadata.generation, scaled.metadata.generation) == (1, 2)


def test_the_status_is_written_through_its_subresource_only(apps: client.AppsV1Api) -> None:
    apps.create_namespaced_deployment(NAMESPACE, {**deployment(), "status": {"readyReplicas": 7}})
    status = {"status": {"readyReplicas": 1, "replicas": 1}}

    ignored = apps.patch_namespaced_deployment("web", NAMESPACE, status)
    written = apps.patch_namespaced_deployment_status("web", NAMESPACE, {**status, "spec": {"replicas": 9}})

    assert ignored.status.ready_replicas is None
    assert (written.status.ready_replicas, written.spec.replicas, written.metadata.generation) == (1, 1, 1)


def test_a_dry_run_answers_and_writes_nothing(core: client.CoreV1Api) -> None:
    answered = core.create_namespaced_secret(NAMESPACE, secret(a="b"), dry_run="All")

    assert answered.data == {"a": "Yg=="}
    assert core.list_namespaced_secret(NAMESPACE).items == []


def test_lists_are_narrowed_by_label_and_name(core: client.CoreV1Api) -> None:
    for name, tier in (("a", "front"), ("b", "back"), ("c", "back")):
        core.create_namespaced_config_map(NAMESPACE, {"metadata": {"name": name, "labels": {"tier": tier}}})

    by_label = core.list_config_map_for_all_namespaces(label_selector="tier in (back),tier!=front")
    by_name = core.list_namespaced_config_map(NAMESPACE, field_selector="metadata.name=a")

    assert [item.metadata.name for item in by_label.items] == ["b", "c"]
    assert [item.metadata.name for item in by_name.items] == ["a"]


def test_an_unknown_field_selector_is_refused(core: client.CoreV1Api) -> None:
    with pytest.raises(ApiException) as raised:
        core.list_namespaced_config_map(NAMESPACE, field_selector="spec.nodeName=x")

    assert refusal(raised)[0] == 400


def test_a_deleted_namespace_takes_its_objects_along(core: client.CoreV1Api, custom: client.CustomObjectsApi) -> None:
    core.create_namespace({"metadata": {"name": "clusters-hc1"}})
    core.create_namespaced_secret("clusters-hc1", secret())
    core.create_namespaced_secret(NAMESPACE, secret("stays"))

    core.delete_namespace("clusters-hc1")

    assert [item.metadata.name for item in core.list_secret_for_all_namespaces().items] == ["stays"]


def test_a_deleted_owner_takes_what_it_owns_along(core: client.CoreV1Api, apps: client.AppsV1Api) -> None:
    owner = apps.create_namespaced_deployment(NAMESPACE, deployment())
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": owner.metadata.uid}
    core.create_namespaced_config_map(NAMESPACE, {"metadata": {"name": "owned", "ownerReferences": [reference]}})

    apps.delete_namespaced_deployment("web", NAMESPACE)

    assert core.list_namespaced_config_map(NAMESPACE).items == []


def test_a_strategic_patch_merges_containers_by_name(apps: client.AppsV1Api) -> None:
    apps.create_namespaced_deployment(NAMESPACE, deployment())
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "c:2"}]}}}}

    patched = apps.patch_namespaced_deployment("web", NAMESPACE, patch)

    container = patched.spec.template.spec.containers[0]
    assert (container.image, container.command) == ("c:2", ["sleep", "600"])


def test_immutable_fields_stay(core: client.CoreV1Api, apps: client.AppsV1Api) -> None:
    core.create_namespaced_secret(NAMESPACE, secret())
    apps.create_namespaced_deployment(NAMESPACE, deployment())

    with pytest.raises(ApiException) as secret_refused:
        core.patch_namespaced_secret("pull", NAMESPACE, {"type": "other"})
    with pytest.raises(ApiException) as selector_refused:
        apps.patch_namespaced_deployment("web", NAMESPACE, {"spec": {"selector": {"matchLabels": {"a": "b"}}}})

    assert refusal(secret_refused) == (
        422,
        "Invalid",
        'Secret "pull" is invalid: type: Invalid value: "other": field is immutable',
    )
    assert "spec.selector" in refusal(selector_refused)[2]


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
def test_an_invalid_secret_is_refused_by_field(official: client.ApiClient, document: Any, problem: str) -> None:
    with pytest.raises(ApiException) as raised:
        client.CoreV1Api(official).create_namespaced_secret(NAMESPACE, document)

    code, reason, message = refusal(raised)
    assert (code, reason) == (422, "Invalid")
    assert problem in message


def test_unknown_fields_are_dropped_or_refused(apps: client.AppsV1Api) -> None:
    misspelt = deployment(container={"imag": "x"})

    dropped = apps.create_namespaced_deployment(NAMESPACE, misspelt, dry_run="All")
    with pytest.raises(ApiException) as raised:
        apps.create_namespaced_deployment(NAMESPACE, misspelt, field_validation="Strict")

    assert dropped.spec.template.spec.containers[0].image == "registry.example.com/c:1"
    assert refusal(raised)[:2] == (400, "BadRequest")
    assert 'strict decoding error: unknown field "spec.template.spec.containers[0].imag"' in refusal(raised)[2]


def test_parameters_of_a_secret_provider_class_are_text(custom: client.CustomObjectsApi) -> None:
    place = ("secrets-store.csi.x-k8s.io", "v1", NAMESPACE, "secretproviderclasses")
    unquoted = {**CLASS, "spec": {"provider": "azure", "parameters": {"usePodIdentity": False}}}

    with pytest.raises(ApiException) as raised:
        custom.create_namespaced_custom_object(*place, unquoted)
    made = custom.create_namespaced_custom_object(*place, CLASS)

    assert "spec.parameters.usePodIdentity must be of type string" in refusal(raised)[2]
    assert made["spec"]["parameters"] == {"usePodIdentity": "false"}


def test_the_dynamic_client_finds_custom_kinds(official: client.ApiClient) -> None:
    found = dynamic.DynamicClient(official).resources.get(
        api_version="infrastructure.cluster.x-k8s.io/v1beta1", kind="AzureClusterIdentity"
    )
    spec = {"type": "UserAssignedIdentityCredential", "tenantID": "t"}

    made = found.create(body={"metadata": {"name": "hc1"}, "spec": spec}, namespace=NAMESPACE)

    assert (made.spec.tenantID, made.metadata.generation) == ("t", 1)


def test_a_watch_tells_of_every_change_since_a_version(core: client.CoreV1Api) -> None:
    version = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version
    core.create_namespaced_config_map(NAMESPACE, {"metadata": {"name": "c"}})
    core.patch_namespaced_config_map("c", NAMESPACE, {"data": {"a": "1"}})
    core.delete_namespaced_config_map("c", NAMESPACE)

    events = watch.Watch().stream(
        core.list_namespaced_config_map, NAMESPACE, resource_version=version, timeout_seconds=1
    )

    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]


def test_an_object_that_leaves_a_selector_is_deleted_from_its_watch(core: client.CoreV1Api) -> None:
    core.create_namespaced_config_map(NAMESPACE, {"metadata": {"name": "c", "labels": {"tier": "a"}}})
    version = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version
    core.patch_namespaced_config_map("c", NAMESPACE, {"metadata": {"labels": {"tier": "b"}}})

    events = watch.Watch().stream(
        core.list_namespaced_config_map,
        NAMESPACE,
        label_selector="tier=a",
        resource_version=version,
        timeout_seconds=1,
    )

    assert [event["type"] for event in events] == ["DELETED"]


def test_another_token_is_refused(api: RunningApi) -> None:
    from kubernetes import config

    kubeconfig = write_kubeconfig(api.kubeconfig.with_name("other"), api.server, api.ca_file, token="another")
    with config.new_client_from_config(str(kubeconfig)) as stranger, pytest.raises(ApiException) as raised:
        client.CoreV1Api(stranger).list_namespace()

    assert refusal(raised) == (401, "Unauthorized", "Unauthorized")
