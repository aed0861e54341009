"""The common part of the HTTP services: errors in the service's own form, request ids, dates, faults."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import uuid
from collections.abc import Callable, Sequence
from datetime import timedelta
from email.utils import format_datetime
from typing import Any, Final, TypeVar

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localcloud.azure.shared.faults import Faults
from localcloud.azure.shared.held import FaultHolder, HeldAnswer, HeldDelivery, Match
from localcloud.azure.shared.refusals import ServiceError, not_emulated, refusal
from localcloud.core import clock
from localcloud.core.clouds import CLOUDS, DEFAULT_CLOUD, Cloud, named
from localcloud.core.serving import DROP
from localcloud.core.store import StoreError

# The Azure cloud that a client asked: by its public names through the proxy, or else the local addresses.

_ASKED: Final = "localcloud.cloud"


class AtPublicNames:
    """Middleware of a service with public names: records the cloud that the Host header names."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        cloud = named(Headers(scope=scope).get("host", "").partition(":")[0])
        if cloud is not None:
            scope.setdefault("extensions", {})[_ASKED] = cloud.cloud
        await self._app(scope, receive, send)


def cloud_of(scope: Scope) -> Cloud:
    """The cloud of a request; the public one for a request to a local address."""
    cloud: Cloud = scope.get("extensions", {}).get(_ASKED, CLOUDS[DEFAULT_CLOUD])
    return cloud


def authority_of(scope: Scope, local: str) -> str:
    """The authority, with a trailing slash, that a challenge names: `local` in an answer to a local address."""
    cloud: Cloud | None = scope.get("extensions", {}).get(_ASKED)
    return local if cloud is None else cloud.authority_host


def is_loopback(host: str) -> bool:
    """Whether this is an address of this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# Delivers an answer as a held fault says: late, slowly, or only in part.


# Seconds between two pieces of a slow body, unless a byte takes longer.
_PAUSE: Final = 0.05


def delivered(held: HeldDelivery, scope: Scope, send: Send) -> Send:
    """A `send` that delivers the answer to the request of `scope` as the held fault says."""
    left = 0
    has_ended = False

    async def deliver(message: Message) -> None:
        nonlocal left, has_ended
        if has_ended:
            return
        if message["type"] == "http.response.start":
            await asyncio.sleep(held.latency)
            length = int(Headers(raw=message["headers"]).get("content-length", "0"))
            left = int(length * (1.0 if held.cut is None else held.cut))
            await send(message)
            return
        body: bytes = message.get("body", b"")
        sent = body if held.cut is None else body[:left]
        left -= len(sent)
        has_ended = held.cut is not None
        for piece in _pieces(sent, held.bytes_per_second):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            if held.bytes_per_second:
                await asyncio.sleep(len(piece) / held.bytes_per_second)
        if has_ended:
            scope["extensions"][DROP]()
        else:
            await send({"type": "http.response.body", "body": b"", "more_body": message.get("more_body", False)})

    return deliver


def _pieces(body: bytes, per_second: float | None) -> list[bytes]:
    size = max(1, round(per_second * _PAUSE) if per_second else len(body))
    return [body[start : start + size] for start in range(0, len(body), size)]


_log: Final = logging.getLogger(__name__)
_Held = TypeVar("_Held", bound=Match)


Render = Callable[[ServiceError], Response]


def azure_error(error: ServiceError) -> Response:
    """`{"error": {"code", "message"}}`, the shape of ARM, Key Vault and Graph."""
    body = {"error": {"code": error.code, "message": error.message}}
    return JSONResponse(body, status_code=error.status, headers=error.headers)


def service_app(
    service: str,
    routes: Sequence[BaseRoute],
    *,
    faults: Faults,
    holder: FaultHolder | None = None,
    render: Render = azure_error,
) -> Starlette:
    """A service's application: its routes, every error in its form, `x-ms-request-id` and `Date` on each answer.

    Handlers raise `ServiceError`, which `render` turns into an answer. `faults` are always there, those of `holder` are
    switched on and off.
    """

    async def refused(request: Request, error: ServiceError) -> Response:
        _log.info("%s refused %s %s: %d %s", service, request.method, request.url.path, error.status, error.code)
        return render(error)

    async def unrouted(request: Request, error: HTTPException) -> Response:
        # Azure may well have it, so it is not another resource's 404.
        return await refused(request, not_emulated(service, f"{request.method} {request.url.path}"))

    async def broken(_: Request, error: Exception) -> Response:
        # The server logs it with its trace: Starlette raises it again after this answer.
        return render(refusal("InternalServerError", service=service, error=type(error).__name__))

    async def not_stored(request: Request, error: StoreError) -> Response:
        _log.error("%s failed %s %s: %s", service, request.method, request.url.path, error)
        return render(ServiceError(error.status, error.code, f"The local {service} service failed: {error}."))

    handlers: dict[Any, Any] = {
        ServiceError: refused,
        HTTPException: unrouted,
        StoreError: not_stored,
        Exception: broken,
    }
    envelope = Middleware(_Envelope, service=service, faults=faults, holder=holder or FaultHolder(), render=render)
    app = Starlette(routes=routes, middleware=[envelope], exception_handlers=handlers)
    # ARM and Key Vault distinguish `/x` from `/x/`, and a redirect would drop a client's bearer.
    app.router.redirect_slashes = False
    return app


async def json_object(request: Request) -> dict[str, Any]:
    """The request's body, which must be a JSON object; an empty body is an empty object."""
    raw = await request.body()
    if not raw.strip():
        return {}
    try:
        body = await request.json()
    except ValueError:
        raise refusal("InvalidRequestContent no JSON") from None
    if not isinstance(body, dict):
        raise refusal("InvalidRequestContent no object")
    return body


def bearer(request: Request) -> str | None:
    """The bearer token of the request, None when it carries none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


class _Envelope:
    """Middleware: latency and failures of `Faults`, held faults, request id and date of each answer."""

    def __init__(self, app: ASGIApp, *, service: str, faults: Faults, holder: FaultHolder, render: Render) -> None:
        self._app = app
        self._service = service
        self._faults = faults
        self._holder = holder
        self._render = render

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if delay := self._faults.latency_of(self._service, scope["method"]):
            await asyncio.sleep(delay)
        request_id = str(uuid.uuid4()).encode()
        try:
            held = self._holder.now()
        except ValueError as error:
            await self._render(ServiceError(500, "InternalServerError", str(error)))(scope, receive, send)
            return
        shift = timedelta(seconds=held.date_shift.get(self._service, 0.0))

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                # RFC 9110 6.6.1: the date of an answer. Clients compare their own clock with it.
                date = format_datetime(clock.now() + shift, usegmt=True).encode()
                message["headers"] = [*message["headers"], (b"x-ms-request-id", request_id), (b"date", date)]
            await deliver(message)

        how, receive = await self._first(held.deliveries, scope, receive)
        deliver = send if how is None else delivered(how, scope, send)
        instead, receive = await self._first(held.answers, scope, receive)
        if instead is not None:
            await self._hold(instead, scope, receive, answer)
            return
        await self._app(scope, receive, answer)

    async def _first(self, faults: Sequence[_Held], scope: Scope, receive: Receive) -> tuple[_Held | None, Receive]:
        """The first fault that applies to the request, and how to receive its body again."""
        for fault in faults:
            matches, receive = await fault.is_about(self._service, scope, receive)
            if matches and self._holder.applies(fault):
                return fault, receive
        return None, receive

    async def _hold(self, held: HeldAnswer, scope: Scope, receive: Receive, send: Send) -> None:
        _log.info("%s held %s %s: %s", self._service, scope["method"], scope["path"], held.status or "no answer")
        if held.after:
            await self._app(scope, receive, _to_nobody)
        if held.status is None:
            scope["extensions"][DROP]()
        else:
            headers = {} if held.retry_after is None else {"Retry-After": str(held.retry_after)}
            await self._render(ServiceError(held.status, held.code, held.message, headers))(scope, receive, send)


async def _to_nobody(_: Message) -> None:
    """An answer that is lost."""
