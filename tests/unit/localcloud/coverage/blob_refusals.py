"""A request for each refusal of Blob Storage that `localcloud/COVERAGE.md` lists, by the name of its case."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

import httpx

from localcloud.azure.tenant.objects import ServicePrincipal
from tests.unit.localcloud.arm_world import GROUP, storage_account_body
from tests.unit.localcloud.coverage.cloud import CoverageCloud

ACCOUNT: Final = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/hc1oidc"
STORAGE: Final = "https://storage.azure.com"
_BLOCK: Final = {"x-ms-blob-type": "BlockBlob"}
_VERSION: Final = {"x-ms-version": "2017-11-09"}


def issuer(cloud: CoverageCloud, access: str = "Container", **properties: Any) -> ServicePrincipal:
    """An account with a container, made through ARM; returns who may write its blobs."""
    assert cloud.call("PUT", ACCOUNT, storage_account_body(**properties)).is_success
    container = {"properties": {"publicAccess": access}}
    path = f"{ACCOUNT}/blobServices/default/containers/hc1oidc"
    assert cloud.call("PUT", path, container).is_success
    return cloud.principal(("Storage Blob Data Contributor", ACCOUNT))


def request(
    cloud: CoverageCloud,
    method: str,
    path: str = "/hc1oidc/jwks",
    *,
    caller: ServicePrincipal | None = None,
    audience: str = STORAGE,
    host: str = "hc1oidc.blob.core.windows.net",
    content: bytes = b"{}",
    headers: Mapping[str, str] | None = None,
) -> httpx.Response:
    """One request to the data plane, without a bearer unless a caller is named."""
    sent = dict(headers or {})
    if caller is not None:
        sent["Authorization"] = f"Bearer {cloud.cloud.tokens.issue(caller, audience)}"

    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(cloud.blob_service)
        async with httpx.AsyncClient(transport=transport, base_url=f"https://{host}") as client:
            body = content if method == "PUT" else None
            return await client.request(method, path, headers=sent, content=body)

    return asyncio.run(asked())


def _written(cloud: CoverageCloud, headers: Mapping[str, str], **options: Any) -> httpx.Response:
    return request(cloud, "PUT", caller=issuer(cloud), headers=headers, **options)


def _by_nobody(cloud: CoverageCloud) -> httpx.Response:
    issuer(cloud)
    return request(cloud, "PUT", caller=cloud.nobody(), headers={**_VERSION, **_BLOCK})


def _anonymous(cloud: CoverageCloud, method: str, access: str = "Container") -> httpx.Response:
    issuer(cloud, access)
    return request(cloud, method)


def _on_private_account(cloud: CoverageCloud) -> httpx.Response:
    issuer(cloud, "None", allowBlobPublicAccess=False)
    return request(cloud, "GET")


REFUSALS: Final[Mapping[str, Callable[[CoverageCloud], httpx.Response]]] = {
    "unknown account": lambda cloud: request(cloud, "GET", host="nobody.blob.core.windows.net"),
    "write without a bearer": lambda cloud: _anonymous(cloud, "PUT"),
    "token for another service": lambda cloud: _written(cloud, _VERSION, audience="https://vault.azure.net"),
    "no version": lambda cloud: _written(cloud, _BLOCK),
    "no role": _by_nobody,
    "account without public access": _on_private_account,
    "private container": lambda cloud: _anonymous(cloud, "GET", "None"),
    "absent container": lambda cloud: _written(cloud, _VERSION, path="/other/jwks"),
    "absent blob": lambda cloud: _anonymous(cloud, "GET"),
    "write without a blob type": lambda cloud: _written(cloud, _VERSION),
    "blob that is not emulated": lambda cloud: _written(cloud, _VERSION | {"x-ms-blob-type": "PageBlob"}),
}
