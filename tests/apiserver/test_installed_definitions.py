"""HyperShift's own definition on the local kube-apiserver: it stays, and takes what the stack writes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import httpx
import pytest
from yaml import CSafeLoader, load

from tests.harness import LocalStack
from tools import clients

_NAME: Final = "azureclusteridentities.infrastructure.cluster.x-k8s.io"
_PATH: Final = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{_NAME}"
_FILE: Final = "cmd/install/assets/crds/cluster-api-provider-azure/infrastructure.cluster.x-k8s.io_{}.yaml"
_OBJECTS: Final = "/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/{}/azureclusteridentities"


def described(administrator: httpx.Client) -> Any:
    version = administrator.get(_PATH).raise_for_status().json()["spec"]["versions"][0]
    return version["schema"]["openAPIV3Schema"].get("description", "")


def answered(request: Callable[[], httpx.Response]) -> httpx.Response:
    """The answer once the kind is served again: after a change of its definition it is not for a moment."""
    while (answer := request()).status_code == httpx.codes.TOO_MANY_REQUESTS:
        time.sleep(float(answer.headers["Retry-After"]))
    return answer


@pytest.fixture
def installed(administrator: httpx.Client) -> Iterator[None]:
    """The definition as `hypershift install` applies it; the local cloud's is back afterwards."""
    before = administrator.get(_PATH).raise_for_status().json()
    real = load((clients.hypershift() / _FILE.format("azureclusteridentities")).read_bytes(), CSafeLoader)
    administrator.patch(
        _PATH,
        params={"fieldManager": "hypershift", "force": "true"},
        json=real,
        headers={"Content-Type": "application/apply-patch+yaml"},
    ).raise_for_status()
    yield
    version = administrator.get(_PATH).json()["metadata"]["resourceVersion"]
    metadata = {"name": _NAME, "resourceVersion": version, "managedFields": before["metadata"]["managedFields"]}
    administrator.put(_PATH, json={**before, "metadata": metadata}).raise_for_status()
    answered(partial(administrator.get, _OBJECTS.format("default"))).raise_for_status()


@pytest.mark.usefixtures("installed")
def test_a_start_leaves_what_another_manager_has_applied(stack: LocalStack, administrator: httpx.Client) -> None:
    assert "seeded already" in stack.local_cloud("seed")
    assert described(administrator).startswith("AzureClusterIdentity is the Schema")


@pytest.mark.usefixtures("installed")
def test_hypershifts_definition_takes_the_stacks_object(administrator: httpx.Client) -> None:
    found = answered(partial(administrator.get, _OBJECTS.format("clusters-hc1"))).raise_for_status()
    [live] = found.json()["items"]
    copy = {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "AzureClusterIdentity",
        **live,
        "metadata": {"name": "copy", "namespace": "default"},
    }
    lacking = {**copy, "spec": {name: value for name, value in live["spec"].items() if name != "clientID"}}
    path, options = _OBJECTS.format("default"), {"dryRun": "All", "fieldValidation": "Strict"}

    taken, refused = (
        answered(partial(administrator.post, path, params=options, json=each)) for each in (copy, lacking)
    )

    assert taken.status_code == 201, taken.text
    assert "spec.clientID: Required value" in refused.json()["message"]
