"""One container of a pod: configure, run, probe, restart."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx

from localcloud.core import clock, pauses
from localcloud.kubelet import commands, probes
from localcloud.kubelet.azure_provider import AzureProvider
from localcloud.kubelet.cluster import ClusterCache
from localcloud.kubelet.events import EventRecorder
from localcloud.kubelet.http_get import HttpGetter
from localcloud.kubelet.intervals import Intervals
from localcloud.kubelet.processes import ContainerProcess
from localcloud.kubernetes.calls import ApiError, Object

# The longest grace period of a container, in seconds, whatever its terminationGracePeriodSeconds: nothing here drains
# connections, and `stop` gives the kubelet itself ten.
_LONGEST_GRACE: Final = 5


@dataclass(frozen=True)
class Node:
    """What all pods of this machine share."""

    cluster: ClusterCache
    recorder: EventRecorder
    intervals: Intervals
    http: HttpGetter
    machine: commands.Machine
    provider: AzureProvider
    state_dir: Path
    mounts: Path

    def logs_of(self, pod: Object) -> Path:
        """The directory of the pod's logs, one file for each container."""
        return self.state_dir / "logs" / str(pod["metadata"]["namespace"]) / str(pod["metadata"]["name"])


@dataclass
class ContainerStatus:
    """A container's entry in the pod's status; `state` and `last_state` are the API's ContainerState."""

    name: str
    image: str
    state: dict[str, Any] = field(default_factory=lambda: {"waiting": {"reason": "ContainerCreating"}})
    last_state: dict[str, Any] = field(default_factory=dict)
    restarts: int = 0
    is_ready: bool = False

    def document(self) -> dict[str, Any]:
        """The entry of `status.containerStatuses`."""
        return {
            "name": self.name,
            "image": self.image,
            # The reference itself: images are not pulled, so they have no id.
            "imageID": self.image,
            "state": self.state,
            "lastState": self.last_state,
            "ready": self.is_ready,
            "started": "running" in self.state,
            "restartCount": self.restarts,
        }


class Container:
    """Runs a container until cancelled; `changed` is called whenever `status` changes."""

    def __init__(
        self,
        node: Node,
        pod: Object,
        spec: dict[str, Any],
        tree: Path,
        changed: Callable[[], None],
        *,
        restart_policy: str,
    ) -> None:
        self._node = node
        self._pod = pod
        self._spec = spec
        self._tree = tree
        self._changed = changed
        self._restart_policy = restart_policy
        self.status = ContainerStatus(spec["name"], spec.get("image", ""))
        self.has_started = asyncio.Event()

    async def run(self) -> None:
        """Start the container, and restart it as its restart policy says."""
        waits = pauses.growing(*self._node.intervals.restart)
        while True:
            try:
                started = asyncio.get_running_loop().time()
                code = await self._run_once()
                if asyncio.get_running_loop().time() - started >= self._node.intervals.steady:
                    waits = pauses.growing(*self._node.intervals.restart)
                if not self._restarts_after(code):
                    return
                self.status.restarts += 1
                message = f"back-off restarting failed container {self._spec['name']}"
                self._wait_because("CrashLoopBackOff", message)
                await self._node.recorder.warning(self._pod, "BackOff", message)
            except (commands.ConfigError, ApiError, httpx.HTTPError) as error:
                self._wait_because("CreateContainerConfigError", str(error))
                await self._node.recorder.warning(self._pod, "Failed", f"Error: {error}")
            except OSError as error:
                message = f"failed to start container {self._spec['name']}: {error}"
                self._wait_because("RunContainerError", message)
                await self._node.recorder.warning(self._pod, "Failed", f"Error: {message}")
            await asyncio.sleep(next(waits))

    async def _run_once(self) -> int:
        if problem := probes.problem_of(self._spec):
            raise commands.ConfigError(problem)
        node = self._node
        command = await commands.build(self._pod, self._spec, self._tree, node.machine, node.cluster)
        namespace, pod, name = self._pod["metadata"]["namespace"], self._pod["metadata"]["name"], self._spec["name"]
        process = await ContainerProcess.start(
            command.arguments,
            command.environment,
            # What the image would hold.
            cwd=Path.cwd(),
            log=node.logs_of(self._pod) / f"{name}.log",
            pids=node.state_dir / "pids",
            name=f"{namespace}-{pod}-{name}",
        )
        since = _now()
        probing = [asyncio.create_task(probe) for probe in self._probes(process)]
        self.status.state = {"running": {"startedAt": since}}
        self.status.is_ready = "readinessProbe" not in self._spec
        self._changed()
        self.has_started.set()
        try:
            await node.recorder.normal(self._pod, "Started", f"Started container {self._spec['name']}")
            code = await process.wait()
        finally:
            for task in probing:
                task.cancel()
            await process.stop(self._grace)
        self.status.is_ready = False
        self.status.last_state = {
            "terminated": {
                "exitCode": code,
                "reason": "Completed" if code == 0 else "Error",
                "message": process.last_output() if code else "",
                "startedAt": since,
                "finishedAt": _now(),
            }
        }
        self.status.state = self.status.last_state
        self._changed()
        return code

    def _probes(self, process: ContainerProcess) -> list[Coroutine[Any, Any, None]]:
        loops: list[Coroutine[Any, Any, None]] = []
        if probe := probes.HttpProbe.of(self._pod, self._spec, "readinessProbe"):
            loops.append(probe.run(self._node.http, self._readiness, eager=True))
        if probe := probes.HttpProbe.of(self._pod, self._spec, "livenessProbe"):
            loops.append(self._live(probe, process))
        return loops

    def _readiness(self, is_ready: bool, _: str) -> None:
        self.status.is_ready = is_ready
        self._changed()

    async def _live(self, probe: probes.HttpProbe, process: ContainerProcess) -> None:
        failed: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def decided(is_alive: bool, problem: str) -> None:
            if not is_alive and not failed.done():
                failed.set_result(problem)

        probing = asyncio.create_task(probe.run(self._node.http, decided))
        try:
            problem = await failed
        finally:
            probing.cancel()
        await self._node.recorder.warning(self._pod, "Unhealthy", f"Liveness probe failed: {problem}")
        await process.stop(self._grace)

    @property
    def _grace(self) -> float:
        grace: float = self._pod["spec"].get("terminationGracePeriodSeconds", _LONGEST_GRACE)
        return min(grace, _LONGEST_GRACE)

    def _restarts_after(self, code: int) -> bool:
        return self._restart_policy == "Always" or (self._restart_policy == "OnFailure" and code != 0)

    def _wait_because(self, reason: str, message: str) -> None:
        self.status.state = {"waiting": {"reason": reason, "message": message}}
        self.status.is_ready = False
        self._changed()


def _now() -> str:
    return clock.rfc3339(clock.now())
