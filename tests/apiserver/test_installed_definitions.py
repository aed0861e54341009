"""Definitions that `hypershift install` has applied stay HyperShift's."""

from __future__ import annotations

from typing import Any, Final

import httpx

from tests.harness import LocalStack

_PATH: Final = (
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/azureclusteridentities.infrastructure.cluster.x-k8s.io"
)
_REAL: Final = "the real one"


def described(administrator: httpx.Client) -> Any:
    version = administrator.get(_PATH).raise_for_status().json()["spec"]["versions"][0]
    return version["schema"]["openAPIV3Schema"].get("description")


def test_a_start_leaves_what_another_manager_has_applied(stack: LocalStack, administrator: httpx.Client) -> None:
    before = administrator.get(_PATH).raise_for_status().json()
    applied = {name: before[name] for name in ("apiVersion", "kind", "spec")}
    applied["metadata"] = {"name": before["metadata"]["name"]}
    applied["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = _REAL
    administrator.patch(
        _PATH,
        params={"fieldManager": "hypershift", "force": "true"},
        json=applied,
        headers={"Content-Type": "application/apply-patch+yaml"},
    ).raise_for_status()
    try:
        assert "seeded already" in stack.local_cloud("seed")
        assert described(administrator) == _REAL
    finally:
        del applied["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"]
        version = administrator.get(_PATH).json()["metadata"]["resourceVersion"]
        applied["metadata"] |= {"resourceVersion": version, "managedFields": [{}]}
        administrator.put(_PATH, json=applied).raise_for_status()
    stack.local_cloud("seed")
    assert described(administrator) is None
