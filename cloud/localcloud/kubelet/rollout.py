"""The pods that a Deployment needs next, and its status: pure functions.

The arithmetic is the Deployment controller's (kubernetes `pkg/controller/deployment/{rolling,recreate,progress}.go`),
on the pods themselves: the replicas of the ReplicaSets follow from it. `current` are the pods of the ReplicaSet of the
present template, `old` all others of the Deployment.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from localcloud.kubelet.selection import HASH_LABEL, condition, is_ready
from localcloud.kubernetes.calls import Object

# The ReplicaSets of a Deployment, one for each template, and their pods: pure functions.
#
# As the Deployment controller keeps them (kubernetes `pkg/controller/deployment/{sync,util/deployment_util}.go`).


REVISION: Final = "deployment.kubernetes.io/revision"
# Annotations of a Deployment that its ReplicaSets do not get (`annotationsToSkip`).
_NOT_COPIED: Final = ("kubectl.kubernetes.io/last-applied-configuration", REVISION)


def template_hash(deployment: Object) -> str:
    """The value of the label that distinguishes the pods of one template from those of another."""
    text = json.dumps(deployment["spec"]["template"], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def name_of(deployment: Object) -> str:
    """The name of the ReplicaSet of the Deployment's template."""
    return f"{deployment['metadata']['name']}-{template_hash(deployment)}"


def current(deployment: Object, replica_sets: Collection[Object]) -> Object | None:
    """The ReplicaSet of the Deployment's template, None if there is none yet."""
    name = name_of(deployment)
    return next((replica_set for replica_set in replica_sets if replica_set["metadata"]["name"] == name), None)


def revision_of(document: Object) -> int:
    """The revision of a ReplicaSet or Deployment, 0 for none."""
    annotations = document["metadata"].get("annotations", {})
    try:
        return int(annotations.get(REVISION, "0"))
    except ValueError:
        return 0


def replica_set_of(deployment: Object, others: Collection[Object], replicas: int) -> Object:
    """A new ReplicaSet of the Deployment's template; `others` are those that the Deployment has."""
    metadata, spec = deployment["metadata"], deployment["spec"]
    label = {HASH_LABEL: template_hash(deployment)}
    template = spec["template"]
    template_metadata = template.get("metadata", {})
    labels = {**template_metadata.get("labels", {}), **label}
    selector = spec["selector"]
    return {
        "metadata": {
            "name": name_of(deployment),
            "namespace": metadata["namespace"],
            "labels": labels,
            "annotations": annotations_of(deployment, next_revision(others)),
            "ownerReferences": [_owner("Deployment", deployment)],
        },
        "spec": {
            "replicas": replicas,
            "selector": {**selector, "matchLabels": {**selector.get("matchLabels", {}), **label}},
            "template": {**template, "metadata": {**template_metadata, "labels": labels}},
        },
    }


def next_revision(replica_sets: Collection[Object]) -> int:
    """The next revision after those of these ReplicaSets."""
    return 1 + max(map(revision_of, replica_sets), default=0)


def annotations_of(deployment: Object, revision: int) -> dict[str, str]:
    """The annotations of the current ReplicaSet: the Deployment's and its revision."""
    annotations: Mapping[str, str] = deployment["metadata"].get("annotations", {})
    return {key: text for key, text in annotations.items() if key not in _NOT_COPIED} | {REVISION: str(revision)}


def pod_of(replica_set: Object, suffix: str, node: str) -> Object:
    """A new Pod object of the ReplicaSet's template, owned by the ReplicaSet and assigned to `node`."""
    metadata, template = replica_set["metadata"], replica_set["spec"]["template"]
    return {
        "metadata": {
            "name": f"{metadata['name']}-{suffix}",
            "namespace": metadata["namespace"],
            "labels": template["metadata"]["labels"],
            "annotations": template["metadata"].get("annotations", {}),
            "ownerReferences": [_owner("ReplicaSet", replica_set)],
        },
        "spec": {**template["spec"], "nodeName": node},
    }


def replica_set_status(replica_set: Object, pods: Sequence[Object]) -> dict[str, Any]:
    """The status of a ReplicaSet that has these pods."""
    ready = sum(map(is_ready, pods))
    return {
        "observedGeneration": replica_set["metadata"]["generation"],
        "replicas": len(pods),
        # Null removes a count of zero, which the real controller leaves out.
        "fullyLabeledReplicas": len(pods) or None,
        "readyReplicas": ready or None,
        "availableReplicas": ready or None,
    }


def expired(deployment: Object, old: Collection[Object]) -> list[Object]:
    """Old ReplicaSets without pods beyond `revisionHistoryLimit`, the first revisions first."""
    idle = [
        replica_set
        for replica_set in old
        if not replica_set["spec"]["replicas"] and not replica_set.get("status", {}).get("replicas")
    ]
    surplus = len(old) - int(deployment["spec"].get("revisionHistoryLimit", 10))
    return sorted(idle, key=revision_of)[: max(0, surplus)]


def _owner(kind: str, document: Object) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "name": document["metadata"]["name"],
        "uid": document["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


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
