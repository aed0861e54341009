"""What the HTTP services of the local Azure share: errors in the service's own form, request ids, latency."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localcloud.azure.shared.faults import Faults

_log: Final = logging.getLogger(__name__)


class ServiceError(Exception):
    """An error answer: HTTP status, the service's own error code and message, and additional headers."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.headers = dict(headers or {})


Render = Callable[[ServiceError], Response]


def azure_error(error: ServiceError) -> Response:
    """`{"error": {"code", "message"}}`, the shape of ARM, Key Vault and Graph."""
    body = {"error": {"code": error.code, "message": error.message}}
    return JSONResponse(body, status_code=error.status, headers=error.headers)


def service_app(
    service: str, routes: Sequence[BaseRoute], *, faults: Faults, render: Render = azure_error
) -> Starlette:
    """A service's application: its routes, every error in its form, `x-ms-request-id` on each answer.

    Args:
        service: the name that `Faults.latency` uses: entra, graph, arm, keyvault, imds.
        routes: the service's routes; handlers raise `ServiceError`.
        faults: where latency and faults come from.
        render: turns a `ServiceError` into the service's answer.
    """

    async def refused(request: Request, error: ServiceError) -> Response:
        _log.info("%s refused %s %s: %d %s", service, request.method, request.url.path, error.status, error.code)
        return render(error)

    async def unrouted(request: Request, error: HTTPException) -> Response:
        if error.status_code == 405:
            code, what = "MethodNotAllowed", f"The {service} service does not offer {request.method}"
        else:
            code, what = "NotFound", f"The {service} service has nothing"
        return render(ServiceError(error.status_code, code, f"{what} at {request.url.path}.", error.headers))

    async def broken(_: Request, error: Exception) -> Response:
        # The server logs it with its trace: Starlette raises it again after this answer.
        return render(
            ServiceError(500, "InternalServerError", f"The local {service} service failed: {type(error).__name__}.")
        )

    handlers: dict[Any, Any] = {ServiceError: refused, HTTPException: unrouted, Exception: broken}
    middleware = [Middleware(_Envelope, service=service, faults=faults, render=render)]
    app = Starlette(routes=routes, middleware=middleware, exception_handlers=handlers)
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
        raise ServiceError(
            400, "InvalidRequestContent", "The request content was invalid and could not be deserialized."
        ) from None
    if not isinstance(body, dict):
        raise ServiceError(400, "InvalidRequestContent", "The request content was invalid: a JSON object is expected.")
    return body


def bearer(request: Request) -> str | None:
    """The bearer token of the request, None when it carries none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


class _Envelope:
    """Around every request: the latency of `Faults` before it, its share of failures, a request id on each answer."""

    def __init__(self, app: ASGIApp, *, service: str, faults: Faults, render: Render) -> None:
        self._app = app
        self._service = service
        self._faults = faults
        self._chance = faults.random()
        self._unavailable = render(
            ServiceError(
                503, "ServiceUnavailable", f"The {service} service is unavailable. Try again.", {"Retry-After": "1"}
            )
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if delay := self._faults.latency_of(self._service, scope["method"]):
            await asyncio.sleep(delay)
        request_id = str(uuid.uuid4()).encode()

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-ms-request-id", request_id)]
            await send(message)

        fails = self._chance.random() < self._faults.error_rate_of(self._service, scope["method"])
        await (self._unavailable if fails else self._app)(scope, receive, answer)
