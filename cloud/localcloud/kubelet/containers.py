"""One container of a pod: configure, run, probe, restart."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx

from localcloud.core import clock, processes
from localcloud.core.processes import RecordedProcess, processes_of, record
from localcloud.kubelet import commands
from localcloud.kubelet.azure_provider import AzureProvider
from localcloud.kubelet.client import EventRecorder
from localcloud.kubelet.cluster import ClusterCache
from localcloud.kubelet.http_get import HttpGet, HttpGetter, NoAnswerError
from localcloud.kubernetes.calls import ApiError, Object


@dataclass(frozen=True, kw_only=True)
class Intervals:
    """Shorter than a real node's, so that a fix shows at once.

    Attributes:
        rotation: between polls of the secrets of a mount (the driver's --rotation-poll-interval; 2 min there, too).
        change: between looks whether the local cloud was written to, which makes every mount poll at once; after a poll
            that failed, the pause before the next.
        mount: the first and the longest pause after a failed mount (kubelet: 0.5 s to 2 min).
        restart: the same before a container that ended runs again (kubelet: 10 s to 5 min).
        steady: a container that ran this long starts with the first delay again (kubelet: 10 min).
        ending: the longest grace period of a pod when the kubelet itself ends, for which `stop` gives it ten seconds.
    """

    rotation: float = 120.0
    change: float = 2.0
    mount: tuple[float, float] = (0.5, 4.0)
    restart: tuple[float, float] = (1.0, 30.0)
    steady: float = 60.0
    ending: float = 5.0


# readinessProbe and livenessProbe by httpGet.


# Until a container is ready for the first time its readiness is probed this often, in seconds: a process that starts
# within a second should not be reported ready after a period of 10 s.
_EAGER_PERIOD: Final = 0.5


@dataclass(frozen=True)
class HttpProbe:
    """One probe of a container; times in seconds, defaults as the API server's."""

    url: str
    headers: dict[str, str]
    delay: float
    period: float
    timeout: float
    successes: int
    failures: int

    @classmethod
    def of(cls, pod: Object, container: dict[str, Any], name: str) -> HttpProbe | None:
        """The container's probe called `name`, None if it has none."""
        if (spec := container.get(name)) is None:
            return None
        request = spec["httpGet"]
        host = request.get("host") or pod["status"]["podIP"]
        port = _port(container, request["port"])
        return cls(
            url=f"{request.get('scheme', 'HTTP').lower()}://{host}:{port}{request.get('path', '/')}",
            headers={header["name"]: header["value"] for header in request.get("httpHeaders", [])},
            delay=spec.get("initialDelaySeconds", 0),
            period=spec.get("periodSeconds", 10),
            timeout=spec.get("timeoutSeconds", 1),
            successes=spec.get("successThreshold", 1),
            failures=spec.get("failureThreshold", 3),
        )

    async def run(self, http: HttpGetter, decided: Callable[[bool, str], None], *, eager: bool = False) -> None:
        """Probe until cancelled; `decided` is called with each result whose threshold was reached, and the failure.

        An eager probe runs more often until its first success.
        """
        await asyncio.sleep(self.delay)
        good = bad = 0
        while True:
            problem = await self._problem(http)
            good, bad = (good + 1, 0) if problem is None else (0, bad + 1)
            if good == self.successes:
                decided(True, "")
            if problem is not None and bad == self.failures:
                decided(False, problem)
            eager = eager and problem is not None
            await asyncio.sleep(min(self.period, _EAGER_PERIOD) if eager else self.period)

    async def _problem(self, http: HttpGetter) -> str | None:
        try:
            status = await http.status(HttpGet.of(self.url, self.headers), self.timeout)
        except NoAnswerError as error:
            return f'Get "{self.url}": {error}'
        return None if 200 <= status < 400 else f"HTTP probe failed with statuscode: {status}"


def problem_of(container: dict[str, Any]) -> str | None:
    """Why a probe of the container cannot run here, None if each can."""
    for name in ("readinessProbe", "livenessProbe", "startupProbe"):
        probe = container.get(name)
        if probe is not None and (name == "startupProbe" or "httpGet" not in probe):
            return f"{name}: the local kubelet probes by httpGet in readinessProbe and livenessProbe only"
        if probe is not None and _port(container, probe["httpGet"]["port"]) is None:
            return f"{name}: the container has no port named {probe['httpGet']['port']}"
    return None


def _port(container: dict[str, Any], port: int | str) -> int | None:
    """A port by its number, or by a name that the container declares; None for another name."""
    if isinstance(port, int) or port.isdecimal():
        return int(port)
    ports: dict[str, int] = {port.get("name", ""): port["containerPort"] for port in container.get("ports", [])}
    return ports.get(port)


# A container as a process group on this machine.

_PR_SET_PDEATHSIG: Final = 1
_libc: Final = ctypes.CDLL(None, use_errno=True)
# How much of a container's last output a termination message holds (kubelet: 2048 bytes of the log's end).
_MESSAGE_BYTES: Final = 2048


class ContainerProcess:
    """A running command, in a session and process group of its own, its output in a file."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path, recorded: RecordedProcess | None) -> None:
        self._process = process
        self._log = log
        self._recorded = recorded
        self._is_over = False

    @classmethod
    async def start(
        cls, arguments: Sequence[str], environment: Mapping[str, str], *, cwd: Path, log: Path, pids: Path, name: str
    ) -> ContainerProcess:
        """Start a command, recorded as `probe-<name>` in `pids`; raises OSError if there is no such program.

        The record lets the local cloud's `stop` end the group even if the kubelet died.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *arguments,
                env=dict(environment),
                cwd=cwd,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_end_with_parent,
            )
        recorded: RecordedProcess | None = None
        with suppress(ProcessLookupError):
            recorded = record(pids, f"probe-{name}", process.pid)
        return cls(process, log, recorded)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def wait(self) -> int:
        """Wait for the command, then end its remaining processes; returns the exit code, 128 + signal if signalled."""
        code = await self._process.wait()
        self._ended()
        return code if code >= 0 else 128 - code

    async def stop(self, grace: float) -> None:
        """End the group: SIGTERM, and SIGKILL after `grace` seconds, or at `kill`."""
        if self._is_over:
            return  # the id may belong to another process by now
        self._signal(signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._process.wait()
        self._signal(signal.SIGKILL)
        await self._process.wait()
        self._ended()

    def kill(self) -> None:
        """Send SIGKILL to a group that takes its time."""
        if not self._is_over:
            self._signal(signal.SIGKILL)

    def last_output(self) -> str:
        """The last 2,048 bytes of the output, for a termination message."""
        with self._log.open("rb") as log:
            log.seek(max(0, self._log.stat().st_size - _MESSAGE_BYTES))
            return log.read().decode(errors="replace").strip()

    def _ended(self) -> None:
        # Some have process groups of their own, but a container's end is that of all its processes.
        for pid in processes_of(self._process.pid):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        self._is_over = True
        if self._recorded is not None:
            self._recorded.file.unlink(missing_ok=True)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def _end_with_parent() -> None:
    # A killed kubelet cannot stop its containers; the kernel does it then.
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


# The default of terminationGracePeriodSeconds.
_GRACE: Final = 30.0


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
        # In seconds, until the container is forced to end.
        self.grace: float = pod["spec"].get("terminationGracePeriodSeconds", _GRACE)
        self._process: ContainerProcess | None = None

    def kill(self) -> None:
        """Force the container to end, if it runs."""
        if self._process is not None:
            self._process.kill()

    async def run(self) -> None:
        """Start the container, and restart it as its restart policy says."""
        waits = processes.growing_pauses(*self._node.intervals.restart)
        while True:
            try:
                started = asyncio.get_running_loop().time()
                code = await self._run_once()
                if asyncio.get_running_loop().time() - started >= self._node.intervals.steady:
                    waits = processes.growing_pauses(*self._node.intervals.restart)
                if self._restart_policy not in ({"Always", "OnFailure"} if code else {"Always"}):
                    return
                self.status.restarts += 1
                message = f"back-off restarting failed container {self._spec['name']}"
                self._wait_because("CrashLoopBackOff", message)
                await self._node.recorder.record(self._pod, "BackOff", message)
            except (commands.ConfigError, ApiError, httpx.HTTPError) as error:
                self._wait_because("CreateContainerConfigError", str(error))
                await self._node.recorder.record(self._pod, "Failed", f"Error: {error}")
            except OSError as error:
                message = f"failed to start container {self._spec['name']}: {error}"
                self._wait_because("RunContainerError", message)
                await self._node.recorder.record(self._pod, "Failed", f"Error: {message}")
            await asyncio.sleep(next(waits))

    async def _run_once(self) -> int:
        if problem := problem_of(self._spec):
            raise commands.ConfigError(problem)
        node = self._node
        command = await commands.build(self._pod, self._spec, self._tree, node.machine, node.cluster)
        namespace, pod, name = self._pod["metadata"]["namespace"], self._pod["metadata"]["name"], self._spec["name"]
        command.directory.mkdir(parents=True, exist_ok=True)
        process = self._process = await ContainerProcess.start(
            command.arguments,
            command.environment,
            cwd=command.directory,
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
            started = f"Started container {self._spec['name']}"
            await node.recorder.record(self._pod, "Started", started, type_="Normal")
            code = await process.wait()
        finally:
            for task in probing:
                task.cancel()
            await process.stop(self.grace)
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
        if probe := HttpProbe.of(self._pod, self._spec, "readinessProbe"):
            loops.append(probe.run(self._node.http, self._readiness, eager=True))
        if probe := HttpProbe.of(self._pod, self._spec, "livenessProbe"):
            loops.append(self._live(probe, process))
        return loops

    def _readiness(self, is_ready: bool, _: str) -> None:
        self.status.is_ready = is_ready
        self._changed()

    async def _live(self, probe: HttpProbe, process: ContainerProcess) -> None:
        failed: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def decided(is_alive: bool, problem: str) -> None:
            if not is_alive and not failed.done():
                failed.set_result(problem)

        probing = asyncio.create_task(probe.run(self._node.http, decided))
        try:
            problem = await failed
        finally:
            probing.cancel()
        await self._node.recorder.record(self._pod, "Unhealthy", f"Liveness probe failed: {problem}")
        await process.stop(self.grace)

    def _wait_because(self, reason: str, message: str) -> None:
        self.status.state = {"waiting": {"reason": reason, "message": message}}
        self.status.is_ready = False
        self._changed()


def _now() -> str:
    return clock.rfc3339(clock.now())
