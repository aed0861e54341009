"""What a real API server asks the kubelet of a pod: the log of a container, and a command beside it (`exec`).

A container is a process of this machine, and so is the command, with the container's variables and mounted files.
Sources in kubernetes: `pkg/registry/core/pod/{strategy,rest/log}.go` (options, messages), and in `staging/src/k8s.io`
`apimachinery/pkg/util/remotecommand/constants.go` (channels) and `kubelet/pkg/cri/streaming/remotecommand/exec.go`.
"""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from starlette.datastructures import QueryParams
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.websockets import WebSocket, WebSocketDisconnect

from localcloud.core.processes import RecordedProcess, alive
from localcloud.kubernetes.errors import StatusError, bad_request

LOG: Final = "log"
EXEC: Final = "exec"
SUBRESOURCES: Final = (LOG, EXEC, "attach", "portforward")
MOUNT_ROOT_VARIABLE: Final = "PROBE_MOUNT_ROOT"
# The file holds every run of the container, the previous one too.
_OPTIONS: Final = {"container", "tailLines", "limitBytes", "previous", "follow", "insecureSkipTLSVerifyBackend"}
_PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_STDIN, _STDOUT, _STDERR, _ERROR = range(4)
_CLOSE: Final = 255  # v5: the next byte is the channel that has ended
_CHUNK: Final = 1 << 16
_FOLLOWED_EACH: Final = 0.5  # seconds


class PodOutput:
    """Of the pods whose kubelet has this state directory."""

    def __init__(self, state: Path) -> None:
        self._state = state

    def answer(self, pod: Mapping[str, Any], subresource: str, query: QueryParams) -> Response:
        """The answer to a request of the subresource by HTTP; raises `StatusError`."""
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        logs = self._state / "logs" / namespace / name
        if subresource == EXEC:
            self.command(pod, query)  # its refusal is the better one
        if subresource != LOG:
            by = " by SPDY, only by WebSocket (kubectl 1.31 or later)" if subresource == EXEC else ""
            raise _not_emulated(
                f"{subresource}{by}: a container is a process of this machine, with the address "
                f"{pod.get('status', {}).get('podIP')}, the files of its pod in "
                f"{self._state / 'run/mounts' / namespace / f'.{name}'} and its output in {logs}"
            )
        container = _container(pod, query.get("container"))["name"]
        file = logs / f"{container}.log"
        if unknown := sorted(query.keys() - _OPTIONS):
            raise _not_emulated(f"{unknown[0]} of a log: the whole output is in {file}")
        try:
            written = file.read_bytes()
        except FileNotFoundError:
            raise bad_request(
                f'container "{file.stem}" in pod "{name}" is waiting to start: ContainerCreating'
            ) from None
        lines = written.splitlines(keepends=True)
        if (tail := _number(query, "tailLines")) is not None:
            lines = lines[max(0, len(lines) - tail) :]
        shown, limit = b"".join(lines), _number(query, "limitBytes")
        if query.get("follow") != "true" or limit is not None:
            return PlainTextResponse(shown[:limit])
        return StreamingResponse(
            self._follow(file, shown, len(written), self._process(pod, container)), media_type="text/plain"
        )

    def _process(self, pod: Mapping[str, Any], container: str) -> RecordedProcess | None:
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        return alive(self._state / "pids", f"probe-{namespace}-{name}-{container}")

    async def _follow(
        self, file: Path, shown: bytes, position: int, process: RecordedProcess | None
    ) -> AsyncIterator[bytes]:
        """What is shown now, then what is written until the container ends."""
        yield shown
        is_alive = True
        while is_alive:
            # Before the last look at the file, which then has all that the container wrote.
            is_alive = process is not None and process.is_alive()
            with file.open("rb") as log:
                log.seek(position)
                written = log.read()
            position += len(written)
            if written:
                yield written
            await asyncio.sleep(_FOLLOWED_EACH if is_alive else 0)

    async def execute(self, websocket: WebSocket, find: Callable[[], Mapping[str, Any]], query: QueryParams) -> None:
        """Run the command of an `exec` in the pod that `find` returns; it may raise `StatusError` as well."""
        try:
            command = self.command(find(), query)
        except StatusError as error:
            await websocket.send_denial_response(error.answer())
        else:
            await command.serve(websocket)

    def command(self, pod: Mapping[str, Any], query: QueryParams) -> PodCommand:
        """The command of an `exec`, to run as the container's own process does; raises `StatusError` without one."""
        container = _container(pod, query.get("container"))
        if (running := self._process(pod, container["name"])) is None:
            raise StatusError(500, "InternalError", f'container not found ("{container["name"]}")')
        if not (words := query.getlist("command")):
            raise bad_request("you must specify at least 1 command for the container")
        variables = Path(f"/proc/{running.pid}/environ").read_bytes().decode(errors="surrogateescape")
        environment = dict(entry.partition("=")[::2] for entry in variables.split("\0") if entry)
        paths = [mount["mountPath"] for mount in container.get("volumeMounts", [])]
        local = localiser(paths, Path(environment[MOUNT_ROOT_VARIABLE]))
        arguments = [local(word) for word in words]
        if query.get("tty") == "true":  # util-linux: a terminal of its own for a command
            arguments = ["script", "--quiet", "--return", "--command", shlex.join(arguments), "/dev/null"]
        return PodCommand(arguments, environment, query.get("stdin") == "true")


@dataclass(frozen=True)
class PodCommand:
    """A command with its whole environment."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    reads: bool  # what the client writes

    async def serve(self, websocket: WebSocket) -> None:
        """Run the command for a client that speaks a channel protocol of Kubernetes; its end ends the command."""
        offered = websocket.scope["subprotocols"]
        if not (spoken := [protocol for protocol in _PROTOCOLS if protocol in offered]):
            await websocket.send_denial_response(PlainTextResponse(f"speak one of {', '.join(_PROTOCOLS)}", 400))
            return
        await websocket.accept(spoken[0])
        try:
            process = await asyncio.create_subprocess_exec(
                *self.arguments,
                env=self.environment,
                stdin=PIPE if self.reads else asyncio.subprocess.DEVNULL,
                stdout=PIPE,
                stderr=PIPE,
            )
        except OSError as error:
            await _end(websocket, None, f"error executing command in container: {error}")
            return
        streams = ((_STDOUT, process.stdout), (_STDERR, process.stderr))
        reading = asyncio.create_task(_read(websocket, process))
        try:
            await asyncio.gather(*(_copy(stream, websocket, channel) for channel, stream in streams if stream))
            await _end(websocket, await process.wait())
        except WebSocketDisconnect:
            pass  # the client has gone; so does its command
        finally:
            reading.cancel()
            if process.returncode is None:
                process.kill()
                await process.wait()


async def _copy(stream: asyncio.StreamReader, websocket: WebSocket, channel: int) -> None:
    while data := await stream.read(_CHUNK):
        await websocket.send_bytes(bytes([channel]) + data)


async def _read(websocket: WebSocket, process: Process) -> None:
    """Hand the client's input on; a client that goes away ends the command."""
    while (message := await websocket.receive())["type"] == "websocket.receive":
        frame = message.get("bytes") or str(message.get("text")).encode()
        if process.stdin is None:
            continue
        with suppress(ConnectionError):  # a command that reads no further
            if frame[0] == _STDIN:
                process.stdin.write(frame[1:])
                await process.stdin.drain()
            elif frame == bytes([_CLOSE, _STDIN]):
                process.stdin.close()
    if process.returncode is None:
        process.kill()


async def _end(websocket: WebSocket, code: int | None, error: str = "") -> None:
    """The status of a command: that of its exit code, or of the error without one."""
    status: dict[str, Any] = {"metadata": {}, "status": "Success"}
    if code is None:
        status |= {"status": "Failure", "reason": "InternalError", "message": error}
    elif code:
        details = {"causes": [{"reason": "ExitCode", "message": str(code)}]}
        message = f"command terminated with non-zero exit code: exit status {code}"
        status |= {"status": "Failure", "reason": "NonZeroExitCode", "message": message, "details": details}
    await websocket.send_bytes(bytes([_ERROR]) + json.dumps(status).encode())
    await websocket.close()


def localiser(mount_paths: Sequence[str], tree: Path) -> Callable[[str], str]:
    """A function that puts `tree` before each path in a string that is a mount path or below one.

    A path begins at the start of the string or after one of `= : , ; " '` and blanks, so a URL's path stays as it is.
    """
    if not mount_paths:
        return lambda text: text
    alternatives = "|".join(re.escape(path.rstrip("/")) for path in sorted(mount_paths, key=len, reverse=True))
    pattern = re.compile(rf"(?:(?<![^\s=:,;\"'])|(?<=file://))(?:{alternatives})(?=[/\s:,;\"']|$)")
    return lambda text: pattern.sub(lambda match: f"{tree}{match[0]}", text)


def _container(pod: Mapping[str, Any], asked: str | None) -> Mapping[str, Any]:
    spec, name = pod["spec"], pod["metadata"]["name"]
    containers: dict[str, dict[str, Any]] = {
        container["name"]: container for container in (*spec["containers"], *spec.get("initContainers", ()))
    }
    if asked is None and len(spec["containers"]) > 1:
        names = " ".join(containers)
        raise bad_request(f"a container name must be specified for pod {name}, choose one of: [{names}]")
    if asked is not None and asked not in containers:
        raise bad_request(f"container {asked} is not valid for pod {name}")
    return containers[asked or spec["containers"][0]["name"]]


def _number(query: Mapping[str, str], option: str) -> int | None:
    text = query.get(option)
    if text is not None and not text.isdecimal():
        raise bad_request(f"{option}: {text} is not a number of at least 0")
    return None if text is None else int(text)


def _not_emulated(what: str) -> StatusError:
    return StatusError(501, "NotEmulated", f"The local cloud does not emulate {what}")
