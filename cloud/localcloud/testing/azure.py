"""The local Azure in this process: its services as applications, what its tenant has, and a store for it.

`assemble` makes one over `open_store`; `localcloud.testing.arm` has one with a subscription and a deployer. Serve an
application over a socket with the fixture `serve`, or speak to it without a network by `ask`.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import httpx

from localcloud.azure.arm.api import app as arm_app
from localcloud.azure.authorization import built_in_roles
from localcloud.azure.blob.api import app as blob_app
from localcloud.azure.blob.contents import Blobs
from localcloud.azure.conditions import Facts
from localcloud.azure.conditions import parse as parse_condition
from localcloud.azure.entra.api import app as entra_app
from localcloud.azure.entra.federation import Issuers
from localcloud.azure.graph.api import app as graph_app
from localcloud.azure.graph.permissions import WRITE_OWNED
from localcloud.azure.imds.api import app as imds_app
from localcloud.azure.keyvault.api import app as keyvault_app
from localcloud.azure.keyvault.secrets import SECRET_KIND, Vaults
from localcloud.azure.local_azure import LocalAzure, assemble
from localcloud.azure.resource_store import Resources
from localcloud.azure.shared.faults import NO_DELAYS
from localcloud.azure.shared.refusals import refusal
from localcloud.azure.tenant.objects import Application, KeyCredential, PasswordCredential, ServicePrincipal
from localcloud.azure.tenant.tokens import Caller
from localcloud.core.store import SEAL_KEY_BYTES, Document, Store

__all__ = [
    "SEAL_KEY_BYTES",
    "SECRET_KIND",
    "WRITE_OWNED",
    "Application",
    "Blobs",
    "Caller",
    "Document",
    "Facts",
    "Issuers",
    "KeyCredential",
    "LocalAzure",
    "PasswordCredential",
    "Resources",
    "ServicePrincipal",
    "Store",
    "Vaults",
    "arm_app",
    "ask",
    "assemble",
    "blob_app",
    "built_in_roles",
    "entra_app",
    "graph_app",
    "imds_app",
    "keyvault_app",
    "open_store",
    "parse_condition",
    "refusal",
    "send",
]

_SEAL_KEY = bytes(SEAL_KEY_BYTES)


def open_store(file: Path) -> Store:
    """A store of the test's own, empty but for the signing key, which takes longer to make than most tests run."""
    file.write_bytes(_file_with_signing_key())
    return Store(file, _SEAL_KEY)


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


@cache
def _file_with_signing_key() -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "state.sqlite")
        store = Store(file, _SEAL_KEY)
        assemble(store, NO_DELAYS, authority_host="https://127.0.0.1/").tokens.jwks()
        store.close()
        return file.read_bytes()
