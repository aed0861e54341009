"""The pods that a Deployment needs next, and its status: pure functions.

The arithmetic is the Deployment controller's (kubernetes `pkg/controller/deployment/{rolling,recreate,progress}.go`),
on the pods themselves: the replicas of the ReplicaSets follow from it. `current` are the pods of the ReplicaSet of the
present template, `old` all others of the Deployment.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from localcloud.kubelet.replica_sets import name_of
from localcloud.kubelet.selection import condition, is_ready
from localcloud.kubernetes.calls import Object


@dataclass(frozen=True)
class RolloutStep:
    """The next step: how many pods of the current template to create, which pods to delete."""

    create: int
    delete: Sequence[Object]


def plan(deployment: Object, current: Sequence[Object], old: Sequence[Object]) -> RolloutStep:
    """The next step from the existing pods to those of the Deployment's spec."""
    spec = deployment["spec"]
    wanted = spec["replicas"]
    present = len(current) + len(old)
    surplus = sorted(current, key=is_ready)[: max(0, len(current) - wanted)]
    if spec["strategy"]["type"] == "Recreate":
        return RolloutStep(0 if old else max(0, wanted - len(current)), [*old, *surplus])
    rolling = spec["strategy"].get("rollingUpdate", {})
    surge = _share(rolling.get("maxSurge", "25%"), wanted, math.ceil)
    unavailable = _share(rolling.get("maxUnavailable", "25%"), wanted, math.floor)
    if surge == unavailable == 0:
        unavailable = 1  # as the API server's validation would have it: one of them moves
    create = max(0, min(wanted - len(current), wanted + surge - present))
    unready = sum(not is_ready(pod) for pod in current)
    removable = max(0, present - (wanted - unavailable) - unready)
    return RolloutStep(create, [*sorted(old, key=is_ready)[:removable], *surplus])


def status(deployment: Object, current: Sequence[Object], old: Sequence[Object], now: str) -> dict[str, Any]:
    """The Deployment's status; unchanged conditions keep their times."""
    spec = deployment["spec"]
    wanted = spec["replicas"]
    present = len(current) + len(old)
    ready = sum(map(is_ready, [*current, *old]))
    unavailable = _share(spec["strategy"].get("rollingUpdate", {}).get("maxUnavailable", "25%"), wanted, math.floor)
    is_available = ready >= wanted - unavailable
    is_complete = len(current) == present == wanted and ready >= wanted
    name = name_of(deployment)
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
        "replicas": present,
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
