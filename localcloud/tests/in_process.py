"""Requests into an application of the local cloud, without a network."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx


async def send(
    app: Any,
    base: str,
    method: str,
    path: str,
    *,
    token: str | None = None,
    headers: Mapping[str, str] | None = None,
    **options: Any,
) -> httpx.Response:
    """One request to a URL below `base`; `token` is its bearer, `options` are as httpx takes them."""
    sent = {**(headers or {}), **({"Authorization": f"Bearer {token}"} if token else {})}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=base) as client:
        return await client.request(method, path, headers=sent, **options)


def ask(app: Any, base: str, method: str, path: str, **options: Any) -> httpx.Response:
    """`send`, awaited."""
    return asyncio.run(send(app, base, method, path, **options))
