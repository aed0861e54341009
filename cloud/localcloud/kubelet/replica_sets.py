"""The ReplicaSets of a Deployment, one for each template, and their pods: pure functions.

As the Deployment controller keeps them (kubernetes `pkg/controller/deployment/{sync,util/deployment_util}.go`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from localcloud.kubelet.selection import HASH_LABEL, is_ready
from localcloud.kubernetes.calls import Object

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


def status(replica_set: Object, pods: Sequence[Object]) -> dict[str, Any]:
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
