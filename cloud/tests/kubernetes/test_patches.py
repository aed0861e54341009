"""The rules of the four patches, where the official client does not reach."""

from __future__ import annotations

from typing import Any

import pytest

from localcloud.kubernetes import patches
from localcloud.kubernetes.errors import StatusError


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
