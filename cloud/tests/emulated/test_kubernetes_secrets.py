"""Values that the program holds secret stay so, wherever they travel."""

from __future__ import annotations

import pytest

from emulated.kubernetes.provider import Kubernetes
from localcloud.kubelet.client import SECRETS
from localcloud.testing.kubernetes import deployment
from localcloud.testing.plugins import checked, create, import_by_id, refresh, update, urn
from plugin import PluginError, Props, Secret, contains_secret, unwrap
from tests.kubelet_world import NAMESPACE, ClusterApi

SECRET = "kubernetes:core/v1:Secret"
CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
DEPLOYMENT = "kubernetes:apps/v1:Deployment"
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
