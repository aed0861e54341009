"""The pods that a Deployment needs next, and its status: pure functions.

The arithmetic is the Deployment controller's (kubernetes `pkg/controller/deployment/{rolling,recreate,progress}.go`),
with pods in the place of ReplicaSets.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from localcloud.kubelet.selection import condition, is_ready
from localcloud.kubernetes.calls import Object

HASH_LABEL: Final = "pod-template-hash"


@dataclass(frozen=True)
class RolloutStep:
    """The next step: how many pods of the current template to create, which pods to delete."""

    create: int
    delete: Sequence[Object]


def template_hash(deployment: Object) -> str:
    """The value of the label that distinguishes the pods of one template from those of another."""
    text = json.dumps(deployment["spec"]["template"], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def plan(deployment: Object, pods: Sequence[Object]) -> RolloutStep:
    """The next step from the existing pods to those that the Deployment asks for."""
    spec = deployment["spec"]
    wanted = spec["replicas"]
    current, old = _by_template(deployment, pods)
    surplus = sorted(current, key=is_ready)[: max(0, len(current) - wanted)]
    if spec["strategy"]["type"] == "Recreate":
        return RolloutStep(0 if old else max(0, wanted - len(current)), [*old, *surplus])
    rolling = spec["strategy"].get("rollingUpdate", {})
    surge = _share(rolling.get("maxSurge", "25%"), wanted, math.ceil)
    unavailable = _share(rolling.get("maxUnavailable", "25%"), wanted, math.floor)
    if surge == unavailable == 0:
        unavailable = 1  # as the API server's validation would have it: one of them moves
    create = max(0, min(wanted - len(current), wanted + surge - len(pods)))
    unready = sum(not is_ready(pod) for pod in current)
    removable = max(0, len(pods) - (wanted - unavailable) - unready)
    return RolloutStep(create, [*sorted(old, key=is_ready)[:removable], *surplus])


def status(deployment: Object, pods: Sequence[Object], now: str) -> dict[str, Any]:
    """The Deployment's status; times of conditions that hold as before are kept."""
    spec = deployment["spec"]
    wanted = spec["replicas"]
    current, _ = _by_template(deployment, pods)
    ready = sum(map(is_ready, pods))
    unavailable = _share(spec["strategy"].get("rollingUpdate", {}).get("maxUnavailable", "25%"), wanted, math.floor)
    is_available = ready >= wanted - unavailable
    is_complete = len(current) == len(pods) == wanted and ready >= wanted
    name = f"{deployment['metadata']['name']}-{template_hash(deployment)}"
    if is_complete:
        progress = ("NewReplicaSetAvailable", f'ReplicaSet "{name}" has successfully progressed.')
    else:
        progress = ("ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.')
    availability = (
        ("MinimumReplicasAvailable", "Deployment has minimum availability.")
        if is_available
        else ("MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    )
    return {
        "observedGeneration": deployment["metadata"]["generation"],
        "replicas": len(pods),
        "updatedReplicas": len(current),
        "readyReplicas": ready,
        "availableReplicas": ready,
        # Null removes a count of zero, which the real controller leaves out.
        "unavailableReplicas": max(0, wanted - ready) or None,
        "conditions": [
            _condition(deployment, "Available", is_available, availability, now),
            _condition(deployment, "Progressing", True, progress, now),
        ],
    }


def pod_of(deployment: Object, suffix: str, node: str) -> Object:
    """A new Pod object of the Deployment's template, owned by the Deployment and assigned to `node`."""
    metadata, template = deployment["metadata"], deployment["spec"]["template"]
    hash_ = template_hash(deployment)
    labels = {**template.get("metadata", {}).get("labels", {}), HASH_LABEL: hash_}
    return {
        "metadata": {
            "name": f"{metadata['name']}-{hash_}-{suffix}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "annotations": template.get("metadata", {}).get("annotations", {}),
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "name": metadata["name"],
                    "uid": metadata["uid"],
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {**template["spec"], "nodeName": node},
    }


def _by_template(deployment: Object, pods: Sequence[Object]) -> tuple[list[Object], list[Object]]:
    hash_ = template_hash(deployment)
    current = [pod for pod in pods if pod["metadata"].get("labels", {}).get(HASH_LABEL) == hash_]
    return current, [pod for pod in pods if pod not in current]


def _share(value: int | str, of: int, rounded: Any) -> int:
    """An absolute number, or a percentage of the replicas."""
    return int(rounded(int(value.removesuffix("%")) * of / 100)) if isinstance(value, str) else value


def _condition(deployment: Object, type_: str, holds: bool, reason: tuple[str, str], now: str) -> dict[str, Any]:
    before = condition(deployment, type_)
    status = "True" if holds else "False"
    wanted = {"type": type_, "status": status, "reason": reason[0], "message": reason[1]}
    is_same = all(before.get(key) == value for key, value in wanted.items())
    return {
        **wanted,
        "lastUpdateTime": before["lastUpdateTime"] if is_same else now,
        "lastTransitionTime": before["lastTransitionTime"] if before.get("status") == status else now,
    }
