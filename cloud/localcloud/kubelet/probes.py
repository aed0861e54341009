"""readinessProbe and livenessProbe by httpGet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from localcloud.kubelet.http_get import HttpGet, HttpGetter, NoAnswerError
from localcloud.kubernetes.calls import Object

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
            status = await http.status(self._request, self.timeout)
        except NoAnswerError as error:
            return f'Get "{self.url}": {error}'
        return None if 200 <= status < 400 else f"HTTP probe failed with statuscode: {status}"

    @cached_property
    def _request(self) -> HttpGet:
        return HttpGet.of(self.url, self.headers)


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
