"""What clients asked the services of Azure: a line of JSON for each request, without anything that could be secret."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_LIMIT_BYTES: Final = 5_000_000
"""Of the file; an older file of the same size is kept."""


@dataclass(frozen=True)
class LoggedRequest:
    """A request that was answered: no query, header or body, as these may hold a token or a key."""

    time: str
    """RFC 3339, UTC."""
    service: str
    """As in `localcloud.azure.shared.matching.SERVICES`: entra, arm, graph, keyvault, blob, imds, aks-webhooks."""
    method: str
    host: str
    path: str
    status: int
    client: str
    """The `User-Agent`, as it was sent, and MSAL's own name if it gives one (`x-client-sku`)."""


class RequestLog:
    """Appends to `file`; wraps a service's application with `around`."""

    def __init__(self, file: Path) -> None:
        self._handler = RotatingFileHandler(file, maxBytes=_LIMIT_BYTES, backupCount=1, delay=True)

    def around(self, service: str, app: ASGIApp) -> ASGIApp:
        """`app`, whose answers are logged as those of `service`."""

        async def logged(scope: Scope, receive: Receive, send: Send) -> None:
            async def answer(message: Message) -> None:
                if message["type"] == "http.response.start":
                    self._append(service, scope, message["status"])
                await send(message)

            await app(scope, receive, answer)

        return logged

    def close(self) -> None:
        self._handler.close()

    def _append(self, service: str, scope: Scope, status: int) -> None:
        headers = Headers(scope=scope)
        request = LoggedRequest(
            time=datetime.now(UTC).isoformat(timespec="milliseconds"),
            service=service,
            method=scope["method"],
            host=headers.get("host", ""),
            path=scope["path"],
            status=status,
            client=" ".join(headers[name] for name in ("user-agent", "x-client-sku") if name in headers),
        )
        line = json.dumps(asdict(request))
        self._handler.emit(logging.LogRecord(__name__, logging.INFO, "", 0, line, None, None))


def read(file: Path) -> Iterator[LoggedRequest]:
    """The requests of a log, oldest first; none without a file. An incomplete last line is left out."""
    for log in (file.with_name(file.name + ".1"), file):
        if log.exists():
            with log.open(encoding="utf-8") as lines:
                yield from (LoggedRequest(**json.loads(line)) for line in lines if line.endswith("\n"))
