"""Delivers an answer as a held fault says: late, slowly, or only in part."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.datastructures import Headers
from starlette.types import Message, Scope, Send

from localcloud.azure.shared.held import HeldDelivery
from localcloud.core.serving import DROP

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
