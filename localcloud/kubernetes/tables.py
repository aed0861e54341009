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
    """A `Table` of the objects if the client asks for one, else None; `included` is what it has of each object.

    Raises a 400 `StatusError` if that is none of None, Metadata and Object.
    """
    if "as=Table" not in accept or "v=v1;" not in accept.replace(" ", "") + ";":
        return None
    columns = {"Name": lambda each: each["metadata"]["name"], **_COLUMNS.get(kind.kind, {}), "Age": _age}
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
    return f"{sum(each['ready'] for each in statuses)}/{len(pod['spec']['containers'])}"


def _pod_status(pod: dict[str, Any]) -> str:
    for each in pod["status"].get("containerStatuses", []):
        if reason := each.get("state", {}).get("waiting", {}).get("reason"):
            return str(reason)
    return str(pod["status"].get("phase", ""))


def _restarts(pod: dict[str, Any]) -> str:
    return str(sum(each["restartCount"] for each in pod["status"].get("containerStatuses", [])))


def _ready_replicas(deployment: dict[str, Any]) -> str:
    return f"{deployment['status'].get('readyReplicas', 0)}/{deployment['spec']['replicas']}"


def _involved(event: dict[str, Any]) -> str:
    involved = event["involvedObject"]
    return f"{involved.get('kind', '').lower()}/{involved.get('name', '')}"


_COLUMNS: Final[dict[str, dict[str, _Cell]]] = {
    "Namespace": {"Status": lambda each: each["status"]["phase"]},
    "Secret": {"Type": lambda each: each["type"], "Data": lambda each: str(len(each.get("data", {})))},
    "ConfigMap": {"Data": lambda each: str(len(each.get("data", {})))},
    "Pod": {"Ready": _ready_containers, "Status": _pod_status, "Restarts": _restarts},
    "Deployment": {
        "Ready": _ready_replicas,
        "Up-to-date": lambda each: str(each["status"].get("updatedReplicas", 0)),
        "Available": lambda each: str(each["status"].get("availableReplicas", 0)),
    },
    "ReplicaSet": {
        "Desired": lambda each: str(each["spec"]["replicas"]),
        "Current": lambda each: str(each["status"].get("replicas", 0)),
        "Ready": lambda each: str(each["status"].get("readyReplicas", 0)),
    },
    "Event": {
        "Type": lambda each: each.get("type", ""),
        "Reason": lambda each: each.get("reason", ""),
        "Object": _involved,
        "Message": lambda each: each.get("message", ""),
    },
}
