"""The local cloud's daemon, which stands still at its n-th write until a test has killed somebody.

`python -m tests.engine.fault_daemon <state directory> <n> <before|after> <service|any>` serves as the daemon does, and
prints `serving` when it begins. When the n-th write of a provider plugin comes in (or has taken effect, but is not
answered yet), it prints the name of the service and stops: nothing else happens in this cloud until its standard input
is closed, or its own end.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from starlette.applications import Starlette
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localcloud.core.serving import ServiceServer
from localcloud.core.state_directory import StateDirectory
from localcloud.runtime import daemon
from localcloud.runtime.environment import Prepared


@dataclass
class _Countdown:
    """The writes to one service, or to any."""

    left: int
    service: str

    def is_over(self, service: str) -> bool:
        """Count one more write; tells whether it is the last."""
        if self.service not in (service, "any"):
            return False
        self.left -= 1
        return self.left == 0


class _Watched:
    """Around a service's application."""

    def __init__(self, app: ASGIApp, *, service: str, countdown: _Countdown, moment: str) -> None:
        self._app = app
        self._service = service
        self._countdown = countdown
        self._moment = moment

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_last = _is_write(self._service, scope) and self._countdown.is_over(self._service)

        async def answer(message: Message) -> None:
            if is_last and self._moment == "after" and message["type"] == "http.response.start":
                self._stand_still()
            await send(message)

        if is_last and self._moment == "before":
            self._stand_still()
        await self._app(scope, receive, answer)

    def _stand_still(self) -> None:
        print(self._service, flush=True)
        sys.stdin.readline()


def _is_write(service: str, scope: Scope) -> bool:
    """Whether a provider plugin changes something: not the kubelet, no dry run, no sign-in, no use of a key."""
    if scope["type"] != "http":
        return False
    method, path, query = scope["method"], scope["path"], scope["query_string"].decode()
    match service:
        case "arm" | "graph":
            return method in {"PUT", "POST", "PATCH", "DELETE"}
        case "keyvault":
            return bool(method == "DELETE")
        case "kubernetes":
            by_plugin = "fieldManager=pulumi-kubernetes" in query or (method == "DELETE" and "/pods/" not in path)
            return by_plugin and "dryRun" not in query
        case _:
            return False


def main(state: Path, last: int, moment: str, only: str) -> None:
    """Serve."""
    countdown = _Countdown(last, only)

    def watched(service: str, make: Callable[[Prepared], Starlette]) -> Callable[[Prepared], Starlette]:
        def made(prepared: Prepared) -> Starlette:
            app = make(prepared)
            app.add_middleware(_Watched, service=service, countdown=countdown, moment=moment)
            return app

        return made

    serve = daemon._serve

    async def announced(servers: list[tuple[ServiceServer, socket.socket]]) -> None:
        print("serving", flush=True)
        await serve(servers)

    daemon._APPS |= {service: watched(service, make) for service, make in daemon._APPS.items()}
    daemon._serve = announced
    daemon.run(StateDirectory(state))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
