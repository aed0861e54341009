"""kubernetes against the running API: what the real provider does with objects."""

from __future__ import annotations

from typing import Any

import pytest

from emulated.kubernetes import provider
from emulated.kubernetes.provider import Kubernetes
from localcloud.kubelet.client import CONFIG_MAPS, DEPLOYMENTS, SECRETS
from localcloud.testing.kubernetes import deployment
from localcloud.testing.plugins import checked, create, delete, import_by_id, read, refresh, update, urn
from plugin import UNKNOWN, Created, PluginError, Props, Secret, contains_secret, unwrap
from tests.kubelet_world import NAMESPACE, ClusterApi

CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
SECRET = "kubernetes:core/v1:Secret"
DEPLOYMENT = "kubernetes:apps/v1:Deployment"
NAMESPACE_KIND = "kubernetes:core/v1:Namespace"
PROVIDER_CLASS = "kubernetes:secrets-store.csi.x-k8s.io/v1:SecretProviderClass"
SETTINGS: Props = {"metadata": {"name": "settings"}, "data": {"a": "1"}}


def previewed(kubernetes: Kubernetes, token: str, inputs: Props) -> Props:
    """The outputs of a create in a preview."""
    created = kubernetes.resource(token).create(urn(token), inputs, preview=True)
    assert created.id == ""
    return created.state


def refused(kubernetes: Kubernetes, token: str, inputs: Props, *, preview: bool = False) -> str:
    """Why an object is not created."""
    known = checked(kubernetes, token, inputs)
    with pytest.raises(PluginError) as raised:
        kubernetes.resource(token).create(urn(token), known, preview=preview)
    return str(raised.value)


def updated(
    kubernetes: Kubernetes, token: str, old: tuple[Props, Created], new: Props, *, preview: bool = False
) -> Props:
    """The state after an update."""
    inputs, created = old
    known = checked(kubernetes, token, new, inputs)
    return kubernetes.resource(token).update(urn(token), created.id, inputs, created.state, known, preview=preview)


def test_ids_are_those_of_the_real_provider(kubernetes: Kubernetes) -> None:
    _, settings = create(kubernetes, CONFIG_MAP, SETTINGS)
    _, namespace = create(kubernetes, NAMESPACE_KIND, {"metadata": {"name": "clusters-hc2"}})

    assert (settings.id, namespace.id) == (f"{NAMESPACE}/settings", "clusters-hc2")


def without_managers(live: dict[str, Any]) -> dict[str, Any]:
    """The object without the server's bookkeeping of who wrote which field."""
    assert live["metadata"]["managedFields"]
    return {**live, "metadata": {key: value for key, value in live["metadata"].items() if key != "managedFields"}}


def test_the_state_is_the_live_object(kubernetes: Kubernetes, cluster: ClusterApi) -> None:
    _, created = create(kubernetes, CONFIG_MAP, SETTINGS)

    assert created.state == without_managers(cluster.get(CONFIG_MAPS, "settings"))
    assert created.state["metadata"]["uid"]


def test_a_refresh_right_after_a_create_changes_nothing(kubernetes: Kubernetes) -> None:
    inputs, created = create(kubernetes, CONFIG_MAP, SETTINGS)

    refreshed = refresh(kubernetes, CONFIG_MAP, inputs, created)

    assert (refreshed.id, refreshed.inputs, refreshed.state) == (created.id, inputs, created.state)


def test_what_exists_is_not_taken_over(kubernetes: Kubernetes) -> None:
    create(kubernetes, CONFIG_MAP, SETTINGS)

    message = refused(kubernetes, CONFIG_MAP, {**SETTINGS, "data": {"a": "2"}})

    assert f'resource "{urn(CONFIG_MAP)}" was not successfully created by the Kubernetes API server: ' in message
    assert 'configmaps "settings" already exists' in message
    assert "use `pulumi import`" in message


def test_an_unknown_field_is_already_refused_in_a_preview(kubernetes: Kubernetes) -> None:
    misspelt = {**SETTINGS, "date": {"a": "1"}}

    for preview in (True, False):
        assert 'unknown field "date"' in refused(kubernetes, CONFIG_MAP, misspelt, preview=preview)


def test_a_create_waits_for_its_namespace(kubernetes: Kubernetes, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            create(kubernetes, NAMESPACE_KIND, {"metadata": {"name": "clusters-hc2"}})

    monkeypatch.setattr(provider, "pause", pause)
    late: Props = {"metadata": {"name": "settings", "namespace": "clusters-hc2"}}

    _, created = create(kubernetes, CONFIG_MAP, late)

    assert (created.id, waited) == ("clusters-hc2/settings", [1, 2, 4])


def test_a_missing_namespace_is_named(kubernetes: Kubernetes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "pause", lambda _: None)

    placeless: Props = {"metadata": {"name": "settings", "namespace": "none"}}

    assert 'namespaces "none" not found' in refused(kubernetes, CONFIG_MAP, placeless)


def test_a_kind_that_the_api_does_not_serve_is_named(kubernetes: Kubernetes) -> None:
    widget = kubernetes.resource("kubernetes:example.com/v1:Widget")

    with pytest.raises(PluginError, match=r'does not have the resource type "example\.com/v1:Widget"') as raised:
        widget.check(urn("kubernetes:example.com/v1:Widget"), None, {"metadata": {"name": "w"}})

    assert "`kubectl api-resources` lists what it serves" in str(raised.value)


def test_drift_is_detected_in_the_inputs_and_corrected(kubernetes: Kubernetes, cluster: ClusterApi) -> None:
    inputs, created = create(kubernetes, CONFIG_MAP, {**SETTINGS, "data": {"a": "1", "b": "2"}})
    cluster.merge(CONFIG_MAPS, "settings", {"data": {"a": "by hand", "b": None, "c": "3"}})

    refreshed = refresh(kubernetes, CONFIG_MAP, inputs, created)
    assert refreshed.inputs["data"] == {"a": "by hand"}, "what the program does not write is no drift"
    corrected = update(kubernetes, CONFIG_MAP, refreshed.inputs, refreshed, inputs)

    assert corrected["data"] == {"a": "1", "b": "2", "c": "3"}
    assert cluster.get(CONFIG_MAPS, "settings")["data"] == {"a": "1", "b": "2", "c": "3"}


def test_an_update_removes_what_the_program_no_longer_writes(kubernetes: Kubernetes, cluster: ClusterApi) -> None:
    labelled = {"name": "settings", "labels": {"x": "y"}}
    old = create(kubernetes, CONFIG_MAP, {"metadata": labelled, "data": {"a": "1", "b": "2"}})
    cluster.merge(CONFIG_MAPS, "settings", {"data": {"c": "somebody else's"}, "metadata": {"annotations": {"n": "m"}}})

    state = updated(kubernetes, CONFIG_MAP, old, {"metadata": {"name": "settings"}, "data": {"a": "2"}})

    live = cluster.get(CONFIG_MAPS, "settings")
    assert state == without_managers(live)
    assert live["data"] == {"a": "2", "c": "somebody else's"}
    assert live["metadata"]["annotations"] == {"n": "m"}
    assert not live["metadata"].get("labels")
    assert live["metadata"]["uid"] == old[1].state["metadata"]["uid"]


def test_a_refused_update_is_reported(kubernetes: Kubernetes) -> None:
    old = create(kubernetes, SECRET, {"metadata": {"name": "pull"}, "stringData": {"a": "b"}})

    with pytest.raises(PluginError, match=r"was not successfully updated by the Kubernetes API server: .*immutable"):
        updated(kubernetes, SECRET, old, {"metadata": {"name": "pull"}, "type": "other"})


def test_deleting_a_deleted_object_is_not_an_error(kubernetes: Kubernetes, cluster: ClusterApi) -> None:
    made = create(kubernetes, CONFIG_MAP, SETTINGS)

    for _ in range(2):
        delete(kubernetes, CONFIG_MAP, *made)

    assert cluster.all(CONFIG_MAPS) == []
    assert read(kubernetes, CONFIG_MAP, *made) is None


def test_an_import_rebuilds_the_inputs(kubernetes: Kubernetes, cluster: ClusterApi) -> None:
    revision = "deployment.kubernetes.io/revision"
    applied = {"kubectl.kubernetes.io/last-applied-configuration": "{}", revision: "1", "kept": "yes"}
    cluster.create(CONFIG_MAPS, {"metadata": {"name": "settings", "annotations": applied}, "data": {"a": "1"}})

    imported = import_by_id(kubernetes, CONFIG_MAP, f"{NAMESPACE}/settings")

    assert imported.inputs == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": NAMESPACE, "annotations": {"kept": "yes"}},
        "data": {"a": "1"},
    }
    assert imported.state["metadata"]["annotations"] == {"kept": "yes", revision: "1"}
    assert kubernetes.resource(CONFIG_MAP).read(urn(CONFIG_MAP), f"{NAMESPACE}/none", {}, {}) is None


def test_a_preview_shows_defaults_and_has_server_fields_unknown(kubernetes: Kubernetes, cluster: ClusterApi) -> None:
    inputs = checked(kubernetes, DEPLOYMENT, deployment())

    state = previewed(kubernetes, DEPLOYMENT, inputs)

    assert state["spec"]["replicas"] == 1
    metadata = state["metadata"]
    assert [metadata[key] for key in ("uid", "resourceVersion", "creationTimestamp")] == [UNKNOWN] * 3
    assert "status" not in state
    assert cluster.all(DEPLOYMENTS) == []


def test_a_preview_that_cannot_dry_run_repeats_the_inputs(kubernetes: Kubernetes) -> None:
    unknown = checked(kubernetes, CONFIG_MAP, {**SETTINGS, "data": {"a": UNKNOWN}})
    placeless = checked(kubernetes, CONFIG_MAP, {"metadata": {"name": "settings", "namespace": "none"}})

    assert previewed(kubernetes, CONFIG_MAP, unknown) == unknown
    assert previewed(kubernetes, CONFIG_MAP, placeless) == placeless


def test_a_preview_of_a_replacement_succeeds(kubernetes: Kubernetes) -> None:
    inputs, _ = create(kubernetes, CONFIG_MAP, SETTINGS)

    assert previewed(kubernetes, CONFIG_MAP, inputs) == inputs


def test_a_preview_of_an_update_writes_nothing(kubernetes: Kubernetes, cluster: ClusterApi) -> None:
    old = create(kubernetes, CONFIG_MAP, SETTINGS)

    state = updated(kubernetes, CONFIG_MAP, old, {**SETTINGS, "data": {"a": "2"}}, preview=True)
    unknown = updated(kubernetes, CONFIG_MAP, old, {**SETTINGS, "data": {"a": UNKNOWN}}, preview=True)

    assert state["data"] == {"a": "2"}
    assert unknown["data"] == {"a": UNKNOWN}
    assert cluster.get(CONFIG_MAPS, "settings")["data"] == {"a": "1"}


MARKER = "marker-4f1b"


def test_a_secrets_data_is_secret_whether_the_program_marks_it_or_not(kubernetes: Kubernetes) -> None:
    inputs, created = create(kubernetes, SECRET, {"metadata": {"name": "pull"}, "stringData": {"key": MARKER}})
    refreshed = refresh(kubernetes, SECRET, inputs, created)
    preview = kubernetes.resource(SECRET).create(
        urn(SECRET),
        checked(kubernetes, SECRET, {"metadata": {"name": "p"}, "stringData": {"key": MARKER}}),
        preview=True,
    )

    encoded = Secret({"key": "bWFya2VyLTRmMWI="})
    for document in (inputs, created.state, refreshed.inputs, refreshed.state, preview.state):
        assert document["data"] == encoded
    assert (refreshed.inputs, refreshed.state) == (inputs, created.state)


def test_an_imported_secret_is_secret(kubernetes: Kubernetes, cluster: ClusterApi) -> None:
    cluster.create(SECRETS, {"metadata": {"name": "pull"}, "stringData": {"key": MARKER}})

    imported = import_by_id(kubernetes, SECRET, f"{NAMESPACE}/pull")

    assert imported.inputs["data"] == imported.state["data"] == Secret({"key": "bWFya2VyLTRmMWI="})


def test_a_value_that_the_program_marks_stays_marked_in_any_kind(kubernetes: Kubernetes) -> None:
    inputs, created = create(
        kubernetes, CONFIG_MAP, {"metadata": {"name": "c"}, "data": {"a": Secret(MARKER), "b": "1"}}
    )
    refreshed = refresh(kubernetes, CONFIG_MAP, inputs, created)
    updated = update(kubernetes, CONFIG_MAP, inputs, created, {**inputs, "data": {"a": Secret(f"{MARKER}2")}})

    for document in (created.state, refreshed.inputs, refreshed.state, updated):
        assert MARKER not in repr(document)
    assert refreshed.state["data"]["b"] == "1"
    assert unwrap(updated)["data"]["a"] == f"{MARKER}2"


def test_a_list_with_a_secret_in_it_is_secret_as_a_whole(kubernetes: Kubernetes) -> None:
    document = deployment(container={"env": [{"name": "A", "value": Secret(MARKER)}]})
    document["metadata"]["annotations"] = {"pulumi.com/skipAwait": "true"}

    _, created = create(kubernetes, DEPLOYMENT, document)

    assert contains_secret(created.state["spec"]["template"]["spec"])
    assert MARKER not in repr(created.state)


@pytest.mark.parametrize("preview", [True, False])
def test_a_refused_secret_is_not_shown(kubernetes: Kubernetes, preview: bool) -> None:
    inputs: Props = checked(kubernetes, SECRET, {"metadata": {"name": "pull"}, "data": {"key": f"%{MARKER}"}})

    with pytest.raises(PluginError, match="illegal base64 data") as refused:
        kubernetes.resource(SECRET).create(urn(SECRET), inputs, preview=preview)

    assert MARKER not in str(refused.value)
