"""The Deployment controller and that of its ReplicaSets: one Pod object per replica, rollouts, status.

A ReplicaSet that belongs to no Deployment gets no pods.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import math
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import httpx

from localcloud.core import clock, documents
from localcloud.kubelet.client import DEPLOYMENTS, PODS
from localcloud.kubelet.cluster import ClusterCache, Key, key_of
from localcloud.kubelet.selection import HASH_LABEL, condition, controller_of, is_ready, is_terminating, workload_of
from localcloud.kubernetes.calls import ApiError, Object

_RETRY: Final = 1.0
# Kubernetes' own alphabet for name suffixes: no vowels, no words (apimachinery `pkg/util/rand`).
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"

_log = logging.getLogger(__name__)


class DeploymentController:
    """Reconciles Deployments one at a time, each whenever it, a ReplicaSet or a pod of it changed."""

    def __init__(self, cluster: ClusterCache, node: str) -> None:
        self._cluster = cluster
        self._node = node
        self._queue: asyncio.Queue[Key] = asyncio.Queue()
        self._queued: set[Key] = set()

    def deployment_changed(self, key: Key) -> None:
        """Queue this Deployment, unless it is queued already."""
        if key not in self._queued:
            self._queued.add(key)
            self._queue.put_nowait(key)

    def replica_set_changed(self, key: Key) -> None:
        """Queue the Deployment that owns this ReplicaSet; for a deleted one it is derived from the name."""
        namespace, name = key
        replica_set = self._cluster.replica_sets.objects.get(key)
        owner = controller_of(replica_set) if replica_set else None
        # <deployment>-<template hash>
        self.deployment_changed((namespace, owner["name"] if owner else name.rpartition("-")[0]))

    def pod_changed(self, key: Key) -> None:
        """Queue the Deployment behind this pod; for a deleted pod it is derived from the pod's name."""
        namespace, name = key
        pod = self._cluster.pods.objects.get(key)
        # <deployment>-<template hash>-<suffix>
        self.deployment_changed((namespace, workload_of(pod) if pod else name.rsplit("-", 2)[0]))

    async def run(self) -> None:
        """Reconcile until cancelled. Starts once the collections are known, or every pod would seem to be missing."""
        for collection in (self._cluster.deployments, self._cluster.replica_sets, self._cluster.pods):
            await collection.synced.wait()
        while True:
            key = await self._queue.get()
            self._queued.discard(key)
            try:
                await self._reconcile(key)
            except (ApiError, httpx.HTTPError) as error:
                _log.warning("deployment %s/%s: %s", *key, error)
                asyncio.get_running_loop().call_later(_RETRY, self.deployment_changed, key)

    async def settle(self) -> None:
        """Write every status again, after the pods have stopped."""
        for deployment in list(self._cluster.deployments.objects.values()):
            sets = self._replica_sets_of(deployment)
            pods = [await self._cluster.client.get(PODS, *key_of(pod)) for pod in self._pods_of(deployment, sets)]
            await self._write_statuses(deployment, sets, [pod for pod in pods if pod])

    async def _reconcile(self, key: Key) -> None:
        deployment = self._cluster.deployments.objects.get(key)
        if deployment is None:
            await self._clear(key)
            return
        sets = self._replica_sets_of(deployment)
        pods = self._pods_of(deployment, sets)
        if is_terminating(deployment):
            await self._write_statuses(deployment, sets, pods)
            return  # the garbage collector deletes the rest
        present = current_set(deployment, sets)
        current, old = _split(present, pods)
        step = plan(deployment, current, old)
        for pod in step.delete:
            await self._cluster.pods.delete(pod)
        left = [pod for pod in current if pod not in step.delete]
        has_to_wait = deployment["spec"]["strategy"]["type"] == "Recreate" and old
        if (step.create or present is None) and not has_to_wait:
            live = await self._cluster.client.get(DEPLOYMENTS, *key_of(deployment))
            if live is None or live["metadata"]["uid"] != deployment["metadata"]["uid"]:
                return  # the events of its pods' deletion came before that of its own
            if present is None:
                document = replica_set_of(deployment, sets, step.create)
                present = await self._cluster.replica_sets.create(document)
            for _ in range(step.create):
                suffix = "".join(secrets.choice(_ALPHABET) for _ in range(5))
                await self._cluster.pods.create(pod_of(present, suffix, self._node))
        sets = self._replica_sets_of(deployment)
        await self._scale(deployment, sets, len(left) + step.create)
        await self._write_statuses(deployment, sets, self._pods_of(deployment, sets))
        name = name_of(deployment)
        for replica_set in expired(
            deployment, [replica_set for replica_set in sets if replica_set["metadata"]["name"] != name]
        ):
            await self._cluster.replica_sets.delete(replica_set)

    async def _clear(self, deployment: Key) -> None:
        """Delete the remains of a Deployment, as a real cluster's garbage collector does."""
        gone = [
            replica_set
            for replica_set in self._cluster.replica_sets.objects.values()
            if _was_kept_by(replica_set, deployment)
        ]
        uids = {replica_set["metadata"]["uid"] for replica_set in gone}
        for pod in [pod for pod in self._cluster.pods.objects.values() if _controller(pod) in uids]:
            await self._cluster.pods.delete(pod)
        for replica_set in gone:
            await self._cluster.replica_sets.delete(replica_set)

    async def _scale(self, deployment: Object, sets: list[Object], replicas: int) -> None:
        """Write the replicas of the ReplicaSets, and which one is current.

        The current one has the highest revision, also after a return to an earlier template; the others get as many
        replicas as they have pods left.
        """
        present = current_set(deployment, sets)
        pods = self._pods_of(deployment, sets)
        for replica_set in sets:
            if replica_set is not present:
                kept = sum(_controller(pod) == replica_set["metadata"]["uid"] for pod in pods)
                await self._cluster.replica_sets.change(replica_set, {"spec": {"replicas": kept}})
        if present is None:
            return
        others = [replica_set for replica_set in sets if replica_set is not present]
        revision = max(revision_of(present), next_revision(others))
        annotations = annotations_of(deployment, revision)
        wanted = {"metadata": {"annotations": annotations}, "spec": {"replicas": replicas}}
        await self._cluster.replica_sets.change(present, wanted)
        wanted = {"metadata": {"annotations": {REVISION: str(revision)}}}
        await self._cluster.deployments.change(deployment, wanted)

    async def _write_statuses(self, deployment: Object, sets: list[Object], pods: list[Object]) -> None:
        for replica_set in sets:
            mine = [pod for pod in pods if _controller(pod) == replica_set["metadata"]["uid"]]
            replica_set = self._cluster.replica_sets.objects.get(key_of(replica_set), replica_set)
            wanted = {"status": replica_set_status(replica_set, mine)}
            await self._cluster.replica_sets.change(replica_set, wanted, subresource="status")
        current, old = _split(current_set(deployment, sets), pods)
        wanted = {"status": status(deployment, current, old, clock.rfc3339(clock.now()))}
        await self._cluster.deployments.change(deployment, wanted, subresource="status")

    def _replica_sets_of(self, deployment: Object) -> list[Object]:
        uid = deployment["metadata"]["uid"]
        every = self._cluster.replica_sets.objects.values()
        return [item for item in every if _controller(item) == uid and not is_terminating(item)]

    def _pods_of(self, deployment: Object, sets: list[Object]) -> list[Object]:
        # Pods of the Deployment itself come from an earlier kubelet, which had no ReplicaSets.
        owners = {owner["metadata"]["uid"] for owner in (deployment, *sets)}
        every = self._cluster.pods.objects.values()
        return [pod for pod in every if _controller(pod) in owners and not is_terminating(pod)]


def _split(present: Object | None, pods: list[Object]) -> tuple[list[Object], list[Object]]:
    """The pods of this ReplicaSet, and the others."""
    uid = present["metadata"]["uid"] if present else None
    current = [pod for pod in pods if _controller(pod) == uid]
    return current, [pod for pod in pods if pod not in current]


def _controller(document: Object) -> str | None:
    owner = controller_of(document)
    return str(owner["uid"]) if owner else None


def _was_kept_by(replica_set: Object, deployment: Key) -> bool:
    owner = controller_of(replica_set)
    return (
        owner is not None
        and owner["kind"] == "Deployment"
        and (replica_set["metadata"]["namespace"], owner["name"]) == deployment
    )


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


def current_set(deployment: Object, replica_sets: Collection[Object]) -> Object | None:
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
    return documents.document(
        *(__file__, "ReplicaSet"),
        name=name_of(deployment),
        namespace=metadata["namespace"],
        labels=labels,
        annotations=annotations_of(deployment, next_revision(others)),
        owner=_owner("Deployment", deployment),
        replicas=replicas,
        selector={**selector, "matchLabels": {**selector.get("matchLabels", {}), **label}},
        template={**template, "metadata": {**template_metadata, "labels": labels}},
    )


def next_revision(replica_sets: Collection[Object]) -> int:
    return 1 + max(map(revision_of, replica_sets), default=0)


def annotations_of(deployment: Object, revision: int) -> dict[str, str]:
    """The annotations of the current ReplicaSet: the Deployment's and its revision."""
    annotations: Mapping[str, str] = deployment["metadata"].get("annotations", {})
    return {key: text for key, text in annotations.items() if key not in _NOT_COPIED} | {REVISION: str(revision)}


def pod_of(replica_set: Object, suffix: str, node: str) -> Object:
    """A new Pod object of the ReplicaSet's template, owned by the ReplicaSet and assigned to `node`."""
    metadata, template = replica_set["metadata"], replica_set["spec"]["template"]
    return documents.document(
        *(__file__, "Pod"),
        name=f"{metadata['name']}-{suffix}",
        namespace=metadata["namespace"],
        labels=template["metadata"]["labels"],
        annotations=template["metadata"].get("annotations", {}),
        owner=_owner("ReplicaSet", replica_set),
        spec={**template["spec"], "nodeName": node},
    )


def replica_set_status(replica_set: Object, pods: Sequence[Object]) -> dict[str, Any]:
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
    metadata = document["metadata"]
    return documents.document(__file__, "owner", kind=kind, name=metadata["name"], uid=metadata["uid"])


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
