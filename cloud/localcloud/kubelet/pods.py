"""One pod on this machine: its volumes, then its containers, and its status."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import httpx

from localcloud.core import clock, processes
from localcloud.core.files import write_if_changed
from localcloud.kubelet import selection
from localcloud.kubelet.client import PODS
from localcloud.kubelet.cluster import key_of
from localcloud.kubelet.containers import Container, Node
from localcloud.kubelet.csi import MountError
from localcloud.kubelet.selection import condition, workload_of
from localcloud.kubelet.services import Record, hosts_of
from localcloud.kubelet.volumes import Volumes
from localcloud.kubernetes.calls import ApiError, Object

# A pod's containers in their order: init containers one after the other, then all others at once.


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


_log = logging.getLogger(__name__)


class PodWorker:
    """Runs one Pod object until `stop`. `records` are the names that it may ask for."""

    def __init__(self, node: Node, pod: Object, address: str, records: Sequence[Record] = ()) -> None:
        status = {"podIP": address, "hostIP": "127.0.0.1"}
        self._pod = {**pod, "status": {**pod.get("status", {}), **status}}
        self._node = node
        self.address = address
        self._tree = selection.tree_of(node.mounts, pod)
        self._volumes = Volumes(node, self._pod, self._tree)
        self._report = asyncio.Event()
        self._init_specs: list[dict[str, Any]] = pod["spec"].get("initContainers", [])
        self._init_containers = [self._container(spec, is_init=True) for spec in self._init_specs]
        self._containers = [self._container(spec, is_init=False) for spec in pod["spec"]["containers"]]
        self._every = (*self._init_containers, *self._containers)
        self._is_initialized = not self._init_containers
        for container in self._containers if self._init_containers else ():
            container.status.state = {"waiting": {"reason": "PodInitializing"}}
        self._has_failed = False
        self._woken = asyncio.Event()
        self._reported: dict[str, Any] = {}
        self.is_mounted = False
        self._started_at = clock.rfc3339(clock.now())
        self._records = records
        self._task = asyncio.create_task(self._run())

    @property
    def uid(self) -> str:
        uid: str = self._pod["metadata"]["uid"]
        return uid

    @property
    def pod(self) -> Object:
        return self._pod

    @property
    def workload(self) -> tuple[str, str]:
        """Namespace and name of the Deployment that owns the pod, else of the pod."""
        return self._pod["metadata"]["namespace"], workload_of(self._pod)

    @property
    def rotates(self) -> bool:
        """Whether a volume comes from a vault."""
        return self._volumes.rotate

    def wake(self) -> None:
        """Update the volumes now, because a source of one has changed."""
        self._woken.set()

    def _container(self, spec: dict[str, Any], *, is_init: bool) -> Container:
        policy = restart_policy(self._pod, spec, is_init=is_init)
        return Container(self._node, self._pod, spec, self._tree, self._report.set, restart_policy=policy)

    def name(self, records: Sequence[Record]) -> None:
        """Write the pod's hosts file, once it has a tree: the pod's own name, and these."""
        self._records = records
        if self._tree.exists():
            write_if_changed(self._tree / selection.HOSTS, hosts_of(self._pod, records))

    def kill(self) -> None:
        """Force a pod to end that takes its time."""
        for container in self._every:
            container.kill()

    async def stop(self, deleted: Object | None) -> None:
        """End the processes and remove the mounts of a pod; None for one that stays in the API, as a stopped pod."""
        for container in self._every:
            grace: float = (deleted or {}).get("metadata", {}).get("deletionGracePeriodSeconds", container.grace)
            container.grace = grace if deleted is not None else min(grace, self._node.intervals.ending)
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        with suppress(ApiError, httpx.HTTPError):
            await self._volumes.tear_down()
        selection.unlink(self._node.mounts, self._pod)
        if deleted is not None:
            logs = self._node.logs_of(self._pod)
            shutil.rmtree(logs, ignore_errors=True)
            with suppress(OSError):
                logs.parent.rmdir()
        else:
            stopped = {"waiting": {"reason": "KubeletStopped"}}
            for container in self._every:
                container.status = replace(container.status, is_ready=False, state=stopped)
            with suppress(ApiError, httpx.HTTPError):
                await self._send_status()

    async def _run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._report_status())
                self._report.set()
                await self._mount()
                self.name(self._records)
                selection.link(self._node.mounts, self._pod)
                self.is_mounted = True
                group.create_task(self._keep_volumes())
                self._is_initialized = await run_in_order(group, self._init_specs, self._init_containers)
                self._has_failed = not self._is_initialized
                self._report.set()
                for container in self._containers if self._is_initialized else ():
                    group.create_task(container.run())
        except Exception:
            # A failure of one pod does not end the others.
            _log.exception("pod %s is given up", self._name)

    async def _mount(self) -> None:
        for pause in processes.growing_pauses(*self._node.intervals.mount):
            self._woken.clear()
            try:
                await self._volumes.set_up()
                return
            except MountError as error:
                await self._node.recorder.record(self._pod, "FailedMount", str(error))
            except (ApiError, httpx.HTTPError) as error:
                _log.warning("mounting for %s: %s", self._name, error)
            await self._woken_within(pause)

    async def _keep_volumes(self) -> None:
        """Swap in changed content. The driver hides a failed rotation from the kubelet: the old files stay."""
        intervals = self._node.intervals
        pause = intervals.rotation
        while True:
            await self._woken_within(pause if self._volumes.rotate or self._volumes.have_tokens else None)
            self._woken.clear()
            pause = min(intervals.change, intervals.rotation)
            try:
                for name in await self._volumes.set_up():
                    text = f"successfully rotated mounted contents of volume {name}"
                    await self._node.recorder.record(self._pod, "MountRotationComplete", text, type_="Normal")
                pause = intervals.rotation
            except MountError as error:
                await self._node.recorder.record(self._pod, "MountRotationFailed", str(error))
            except (ApiError, httpx.HTTPError) as error:
                _log.warning("rotation for %s: %s", self._name, error)

    async def _woken_within(self, seconds: float | None) -> None:
        # Not `asyncio.wait_for`: before Python 3.12 it loses a cancellation that comes together with the event.
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()

    async def _report_status(self) -> None:
        while True:
            await self._report.wait()
            self._report.clear()
            try:
                await self._send_status()
            except (ApiError, httpx.HTTPError) as error:
                _log.warning("status of %s not written: %s", self._name, error)
                await asyncio.sleep(self._node.intervals.mount[0])
                self._report.set()

    async def _send_status(self) -> None:
        status = self._status()
        if status == self._reported:
            return
        await self._node.cluster.client.merge(PODS, *key_of(self._pod), {"status": status}, subresource="status")
        self._reported = status
        self._pod["status"] |= status

    def _status(self) -> dict[str, Any]:
        containers = [container.status for container in self._containers]
        first = [container.status for container in self._init_containers]
        sidecars = [container for spec, container in zip(self._init_specs, first, strict=True) if is_sidecar(spec)]
        unready = [container.name for container in (*sidecars, *containers) if not container.is_ready]
        is_ready = not unready
        incomplete = [container.name for container in first if not self._is_initialized and not container.is_ready]
        not_initialized = _reason("ContainersNotInitialized", "incomplete", incomplete)
        reason = _reason("ContainersNotReady", "unready", unready)
        phase = _phase(
            [container.state for container in containers], [container.last_state for container in containers]
        )
        return {
            "phase": "Failed" if self._has_failed else phase,
            "conditions": [
                self._condition("PodScheduled", True, {}),
                self._condition("Initialized", self._is_initialized, not_initialized),
                self._condition("ContainersReady", is_ready, reason),
                self._condition("Ready", is_ready, reason),
            ],
            "hostIP": "127.0.0.1",
            "podIP": self.address,
            "podIPs": [{"ip": self.address}],
            "startTime": self._started_at,
            "containerStatuses": [container.document() for container in containers],
            **({"initContainerStatuses": [container.document() for container in first]} if first else {}),
        }

    def _condition(self, type_: str, holds: bool, reason: dict[str, str]) -> dict[str, Any]:
        status = "True" if holds else "False"
        before = condition(self._pod, type_)
        since = before.get("lastTransitionTime") if before.get("status") == status else None
        return {"type": type_, "status": status, "lastTransitionTime": since or clock.rfc3339(clock.now()), **reason}

    @property
    def _name(self) -> str:
        return "/".join(key_of(self._pod))


def _reason(reason: str, what: str, containers: Sequence[str]) -> dict[str, str]:
    """Why a condition does not hold, nothing without containers."""
    message = f"containers with {what} status: [{' '.join(containers)}]"
    return {"reason": reason, "message": message} if containers else {}


def _phase(states: list[dict[str, Any]], last_states: list[dict[str, Any]]) -> str:
    codes = [state["terminated"]["exitCode"] for state in states if "terminated" in state]
    if len(codes) == len(states):
        return "Failed" if any(codes) else "Succeeded"
    has_run = any("running" in state for state in states) or any(last_states)
    return "Running" if has_run else "Pending"
