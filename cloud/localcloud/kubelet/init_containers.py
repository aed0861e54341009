"""A pod's containers in their order: init containers one after the other, then all others at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from localcloud.kubelet.containers import Container
from localcloud.kubernetes.calls import Object


def restart_policy(pod: Object, container: dict[str, Any], *, is_init: bool) -> str:
    """When the container runs again; an init container has to succeed once, unless it is a sidecar (`Always`)."""
    of_pod: str = pod["spec"].get("restartPolicy", "Always")
    if not is_init:
        return of_pod
    if is_sidecar(container):
        return "Always"
    return "Never" if of_pod == "Never" else "OnFailure"


def is_sidecar(container: dict[str, Any]) -> bool:
    """Whether an init container keeps running beside the others (`restartPolicy: Always`)."""
    return container.get("restartPolicy") == "Always"


async def run_in_order(
    group: asyncio.TaskGroup, specs: Sequence[dict[str, Any]], containers: Sequence[Container]
) -> bool:
    """Run the init containers, each after the one before has succeeded; False if one has failed for good.

    A sidecar keeps running in `group`; the next container starts once it has started.
    """
    for spec, container in zip(specs, containers, strict=True):
        if is_sidecar(spec):
            group.create_task(container.run())
            await container.has_started.wait()
            continue
        await container.run()
        if container.status.state["terminated"]["exitCode"]:
            return False
        container.status.is_ready = True
    return True
