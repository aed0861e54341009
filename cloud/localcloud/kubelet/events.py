"""Events about pods; one that repeats is counted, not repeated (client-go's event correlator)."""

from __future__ import annotations

import hashlib
import logging
import secrets
from typing import Final

import httpx

from localcloud.core import clock
from localcloud.kubelet.client import EVENTS, ApiClient
from localcloud.kubernetes.calls import ApiError, Object

_log = logging.getLogger(__name__)
# The API server's limit for an event's message.
_LONGEST: Final = 1024


class EventRecorder:
    """Writes events; a failure to write one is logged and otherwise ignored, as in every Kubernetes component."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._counts: dict[str, int] = {}
        # A kubelet counts from one; events of another kubelet keep their own names.
        self._run = secrets.token_hex(4)

    async def normal(self, pod: Object, reason: str, message: str) -> None:
        """Record an event of type Normal about the pod; `message` is cut at 1,024 characters."""
        await self._record(pod, "Normal", reason, message)

    async def warning(self, pod: Object, reason: str, message: str) -> None:
        """Record an event of type Warning about the pod; `message` is cut at 1,024 characters."""
        await self._record(pod, "Warning", reason, message)

    async def _record(self, pod: Object, type_: str, reason: str, message: str) -> None:
        metadata = pod["metadata"]
        message = message[:_LONGEST]
        digest = hashlib.sha256(f"{self._run} {metadata['uid']} {reason} {message}".encode()).hexdigest()[:16]
        name = f"{metadata['name']}.{digest}"
        count = self._counts[name] = self._counts.get(name, 0) + 1
        now = clock.rfc3339(clock.now())
        try:
            if count > 1:
                await self._client.merge(EVENTS, metadata["namespace"], name, {"count": count, "lastTimestamp": now})
                return
            await self._client.create(
                EVENTS,
                metadata["namespace"],
                {
                    "metadata": {"name": name, "namespace": metadata["namespace"]},
                    "involvedObject": {
                        "apiVersion": "v1",
                        "kind": "Pod",
                        "name": metadata["name"],
                        "namespace": metadata["namespace"],
                        "uid": metadata["uid"],
                        "resourceVersion": metadata["resourceVersion"],
                    },
                    "type": type_,
                    "reason": reason,
                    "message": message,
                    "source": {"component": "kubelet", "host": pod["spec"]["nodeName"]},
                    "reportingComponent": "kubelet",
                    "reportingInstance": pod["spec"]["nodeName"],
                    "count": count,
                    "firstTimestamp": now,
                    "lastTimestamp": now,
                },
            )
        except (ApiError, httpx.HTTPError) as error:
            self._counts.pop(name, None)
            _log.info("event %s of %s/%s not recorded: %s", reason, metadata["namespace"], metadata["name"], error)
