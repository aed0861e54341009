"""The rules of the four patches, where the official client does not reach."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localcloud.core.store import Store
from localcloud.kubernetes import patches
from localcloud.kubernetes.errors import StatusError
from localcloud.kubernetes.kinds import BY_PLURAL
from localcloud.kubernetes.objects import Objects
from localcloud.testing.kubernetes import RunningApi, client_of, config_map, deployment, secret

# What lies in the store, and what a second server over the same store serves.

SECRETS = BY_PLURAL["", "v1", "secrets"]
MARKER = "marker-2f7c90"


def test_secret_values_are_stored_sealed(kubernetes_store: Store, tmp_path: Path) -> None:
    objects = Objects(kubernetes_store)

    objects.create(SECRETS, "default", secret(key=MARKER))

    written = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert MARKER.encode() not in written
    assert base64.b64encode(MARKER.encode()) not in written
    assert objects.get(SECRETS, "default", "pull")["data"]["key"] == base64.b64encode(MARKER.encode()).decode()


def test_a_restart_keeps_objects_and_versions(kubernetes_store: Store) -> None:
    before = Objects(kubernetes_store)
    made = before.create(SECRETS, "default", secret(key="v")).document

    after = Objects(kubernetes_store)

    assert after.get(SECRETS, "default", "pull") == made
    assert after.version == before.version


# Server-side apply: what is applied no more goes, unless somebody else applies it.

_MAPS = "/api/v1/namespaces/default/configmaps"
_APPS = "/apis/apps/v1/namespaces/default/deployments"

keys = st.sampled_from(("a", "b", "c"))
documents = st.dictionaries(keys, st.recursive(st.integers(), lambda inner: st.dictionaries(keys, inner), max_leaves=6))


def send(api: RunningApi, path: str, document: Any, **query: str) -> httpx.Response:
    """Apply a document, by the manager `mine` unless another one is named."""
    with client_of(api.kubeconfig) as http:
        headers = {"Content-Type": "application/apply-patch+yaml"}
        parameters = {"fieldManager": "mine", **query}
        return http.patch(path, json=document, params=parameters, headers=headers)


def data(api: RunningApi, document: Any, **query: str) -> dict[str, str]:
    """The data of the ConfigMap after the document was applied."""
    found: dict[str, str] = send(api, f"{_MAPS}/c", document, **query).raise_for_status().json().get("data", {})
    return found


def test_a_manager_takes_away_what_it_applies_no_more(api: RunningApi) -> None:
    data(api, config_map("c", {"a": "1", "b": "1"}))
    data(api, config_map("c", {"b": "2", "c": "2"}), fieldManager="another")

    assert data(api, config_map("c", {"a": "3"})) == {"a": "3", "b": "2", "c": "2"}
    assert data(api, config_map("c", {})) == {"b": "2", "c": "2"}
    assert data(api, config_map("c", {}), fieldManager="another") == {}


def test_a_dry_run_takes_nothing_away(api: RunningApi) -> None:
    data(api, config_map("c", {"a": "1"}))

    assert data(api, config_map("c", {}), dryRun="All") == {}
    assert data(api, config_map("c", {"b": "1"})) == {"b": "1"}


def test_a_new_object_of_the_same_name_was_never_applied(api: RunningApi) -> None:
    data(api, config_map("c", {"a": "1"}))
    with client_of(api.kubeconfig) as http:
        http.delete(f"{_MAPS}/c").raise_for_status()
        http.post(_MAPS, json=config_map("c", {"a": "others"})).raise_for_status()

    assert data(api, config_map("c", {"b": "1"})) == {"a": "others", "b": "1"}


def test_fields_are_handed_over_by_managed_fields(api: RunningApi) -> None:
    """As the kubernetes provider does before it applies what it has created (`fixCSAFieldManagers`)."""
    with client_of(api.kubeconfig) as http:
        created = http.post(f"{_MAPS}?fieldManager=mine", json=config_map("c", {"a": "1", "b": "1"})).json()
        (entry,) = created["metadata"]["managedFields"]
        assert (entry["manager"], entry["operation"]) == ("mine", "Update")
        assert entry["fieldsV1"] == {"f:data": {"f:a": {}, "f:b": {}}}
        handed = [{"op": "replace", "path": "/metadata/managedFields", "value": [{**entry, "operation": "Apply"}]}]
        headers = {"Content-Type": "application/json-patch+json"}
        http.patch(f"{_MAPS}/c", json=handed, headers=headers).raise_for_status()

    assert data(api, config_map("c", {"a": "2"})) == {"a": "2"}


def test_nothing_is_handed_over_by_null(api: RunningApi) -> None:
    """As the kubernetes provider does when it finds no field manager to replace."""
    with client_of(api.kubeconfig) as http:
        created = http.post(_MAPS, json=config_map("c", {"a": "1"})).json()
        headers = {"Content-Type": "application/json-patch+json"}
        answer = http.patch(f"{_MAPS}/c", content="null", headers=headers)

    assert (answer.status_code, answer.json()) == (200, created)


def test_what_was_created_stays_while_nobody_applied_it(api: RunningApi) -> None:
    with client_of(api.kubeconfig) as http:
        http.post(f"{_MAPS}?fieldManager=mine", json=config_map("c", {"a": "1", "b": "1"})).raise_for_status()

    assert data(api, config_map("c", {"a": "2"})) == {"a": "2", "b": "1"}


def test_applying_the_same_again_writes_nothing(api: RunningApi) -> None:
    once = send(api, f"{_MAPS}/c", config_map("c", {"a": "1"})).json()["metadata"]
    again = send(api, f"{_MAPS}/c", config_map("c", {"a": "1"})).json()["metadata"]

    assert again == once


def test_defaults_stay_and_lists_are_applied_whole(api: RunningApi) -> None:
    variables = [{"name": name, "value": name} for name in ("first", "second")]
    send(api, f"{_APPS}/web", deployment(container={"env": variables})).raise_for_status()
    changed = send(api, f"{_APPS}/web", deployment(container={"env": variables[1:]})).raise_for_status().json()

    (container,) = changed["spec"]["template"]["spec"]["containers"]
    assert container["env"] == variables[1:]
    assert changed["spec"]["strategy"]["type"] == "RollingUpdate"


@pytest.mark.parametrize(
    ("document", "query", "code", "message"),
    [
        (
            config_map("c", {}),
            {"fieldManager": ""},
            422,
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
        ),
        (config_map("c", {}, managedFields=[]), {}, 400, "metadata.managedFields must be nil"),
        ([], {}, 400, "the object provided is unrecognized: an object is expected"),
    ],
)
def test_an_apply_names_its_manager_and_is_an_object(
    api: RunningApi, document: Any, query: dict[str, str], code: int, message: str
) -> None:
    answer = send(api, f"{_MAPS}/c", document, **query)

    assert (answer.status_code, answer.json()["message"]) == (code, message)


@given(first=documents, second=documents)
def test_the_last_document_of_the_only_manager_is_what_is_there(first: dict[str, Any], second: dict[str, Any]) -> None:
    once = patches.apply({}, {"data": first}, "mine")
    twice = patches.apply(once, {"data": second}, "mine")

    assert _filled(twice.get("data")) == _filled(second)


def _filled(value: Any) -> Any:
    """Without empty objects: nobody owns one that somebody else's field made."""
    if not isinstance(value, dict):
        return value
    return {key: inner for key, item in value.items() if (inner := _filled(item)) != {}}


def test_the_places_of_fields_hold_no_value() -> None:
    document = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"key": "secret", "list": [1]}}

    assert patches.managed_fields(document, "mine", "Apply")["fieldsV1"] == {"f:data": {"f:key": {}, "f:list": {}}}


def test_null_removes_in_a_merge_patch() -> None:
    assert patches.merge({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}) == {"a": {"c": 2}}


def test_a_strategic_patch_deletes_a_list_item_by_directive() -> None:
    volumes = {"volumes": [{"name": "a"}, {"name": "b"}]}

    patched = patches.strategic_merge(volumes, {"volumes": [{"name": "a", "$patch": "delete"}]})

    assert patched == {"volumes": [{"name": "b"}]}


def test_a_strategic_patch_retains_the_named_keys_only() -> None:
    volume = {"volumes": [{"name": "a", "emptyDir": {}}]}
    patch = {"volumes": [{"name": "a", "$retainKeys": ["name", "secret"], "secret": {"secretName": "s"}}]}

    assert patches.strategic_merge(volume, patch) == {"volumes": [{"name": "a", "secret": {"secretName": "s"}}]}


def test_a_json_patch_follows_escaped_paths() -> None:
    document = {"metadata": {"labels": {"a/b": "1"}}, "items": [1, 2]}
    operations = [
        {"op": "replace", "path": "/metadata/labels/a~1b", "value": "2"},
        {"op": "add", "path": "/items/-", "value": 3},
        {"op": "remove", "path": "/items/0"},
    ]

    assert patches.apply_json_patch(document, operations) == {"metadata": {"labels": {"a/b": "2"}}, "items": [2, 3]}


@pytest.mark.parametrize("operations", [None, []])
def test_a_json_patch_without_operations_changes_nothing(operations: Any) -> None:
    assert patches.apply_json_patch({"items": [1]}, operations) == {"items": [1]}


@pytest.mark.parametrize(
    "operations",
    [
        pytest.param([{"op": "remove", "path": "/a"}], id="a path to nowhere"),
        pytest.param([{"op": "add", "path": "/items/x", "value": 1}], id="no index"),
        pytest.param([{"op": "replace", "path": "/items/0/z", "value": 1}], id="a path through a number"),
        pytest.param([{"op": "test", "path": "/items/0", "value": 2}], id="a test that fails"),
        pytest.param([{"op": "append", "path": "/items", "value": 1}], id="an unknown operation"),
        pytest.param([{"path": "/items"}], id="no operation"),
        pytest.param([{"op": "add", "path": "/a"}], id="no value"),
        pytest.param(["add"], id="a string"),
        pytest.param({"op": "remove", "path": "/items"}, id="no list"),
    ],
)
def test_a_json_patch_that_does_not_apply_is_refused_and_changes_nothing(operations: Any) -> None:
    document = {"items": [1]}

    with pytest.raises(StatusError) as refused:
        patches.apply_json_patch(document, operations)

    assert refused.value.code in {400, 422}
    assert document == {"items": [1]}


@pytest.mark.parametrize("operation", ["test", "remove"])
def test_the_refusal_of_a_json_patch_does_not_show_the_object(operation: str) -> None:
    path = "/data/password" if operation == "test" else "/data/nothing"

    with pytest.raises(StatusError) as refused:
        patches.apply_json_patch({"data": {"password": "hidden"}}, [{"op": operation, "path": path, "value": "1"}])

    assert refused.value.code == 422
    assert "hidden" not in str(refused.value.status())
