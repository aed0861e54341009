"""What the official Python client asks of the API, and that its models take every answer."""

from __future__ import annotations

import base64
from itertools import islice

import pytest
from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException

from localcloud.testing.kubernetes import (
    RunningApi,
    config_map,
    deployment,
    model,
    present,
    refusal,
    secret,
    write_kubeconfig,
)

NAMESPACE = "default"
WEB = model(client.V1Deployment, deployment())


@pytest.fixture
def core(official: client.ApiClient) -> client.CoreV1Api:
    return client.CoreV1Api(official)


@pytest.fixture
def apps(official: client.ApiClient) -> client.AppsV1Api:
    return client.AppsV1Api(official)


def a_secret(name: str = "pull", **data: str) -> client.V1Secret:
    return model(client.V1Secret, secret(name, **data))


def a_config_map(name: str, data: dict[str, str] | None = None, **metadata: object) -> client.V1ConfigMap:
    return model(client.V1ConfigMap, config_map(name, data, **metadata))


def version(metadata: client.V1ObjectMeta | client.V1ListMeta | None) -> str:
    assert metadata is not None
    return present(metadata.resource_version)


def names(listed: client.V1ConfigMapList | client.V1SecretList) -> list[str]:
    return [present(present(item.metadata).name) for item in listed.items]


def test_a_created_object_gets_what_the_server_sets(apps: client.AppsV1Api) -> None:
    made = apps.create_namespaced_deployment(NAMESPACE, WEB)

    metadata = present(made.metadata)
    assert (metadata.namespace, metadata.generation) == (NAMESPACE, 1)
    assert metadata.uid
    assert metadata.creation_timestamp
    assert present(made.spec).replicas == 1, "defaults are filled in"
    assert version(apps.read_namespaced_deployment("web", NAMESPACE).metadata) == version(made.metadata)


def test_string_data_of_a_secret_becomes_data(core: client.CoreV1Api) -> None:
    core.create_namespaced_secret(NAMESPACE, a_secret(config="{}"))

    read = core.read_namespaced_secret("pull", NAMESPACE)

    assert read.data == {"config": base64.b64encode(b"{}").decode()}
    assert (read.string_data, read.type) == (None, "Opaque")


def test_what_is_there_already_or_not_is_named(core: client.CoreV1Api, apps: client.AppsV1Api) -> None:
    core.create_namespaced_secret(NAMESPACE, a_secret())

    with pytest.raises(ApiException) as existing:
        core.create_namespaced_secret(NAMESPACE, a_secret())
    with pytest.raises(ApiException) as missing:
        apps.read_namespaced_deployment("none", NAMESPACE)
    with pytest.raises(ApiException) as elsewhere:
        core.create_namespaced_secret("nowhere", a_secret())

    assert refusal(existing) == (409, "AlreadyExists", 'secrets "pull" already exists')
    assert refusal(missing) == (404, "NotFound", 'deployments.apps "none" not found')
    assert refusal(elsewhere) == (404, "NotFound", 'namespaces "nowhere" not found')


def test_an_update_of_a_stale_version_is_a_conflict(core: client.CoreV1Api) -> None:
    read = core.create_namespaced_config_map(NAMESPACE, a_config_map("c", {"a": "1"}))
    core.patch_namespaced_config_map("c", NAMESPACE, {"data": {"a": "2"}})

    with pytest.raises(ApiException) as raised:
        core.replace_namespaced_config_map("c", NAMESPACE, read)

    assert refusal(raised)[:2] == (409, "Conflict")
    assert core.read_namespaced_config_map("c", NAMESPACE).data == {"a": "2"}


def test_a_write_that_changes_nothing_keeps_the_version(core: client.CoreV1Api) -> None:
    made = core.create_namespaced_config_map(NAMESPACE, a_config_map("c", {"a": "1"}))

    patched = core.patch_namespaced_config_map("c", NAMESPACE, {"data": {"a": "1"}})

    assert version(patched.metadata) == version(made.metadata)


def test_only_a_change_of_the_spec_is_a_new_generation(apps: client.AppsV1Api) -> None:
    apps.create_namespaced_deployment(NAMESPACE, WEB)

    labelled = apps.patch_namespaced_deployment("web", NAMESPACE, {"metadata": {"labels": {"a": "b"}}})
    scaled = apps.patch_namespaced_deployment("web", NAMESPACE, {"spec": {"replicas": 2}})

    assert present(labelled.metadata).generation == 1
    assert present(scaled.metadata).generation == 2


def test_the_status_is_written_through_its_subresource_only(apps: client.AppsV1Api) -> None:
    with_status = model(client.V1Deployment, {**deployment(), "status": {"readyReplicas": 7}})
    status = {"status": {"readyReplicas": 1, "replicas": 1}}

    apps.create_namespaced_deployment(NAMESPACE, with_status)
    ignored = apps.patch_namespaced_deployment("web", NAMESPACE, status)
    written = apps.patch_namespaced_deployment_status("web", NAMESPACE, {**status, "spec": {"replicas": 9}})

    assert present(ignored.status).ready_replicas is None
    assert present(written.status).ready_replicas == 1
    assert (present(written.spec).replicas, present(written.metadata).generation) == (1, 1)


def test_a_dry_run_answers_and_writes_nothing(core: client.CoreV1Api) -> None:
    answered = core.create_namespaced_secret(NAMESPACE, a_secret(a="b"), dry_run="All")

    assert answered.data == {"a": "Yg=="}
    assert core.list_namespaced_secret(NAMESPACE).items == []


def test_lists_are_narrowed_by_label_and_name(core: client.CoreV1Api) -> None:
    for name, tier in (("a", "front"), ("b", "back"), ("c", "back")):
        core.create_namespaced_config_map(NAMESPACE, a_config_map(name, labels={"tier": tier}))

    by_label = core.list_config_map_for_all_namespaces(label_selector="tier in (back),tier!=front")
    by_name = core.list_namespaced_config_map(NAMESPACE, field_selector="metadata.name=a")

    assert names(by_label) == ["b", "c"]
    assert names(by_name) == ["a"]


def test_deleting_a_namespace_deletes_its_objects(core: client.CoreV1Api) -> None:
    core.create_namespace(model(client.V1Namespace, {"metadata": {"name": "clusters-hc1"}}))
    core.create_namespaced_secret("clusters-hc1", a_secret())
    core.create_namespaced_secret(NAMESPACE, a_secret("stays"))

    core.delete_namespace("clusters-hc1")

    assert names(core.list_secret_for_all_namespaces()) == ["stays"]


def test_deleting_an_owner_deletes_its_dependents(core: client.CoreV1Api, apps: client.AppsV1Api) -> None:
    uid = present(apps.create_namespaced_deployment(NAMESPACE, WEB).metadata).uid
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": uid}
    core.create_namespaced_config_map(NAMESPACE, a_config_map("owned", ownerReferences=[owner]))

    apps.delete_namespaced_deployment("web", NAMESPACE)

    assert core.list_namespaced_config_map(NAMESPACE).items == []


def test_a_strategic_patch_merges_containers_by_name(apps: client.AppsV1Api) -> None:
    apps.create_namespaced_deployment(NAMESPACE, WEB)
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "c:2"}]}}}}

    patched = apps.patch_namespaced_deployment("web", NAMESPACE, patch)

    (container,) = present(present(patched.spec).template.spec).containers
    assert (container.image, container.command) == ("c:2", ["sleep", "600"])


def test_immutable_fields_stay(core: client.CoreV1Api, apps: client.AppsV1Api) -> None:
    core.create_namespaced_secret(NAMESPACE, a_secret())
    apps.create_namespaced_deployment(NAMESPACE, WEB)

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


def test_a_watch_reports_every_change_since_a_version(core: client.CoreV1Api) -> None:
    since = version(core.list_namespaced_config_map(NAMESPACE).metadata)
    core.create_namespaced_config_map(NAMESPACE, a_config_map("c"))
    core.patch_namespaced_config_map("c", NAMESPACE, {"data": {"a": "1"}})
    core.delete_namespaced_config_map("c", NAMESPACE)

    events = watch.Watch().stream(
        core.list_namespaced_config_map, NAMESPACE, resource_version=since, timeout_seconds=10
    )

    assert [event["type"] for event in islice(events, 3)] == ["ADDED", "MODIFIED", "DELETED"]


def test_an_object_that_leaves_a_selector_is_deleted_from_its_watch(core: client.CoreV1Api) -> None:
    core.create_namespaced_config_map(NAMESPACE, a_config_map("c", labels={"tier": "a"}))
    since = version(core.list_namespaced_config_map(NAMESPACE).metadata)
    for tier in ("b", "c", "a"):
        core.patch_namespaced_config_map("c", NAMESPACE, {"metadata": {"labels": {"tier": tier}}})

    events = watch.Watch().stream(
        core.list_namespaced_config_map, NAMESPACE, label_selector="tier=a", resource_version=since, timeout_seconds=10
    )

    assert [event["type"] for event in islice(events, 2)] == ["DELETED", "ADDED"]


def test_a_watch_ends_in_the_time_it_was_given(core: client.CoreV1Api) -> None:
    events = watch.Watch().stream(core.list_namespaced_config_map, NAMESPACE, timeout_seconds=1)

    assert list(events) == []


def test_another_token_is_refused(api: RunningApi) -> None:
    kubeconfig = write_kubeconfig(api.kubeconfig.with_name("other"), api.server, api.ca_file, token="another")

    with config.new_client_from_config(str(kubeconfig)) as stranger, pytest.raises(ApiException) as raised:
        client.CoreV1Api(stranger).list_namespace()

    assert refusal(raised) == (401, "Unauthorized", "Unauthorized")
