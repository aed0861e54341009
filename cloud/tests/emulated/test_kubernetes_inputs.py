"""What the kubernetes plugin makes of a program's inputs, and which of their changes replace an object."""

from __future__ import annotations

import re
from typing import Any

import pytest

from emulated.kubernetes.provider import Kubernetes
from localcloud.testing.plugins import checked, urn
from plugin import UNKNOWN, PropertyChange, Props, Secret
from tests.emulated.conftest import Configured
from tests.kubelet_world import NAMESPACE

CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
SECRET = "kubernetes:core/v1:Secret"
DEPLOYMENT = "kubernetes:apps/v1:Deployment"
# As the real one does, only a deletion is called one of inputs.
IN_PLACE = PropertyChange("update", input=False)
REPLACES = PropertyChange("update", replace=True, input=False)


def metadata(name: str = "x", **more: Any) -> Props:
    return {"name": name, "namespace": NAMESPACE, **more}


def changes(provider: Kubernetes, token: str, old: Props, new: Props) -> dict[str, PropertyChange]:
    """The detailed diff between inputs, which name their kind as Check makes them do."""
    return dict(provider.resource(token).diff(urn(token), "id", _of_kind(token, old), {}, _of_kind(token, new)).changes)


def deletes_first(provider: Kubernetes, token: str, old: Props, new: Props) -> bool:
    """Whether a replacement deletes the old object before it creates the new one."""
    diff = provider.resource(token).diff(urn(token), "id", _of_kind(token, old), {}, _of_kind(token, new))
    assert any(change.replace for change in diff.changes.values())
    return diff.delete_before_replace


def _of_kind(token: str, inputs: Props) -> Props:
    group_version, kind = token.removeprefix("kubernetes:").split(":")
    return {"apiVersion": group_version.removeprefix("core/"), "kind": kind, **inputs}


def test_kind_and_place_are_filled_in(kubernetes: Kubernetes) -> None:
    assert checked(kubernetes, CONFIG_MAP, {"metadata": {"name": "c"}}) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": NAMESPACE},
    }
    elsewhere = checked(kubernetes, CONFIG_MAP, {"metadata": {"name": "c", "namespace": "default"}})
    assert elsewhere["metadata"]["namespace"] == "default"


def test_a_provider_without_a_namespace_uses_its_contexts(configured: Configured) -> None:
    inputs = checked(configured(namespace=""), CONFIG_MAP, {"metadata": {"name": "c"}})

    assert inputs["metadata"]["namespace"] == "default"


def test_a_cluster_wide_kind_has_no_namespace(kubernetes: Kubernetes) -> None:
    inputs = checked(kubernetes, "kubernetes:core/v1:Namespace", {"metadata": {"name": "n", "namespace": "x"}})

    assert inputs["metadata"] == {"name": "n"}


def test_a_missing_name_is_generated_once(kubernetes: Kubernetes) -> None:
    first = checked(kubernetes, CONFIG_MAP, {"data": {"a": "1"}})
    again = checked(kubernetes, CONFIG_MAP, {"data": {"a": "2"}}, first)
    other = checked(kubernetes, CONFIG_MAP, {})

    name = first["metadata"]["name"]
    assert re.fullmatch("name-[0-9a-f]{8}", name), "the resource's name and a random suffix"
    assert first["metadata"]["annotations"] == {"pulumi.com/autonamed": "true"}
    assert again["metadata"]["name"] == name
    assert other["metadata"]["name"] != name


def test_a_given_name_or_prefix_is_kept(kubernetes: Kubernetes) -> None:
    prefixed = checked(kubernetes, CONFIG_MAP, {"metadata": {"generateName": "c-"}})

    assert prefixed["metadata"] == {"generateName": "c-", "namespace": NAMESPACE}


def test_nulls_and_what_only_the_server_writes_are_dropped(kubernetes: Kubernetes) -> None:
    server = {"uid": "u", "resourceVersion": "1", "generation": 1, "creationTimestamp": "t", "managedFields": []}

    inputs = checked(
        kubernetes, CONFIG_MAP, {"metadata": {"name": "c", "labels": None, **server}, "data": {"a": None, "b": "1"}}
    )

    assert inputs["metadata"] == {"name": "c", "namespace": NAMESPACE}
    assert inputs["data"] == {"b": "1"}


def test_string_data_becomes_data_and_is_secret(kubernetes: Kubernetes) -> None:
    inputs = checked(
        kubernetes,
        SECRET,
        {"metadata": {"name": "s"}, "stringData": {"a": "hi", "b": "x"}, "data": {"b": "eQ==", "c": "eg=="}},
    )

    assert "stringData" not in inputs
    assert inputs["data"] == Secret({"a": "aGk=", "b": "eA==", "c": "eg=="})


def test_unknown_string_data_stays_string_data(kubernetes: Kubernetes) -> None:
    inputs = checked(kubernetes, SECRET, {"metadata": {"name": "s"}, "stringData": {"a": UNKNOWN}})

    assert inputs["stringData"] == Secret({"a": UNKNOWN})


def test_two_notations_of_one_object_are_equal(kubernetes: Kubernetes) -> None:
    text: Props = {"metadata": metadata(), "stringData": {"a": "hi"}, "type": None}
    data: Props = {"metadata": metadata(labels=None, uid="u"), "data": Secret({"a": "aGk="})}

    assert changes(kubernetes, SECRET, text, data) == {}


@pytest.mark.parametrize("field", ["name", "namespace"])
@pytest.mark.parametrize("value", ["another", UNKNOWN])
def test_another_name_or_place_is_another_object(kubernetes: Kubernetes, field: str, value: object) -> None:
    old: Props = {"metadata": metadata()}
    new: Props = {"metadata": {**metadata(), field: value}}

    assert changes(kubernetes, CONFIG_MAP, old, new) == {f"metadata.{field}": REPLACES}
    assert not deletes_first(kubernetes, CONFIG_MAP, old, new), "both can be there at once"


@pytest.mark.parametrize(
    ("token", "old", "new", "found"),
    [
        (CONFIG_MAP, {"data": {"a": "1"}}, {"data": {"a": "2"}}, {"data.a": REPLACES}),
        (CONFIG_MAP, {"data": {"a": "1"}}, {"data": {"a": UNKNOWN}}, {"data.a": REPLACES}),
        (CONFIG_MAP, {}, {"data": {"a": "1"}}, {"data": PropertyChange("add", replace=True, input=False)}),
        (SECRET, {"data": {"a": "MQ=="}}, {"data": {"a": "Mg=="}}, {"data.a": REPLACES}),
        (SECRET, {"type": "a"}, {"type": "b"}, {"type": REPLACES}),
        (
            DEPLOYMENT,
            {"spec": {"selector": {"matchLabels": {"app": "a"}}, "replicas": 1}},
            {"spec": {"selector": {"matchLabels": {"app": "b"}}, "replicas": 2}},
            {"spec.selector.matchLabels.app": REPLACES, "spec.replicas": IN_PLACE},
        ),
        (
            "kubernetes:core/v1:Pod",
            {"spec": {"containers": [{"image": "a"}], "activeDeadlineSeconds": 1}},
            {"spec": {"containers": [{"image": "b"}], "activeDeadlineSeconds": 2}},
            {"spec.containers[0].image": REPLACES, "spec.activeDeadlineSeconds": IN_PLACE},
        ),
        (
            "kubernetes:core/v1:Pod",
            {"spec": {"containers": [{"name": "a", "image": "a"}], "nodeSelector": {"os": "linux"}}},
            {"spec": {"containers": [{"name": "b", "image": "a"}, {"name": "c", "image": "c"}]}},
            {
                "spec.containers[0].name": IN_PLACE,
                "spec.containers[1]": PropertyChange("add", replace=True, input=False),
                "spec.nodeSelector": PropertyChange("delete", replace=True),
            },
        ),
        (
            "kubernetes:rbac.authorization.k8s.io/v1:RoleBinding",
            {"roleRef": {"name": "a"}, "subjects": []},
            {"roleRef": {"name": "b"}, "subjects": [{"name": "s"}]},
            {"roleRef.name": REPLACES, "subjects[0]": PropertyChange("add", input=False)},
        ),
        (
            "kubernetes:secrets-store.csi.x-k8s.io/v1:SecretProviderClass",
            {"spec": {"parameters": {"keyvaultName": "a"}}},
            {"spec": {"parameters": {"keyvaultName": "b"}}},
            {"spec.parameters.keyvaultName": IN_PLACE},
        ),
    ],
)
def test_each_kind_has_fields_that_replace_it(
    kubernetes: Kubernetes, token: str, old: Props, new: Props, found: dict[str, PropertyChange]
) -> None:
    assert changes(kubernetes, token, {"metadata": metadata(), **old}, {"metadata": metadata(), **new}) == found


def test_labels_change_in_place(kubernetes: Kubernetes) -> None:
    old, new = metadata(labels={"a": "1", "b": "2"}), metadata(labels={"a": "2", "c": "3"})

    assert changes(kubernetes, CONFIG_MAP, {"metadata": old}, {"metadata": new}) == {
        "metadata.labels.a": IN_PLACE,
        "metadata.labels.b": PropertyChange("delete"),
        "metadata.labels.c": PropertyChange("add", input=False),
    }


@pytest.mark.parametrize(
    ("token", "setting"), [(SECRET, "enableSecretMutable"), (CONFIG_MAP, "enableConfigMapMutable")]
)
def test_a_provider_setting_lets_data_change_in_place(configured: Configured, token: str, setting: str) -> None:
    old, new = ({"metadata": metadata(), "data": {"a": value}} for value in ("MQ==", "Mg=="))

    assert changes(configured(**{setting: "true"}), token, old, new) == {"data.a": IN_PLACE}
    assert changes(configured(**{setting: "false"}), token, old, new) == {"data.a": REPLACES}
    frozen = configured(**{setting: "true"})
    assert changes(frozen, token, {**old, "immutable": True}, {**new, "immutable": True}) == {"data.a": REPLACES}


def test_a_replacement_deletes_first_unless_its_name_is_generated(
    kubernetes: Kubernetes,
) -> None:
    own, generated = metadata(), metadata(annotations={"pulumi.com/autonamed": "true"})

    for place, first in ((own, True), (generated, False)):
        old, new = ({"metadata": place, "data": {"a": value}} for value in ("1", "2"))
        assert deletes_first(kubernetes, CONFIG_MAP, old, new) == first
