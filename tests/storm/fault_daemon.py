"""The local cloud's daemon, which stands still at a chosen request until a test has killed somebody.

`python -m tests.storm.fault_daemon <state directory> <n> <before|after> <what>` serves as the daemon does, and prints
`serving` when it begins. `what` is a step of a credential (`Step`), a service, or `any`. When the n-th such write of a
provider plugin comes in (or has taken effect, but is not answered yet), it prints the module of the plugin and stops:
nothing else happens in this cloud until its standard input is closed, or its own end.

With several points, a request at one of them waits alone, for a line on the standard input or its end; the requests to
the next point are counted from then on. `what` may be `request` then: any request of a command to ARM or Graph.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from identity.credentials.secret_tags import GENERATION
from localcloud.testing.hosts import ServiceServer
from localcloud.testing.running import Prepared, Proxy, StateDirectory, daemon

ANY: Final = "any"
REQUEST: Final = "request"
_OWN: Final = "-m provider"
_PLUGINS: Final = {
    "arm": "emulated.azure_native",
    "graph": "emulated.azuread",
    "kubernetes": "emulated.kubernetes",
    "keyvault": _OWN,
    "entra": _OWN,
}


class Step(StrEnum):
    """What a plugin does to a new certificate: it writes (`PROVE`: signs in), and does so once or more often."""

    REGISTER = "register"
    PROVE = "prove"
    DELIVER = "deliver"
    DISABLE = "disable"


@dataclass
class _Countdown:
    """The writes of one kind until a point: `what` is a step, a service, `any` or `request`."""

    left: int
    moment: str
    what: str
    registered: set[bytes] = field(default_factory=set)
    """Digests of the certificates that were registered since this daemon began."""

    def is_over(self, service: str, scope: Scope, body: bytes) -> bool:
        """Count one more request, if it is one of these; tells whether it is the last."""
        step = self._step(service, scope, body)
        matches = (
            step == self.what
            or (_is_write(service, scope) and self.what in (service, ANY))
            or (self.what == REQUEST and service in ("arm", "graph"))
        )
        self.left -= matches
        return matches and self.left == 0

    def _step(self, service: str, scope: Scope, body: bytes) -> Step | None:
        match service, scope["method"]:
            case "graph", "PATCH" if added := set(_added(body)):
                self.registered |= added
                return Step.REGISTER
            case "entra", "POST" if self.registered & set(_presented(body)):
                return Step.PROVE
            case "arm", "PUT" if _is_secret(scope) and GENERATION in json.loads(body).get("tags", ()):
                return Step.DELIVER
            case "keyvault", "PATCH":
                return Step.DISABLE
            case _:
                return None


class _Watched:
    """Around a service's application."""

    def __init__(self, app: ASGIApp, *, service: str, points: list[_Countdown], waits_alone: bool) -> None:
        self._app = app
        self._service = service
        self._points = points
        self._waits_alone = waits_alone

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_read = scope["method"] == "GET"
        # A watch waits for its own end where another request has its body.
        body = b"" if is_read else await Request(scope, receive).body()
        moment = self._points[0].moment if self._points and self._points[0].is_over(self._service, scope, body) else ""
        if moment:
            self._points.pop(0)
        replayed: list[Message] = [{"type": "http.request", "body": body}] if not is_read else []

        async def received() -> Message:
            return replayed.pop() if replayed else await receive()

        async def answer(message: Message) -> None:
            if moment == "after" and message["type"] == "http.response.start":
                await self._stand_still(scope)
            await send(message)

        if moment == "before":
            await self._stand_still(scope)
        await self._app(scope, received, answer)

    async def _stand_still(self, scope: Scope) -> None:
        print(_OWN if _is_secret(scope) else _PLUGINS[self._service], flush=True)
        if self._waits_alone:
            await asyncio.to_thread(sys.stdin.readline)
        else:
            sys.stdin.readline()


def _is_write(service: str, scope: Scope) -> bool:
    """Whether a provider plugin changes something: not the kubelet, no dry run, no sign-in, no use of a key."""
    method, path, query = scope["method"], scope["path"], scope["query_string"].decode()
    match service:
        case "arm" | "graph":
            return method in {"PUT", "POST", "PATCH", "DELETE"}
        case "keyvault":
            return method in {"PATCH", "DELETE"}
        case "kubernetes":
            by_plugin = "fieldManager=pulumi-kubernetes" in query or (method == "DELETE" and "/pods/" not in path)
            return by_plugin and "dryRun" not in query
        case _:
            return False


def _is_secret(scope: Scope) -> bool:
    return "/providers/microsoft.keyvault/vaults/" in scope["path"].lower() and "/secrets/" in scope["path"].lower()


def _added(body: bytes) -> Iterator[bytes]:
    """Digests of the certificates that a PATCH of an application adds; those there already come without their key."""
    changes: dict[str, Any] = json.loads(body)
    for key_credential in changes.get("keyCredentials", ()):
        if text := key_credential.get("key"):
            der = x509.load_pem_x509_certificate(base64.b64decode(text)).public_bytes(Encoding.DER)
            yield hashlib.sha1(der, usedforsecurity=False).digest()
            yield hashlib.sha256(der).digest()


def _presented(body: bytes) -> Iterator[bytes]:
    """The digest of the certificate that a token request is signed with."""
    for assertion in parse_qs(body.decode()).get("client_assertion", ()):
        header: dict[str, str] = json.loads(_base64url(assertion.partition(".")[0]))
        yield from (_base64url(header[name]) for name in ("x5t", "x5t#S256") if name in header)


def _base64url(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def main(state: Path, *arguments: str) -> None:
    """Serve."""
    points = [_Countdown(int(last), *at) for last, *at in zip(*[iter(arguments)] * 3, strict=True)]
    waits_alone = len(points) > 1

    def watched(service: str, make: Callable[[Prepared], Starlette]) -> Callable[[Prepared], Starlette]:
        def made(prepared: Prepared) -> Starlette:
            app = make(prepared)
            app.add_middleware(_Watched, service=service, points=points, waits_alone=waits_alone)
            return app

        return made

    serve = daemon._serve

    async def announced(
        servers: list[tuple[ServiceServer, socket.socket]], proxy: Proxy, proxied: socket.socket
    ) -> None:
        print("serving", flush=True)
        await serve(servers, proxy, proxied)

    daemon._APPS |= {service: watched(service, make) for service, make in daemon._APPS.items()}
    daemon._serve = announced
    daemon.run(StateDirectory(state))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
