"""The tables `kubectl get` prints: columns by kind, computed on the server as kube-apiserver does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from localcloud.core import clock
from localcloud.kubernetes.errors import bad_request
from localcloud.kubernetes.kinds import ResourceKind

_Cell = Callable[[dict[str, Any]], Any]


def rendered(
    kind: ResourceKind, documents: Sequence[dict[str, Any]], accept: str, included: str
) -> dict[str, Any] | None:
    """A `Table` of the objects if the client asks for one, else None; `included` is the part of each object in it.

    Raises a 400 `StatusError` if that is not None, Metadata or Object.
    """
    if "as=Table" not in accept or "v=v1;" not in accept.replace(" ", "") + ";":
        return None
    columns = {"Name": lambda item: item["metadata"]["name"], **_COLUMNS.get(kind.kind, {}), "Age": _age}
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": [
            {
                "name": name,
                "type": "string",
                "format": "name" if name == "Name" else "",
                "description": "",
                "priority": 0,
            }
            for name in columns
        ],
        "rows": [
            {
                "cells": [cell(document) for cell in columns.values()],
                **_included(document, included),
            }
            for document in documents
        ],
    }


def _included(document: dict[str, Any], included: str) -> dict[str, Any]:
    match included:
        case "None":
            return {}
        case "Metadata":
            metadata = document["metadata"]
            return {"object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}}
        case "Object":
            return {"object": document}
    raise bad_request(f'includeObject: unsupported value "{included}": supported values: None, Metadata, Object')


def _age(document: dict[str, Any]) -> str:
    seconds = int((clock.now() - clock.parse_rfc3339(document["metadata"]["creationTimestamp"])).total_seconds())
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


def _ready_containers(pod: dict[str, Any]) -> str:
    statuses = pod["status"].get("containerStatuses", [])
    return f"{sum(status['ready'] for status in statuses)}/{len(pod['spec']['containers'])}"


def _pod_status(pod: dict[str, Any]) -> str:
    for status in pod["status"].get("containerStatuses", []):
        if reason := status.get("state", {}).get("waiting", {}).get("reason"):
            return str(reason)
    return str(pod["status"].get("phase", ""))


def _restarts(pod: dict[str, Any]) -> str:
    return str(sum(status["restartCount"] for status in pod["status"].get("containerStatuses", [])))


def _ready_replicas(deployment: dict[str, Any]) -> str:
    return f"{deployment['status'].get('readyReplicas', 0)}/{deployment['spec']['replicas']}"


def _involved(event: dict[str, Any]) -> str:
    involved = event["involvedObject"]
    return f"{involved.get('kind', '').lower()}/{involved.get('name', '')}"


_COLUMNS: Final[dict[str, dict[str, _Cell]]] = {
    "Namespace": {"Status": lambda item: item["status"]["phase"]},
    "Secret": {"Type": lambda item: item["type"], "Data": lambda item: str(len(item.get("data", {})))},
    "ConfigMap": {"Data": lambda item: str(len(item.get("data", {})))},
    "Pod": {"Ready": _ready_containers, "Status": _pod_status, "Restarts": _restarts},
    "Deployment": {
        "Ready": _ready_replicas,
        "Up-to-date": lambda item: str(item["status"].get("updatedReplicas", 0)),
        "Available": lambda item: str(item["status"].get("availableReplicas", 0)),
    },
    "ReplicaSet": {
        "Desired": lambda item: str(item["spec"]["replicas"]),
        "Current": lambda item: str(item["status"].get("replicas", 0)),
        "Ready": lambda item: str(item["status"].get("readyReplicas", 0)),
    },
    "Event": {
        "Type": lambda item: item.get("type", ""),
        "Reason": lambda item: item.get("reason", ""),
        "Object": _involved,
        "Message": lambda item: item.get("message", ""),
    },
}
