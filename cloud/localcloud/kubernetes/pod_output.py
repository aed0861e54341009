"""What a real API server asks the kubelet of a pod: the log of a container, read from its file here, and `exec`.

A container is a process of this machine, so what `exec` would show is in the pod's folder, which the refusal names.
Sources: kubernetes `pkg/registry/core/pod/{strategy,rest/log}.go` (options, messages).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from starlette.responses import PlainTextResponse, Response

from localcloud.kubernetes.errors import StatusError, bad_request

LOG: Final = "log"
SUBRESOURCES: Final = (LOG, "exec", "attach", "portforward")
# The file holds every run of the container, the previous one too.
_OPTIONS: Final = {"container", "tailLines", "limitBytes", "previous", "follow", "insecureSkipTLSVerifyBackend"}


class PodOutput:
    """Of the pods whose kubelet has this state directory."""

    def __init__(self, state: Path) -> None:
        self._state = state

    def answer(self, pod: Mapping[str, Any], subresource: str, query: Mapping[str, str]) -> Response:
        """The answer to a GET of the subresource; raises `StatusError`."""
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        logs = self._state / "logs" / namespace / name
        if subresource != LOG:
            raise _not_emulated(
                f"{subresource}: a container is a process of this machine, with the files of its pod in "
                f"{self._state / 'run/mounts' / namespace / f'.{name}'} and its output in {logs}"
            )
        file = logs / f"{_container(pod, query.get('container'))}.log"
        if unknown := sorted(query.keys() - _OPTIONS):
            raise _not_emulated(f"{unknown[0]} of a log: the whole output is in {file}")
        if query.get("follow") == "true":
            raise _not_emulated(f"follow of a log: use tail -f {file}")
        try:
            lines = file.read_bytes().splitlines(keepends=True)
        except FileNotFoundError:
            raise bad_request(
                f'container "{file.stem}" in pod "{name}" is waiting to start: ContainerCreating'
            ) from None
        if (tail := _number(query, "tailLines")) is not None:
            lines = lines[max(0, len(lines) - tail) :]
        return PlainTextResponse(b"".join(lines)[: _number(query, "limitBytes")])


def _container(pod: Mapping[str, Any], asked: str | None) -> str:
    spec, name = pod["spec"], pod["metadata"]["name"]
    names = [container["name"] for container in (*spec["containers"], *spec.get("initContainers", ()))]
    if asked is None and len(spec["containers"]) > 1:
        raise bad_request(f"a container name must be specified for pod {name}, choose one of: [{' '.join(names)}]")
    if asked is not None and asked not in names:
        raise bad_request(f"container {asked} is not valid for pod {name}")
    return asked or str(names[0])


def _number(query: Mapping[str, str], option: str) -> int | None:
    text = query.get(option)
    if text is not None and not text.isdecimal():
        raise bad_request(f"{option}: {text} is not a number of at least 0")
    return None if text is None else int(text)


def _not_emulated(what: str) -> StatusError:
    return StatusError(501, "NotEmulated", f"The local cloud does not emulate {what}")
