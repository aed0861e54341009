"""Waiting until a Deployment is ready, and until a deleted object is gone (pulumi-kubernetes `provider/pkg/await`)."""

from __future__ import annotations

import time
from typing import Any, Final

from emulated.kubernetes.client import Api, Collection
from emulated.kubernetes.inputs import SKIP_AWAIT, TIMEOUT
from localcloud.kubernetes.calls import Object
from plugin import interruptible

_TIMEOUT: Final = 600.0
# A watch is reopened after this many seconds, in case its connection died.
_LONGEST_WATCH: Final = 30.0


class AwaitError(Exception):
    """An object was written but is not ready in time; `live` is its last state, `reasons` explain why."""

    def __init__(self, live: Object, reasons: list[str]) -> None:
        super().__init__(f"'{live['metadata']['name']}' timed out waiting to be Ready")
        self.live = live
        self.reasons = reasons


def wait_until_ready(api: Api, collection: Collection, live: Object) -> Object:
    """The object once it is ready; only Deployments are waited for, and not those annotated to be skipped."""
    annotations = live["metadata"].get("annotations", {})
    if live["kind"] != "Deployment" or annotations.get(SKIP_AWAIT) == "true":
        return live
    deadline = time.monotonic() + float(annotations.get(TIMEOUT, _TIMEOUT))
    while not is_ready(live):
        if (left := deadline - time.monotonic()) <= 0:
            raise AwaitError(live, _reasons(api, live))
        _await_change(api, collection, live, left)
        current = api.get(collection, live["metadata"]["namespace"], live["metadata"]["name"])
        if current is None:
            raise AwaitError(live, ["the Deployment was deleted while it was waited for"])
        live = current
    return live


def wait_until_gone(api: Api, collection: Collection, live: Object) -> None:
    """Wait until the object with this uid is deleted; raises `AwaitError` if it stays."""
    metadata = live["metadata"]
    deadline = time.monotonic() + float(metadata.get("annotations", {}).get(TIMEOUT, _TIMEOUT))
    while (current := api.get(collection, metadata.get("namespace"), metadata["name"])) is not None:
        if current["metadata"]["uid"] != metadata["uid"]:
            return
        if (left := deadline - time.monotonic()) <= 0:
            raise AwaitError(current, [f"finalizers {current['metadata'].get('finalizers', [])} hold it"])
        _await_change(api, collection, current, left)


def _await_change(api: Api, collection: Collection, live: Object, left: float) -> None:
    interruptible(lambda: api.await_change(collection, live, min(left, _LONGEST_WATCH)))


def is_ready(deployment: Object) -> bool:
    """Whether the newest generation is rolled out and available."""
    status: dict[str, Any] = deployment.get("status", {})
    wanted = deployment["spec"].get("replicas", 1)
    conditions = {condition["type"]: condition for condition in status.get("conditions", [])}
    progressing = conditions.get("Progressing", {})
    return bool(
        status.get("observedGeneration", 0) >= deployment["metadata"]["generation"]
        and status.get("updatedReplicas", 0) == status.get("replicas", 0) == wanted
        and status.get("readyReplicas", 0) >= wanted
        and progressing.get("status") == "True"
        and progressing.get("reason") == "NewReplicaSetAvailable"
        and conditions.get("Available", {}).get("status") == "True"
    )


def _reasons(api: Api, deployment: Object) -> list[str]:
    """The Deployment's own conditions, then the states and events of its pods."""
    conditions = deployment.get("status", {}).get("conditions", [])
    reasons = [
        f"[{condition['reason']}] {condition['message']}" for condition in conditions if condition["status"] != "True"
    ]
    reasons.append("Minimum number of live Pods was not attained")
    namespace = deployment["metadata"]["namespace"]
    pods, events = api.collection("v1", "Pod"), api.collection("v1", "Event")
    if pods is None or events is None:
        return reasons
    labels = deployment["spec"]["selector"].get("matchLabels", {})
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    for pod in api.list(pods, namespace, {"labelSelector": selector}):
        name = pod["metadata"]["name"]
        for status in pod.get("status", {}).get("containerStatuses", []):
            if waiting := status.get("state", {}).get("waiting"):
                reasons.append(
                    f"[Pod {name}]: {status['name']}: [{waiting['reason']}] {waiting.get('message', '')}".rstrip()
                )
        for event in api.list(events, namespace, {"fieldSelector": f"involvedObject.name={name},type=Warning"}):
            reasons.append(f"[Pod {name}]: [{event['reason']}] {event['message']}")
    return reasons
