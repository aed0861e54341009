"""The Azure cloud that a client asked: by its public names through the proxy, or else the local addresses."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from localcloud.core.clouds import CLOUDS, DEFAULT_CLOUD, Cloud
from localcloud.core.public_names import named

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
