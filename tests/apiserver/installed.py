"""Definitions that others install in place of the local cloud's, as long as a test needs them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import httpx

DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PATH: Final = f"{DEFINITIONS}/{{}}"
_APPLY: Final = {"Content-Type": "application/apply-patch+yaml"}


def definition(group: str, version: str, kind: str, schema: dict[str, Any]) -> dict[str, Any]:
    """The definition of a kind of a test's own."""
    plural = f"{kind.lower()}s"
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [served]},
    }


@contextmanager
def installed(administrator: httpx.Client, *definitions: Any) -> Iterator[None]:
    """The definitions as `hypershift install` applies them; the local cloud's are back afterwards."""
    before = []
    for real in definitions:
        path = PATH.format(real["metadata"]["name"])
        before.append(administrator.get(path).raise_for_status().json())
        options = {"fieldManager": "hypershift", "force": "true"}
        administrator.patch(path, params=options, json=real, headers=_APPLY).raise_for_status()
        _wait_until_served(administrator, real)
    yield
    for own in before:
        path = PATH.format(own["metadata"]["name"])
        version = administrator.get(path).json()["metadata"]["resourceVersion"]
        metadata = {
            "name": own["metadata"]["name"],
            "resourceVersion": version,
            "managedFields": own["metadata"]["managedFields"],
        }
        administrator.put(path, json={**own, "metadata": metadata}).raise_for_status()
        _wait_until_served(administrator, own)


def answered(request: Callable[[], httpx.Response]) -> httpx.Response:
    """The answer once the kind is served again: after a change of its definition it is not for a moment."""
    while (answer := request()).status_code == httpx.codes.TOO_MANY_REQUESTS:
        time.sleep(float(answer.headers["Retry-After"]))
    return answer


def _wait_until_served(administrator: httpx.Client, definition: Any) -> None:
    spec = definition["spec"]
    path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
    answered(lambda: administrator.get(path)).raise_for_status()
