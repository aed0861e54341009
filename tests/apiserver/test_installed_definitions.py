"""HyperShift's own definition on the local kube-apiserver: it stays, and takes what the stack has written."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import httpx
import pytest

from localcloud.testing.upstream_definitions import upstream
from tests.apiserver.installed import PATH, answered, installed
from tests.harness import LocalStack

_PLURAL: Final = "azureclusteridentities"
_OBJECTS: Final = f"/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/{{}}/{_PLURAL}"


def described(administrator: httpx.Client) -> Any:
    found = administrator.get(PATH.format(upstream(_PLURAL)["metadata"]["name"])).raise_for_status().json()
    return found["spec"]["versions"][0]["schema"]["openAPIV3Schema"].get("description", "")


@pytest.fixture
def real(administrator: httpx.Client) -> Iterator[None]:
    with installed(administrator, upstream(_PLURAL)):
        yield


@pytest.mark.usefixtures("real")
def test_a_start_leaves_what_another_manager_has_applied(stack: LocalStack, administrator: httpx.Client) -> None:
    assert "runs already" in stack.local_cloud("start")
    assert described(administrator).startswith("AzureClusterIdentity is the Schema")


@pytest.mark.usefixtures("real")
def test_hypershifts_definition_takes_the_stacks_object(administrator: httpx.Client) -> None:
    found = answered(partial(administrator.get, _OBJECTS.format("clusters-hc1"))).raise_for_status()
    [live] = found.json()["items"]
    copy = {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "AzureClusterIdentity",
        **live,
        "metadata": {"name": "copy", "namespace": "default"},
    }
    path, options = _OBJECTS.format("default"), {"dryRun": "All", "fieldValidation": "Strict"}

    taken = answered(partial(administrator.post, path, params=options, json=copy))

    assert taken.status_code == 201, taken.text
