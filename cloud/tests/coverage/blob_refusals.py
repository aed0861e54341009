"""A request for each refusal of Blob Storage that `COVERAGE.md` lists, by the name of its case."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime, timedelta
from email.utils import format_datetime
from typing import Any, Final

import httpx

from localcloud.azure.blob.contents import AccountKeys
from localcloud.azure.tenant.objects import ServicePrincipal
from localcloud.core import clock
from localcloud.testing.arm import GROUP, storage_account_body
from localcloud.testing.azure import ask
from tests.coverage.cloud import CoverageCloud, Provoke, after

ACCOUNT: Final = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/hc1oidc"
STORAGE: Final = "https://storage.azure.com"
_BLOCK: Final = {"x-ms-blob-type": "BlockBlob"}
_NO_KEY: Final = base64.b64encode(bytes(64)).decode()
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
    token = None if caller is None else cloud.cloud.tokens.issue(caller, audience)
    body = content if method == "PUT" else None
    return ask(cloud.blob_service, f"https://{host}", method, path, token=token, headers=headers, content=body)


def signed(
    cloud: CoverageCloud,
    method: str,
    path: str = "/hc1oidc/jwks",
    *,
    key: str | None = None,
    account: str = "hc1oidc",
    at: datetime | None = None,
    content: bytes = b"{}",
    headers: Mapping[str, str] | None = None,
    **options: Any,
) -> httpx.Response:
    """One request signed with the account's first key, unless another one is given, as Microsoft's clients sign it."""
    date = format_datetime(at or clock.now(), usegmt=True)
    sent = {"x-ms-version": "2026-02-06", "x-ms-date": date, **(headers or {})}
    length = str(len(content)) if method == "PUT" and content else ""
    own = sorted(f"{name}:{value}" for name, value in sent.items() if name.startswith("x-ms-"))
    values = ["", "", length, "", sent.get("Content-Type", ""), "", "", "", "", "", ""]
    text = "\n".join([method, *values, *own, f"/{account}{path}"])
    secret = base64.b64decode(key or AccountKeys(cloud.store).of("hc1oidc")["key1"])
    signature = base64.b64encode(hmac.digest(secret, text.encode(), hashlib.sha256)).decode()
    authorization = {"Authorization": f"SharedKey {account}:{signature}"}
    return request(cloud, method, path, content=content, headers=authorization | sent, **options)


def _signed_write(cloud: CoverageCloud, *, keys: bool = True, **options: Any) -> httpx.Response:
    issuer(cloud, allowSharedKeyAccess=keys)
    return signed(cloud, "PUT", **options)


def _signed_with(cloud: CoverageCloud, **headers: str) -> httpx.Response:
    return _signed_write(cloud, headers={name.replace("_", "-"): value for name, value in headers.items()})


def _written(cloud: CoverageCloud, headers: Mapping[str, str], **options: Any) -> httpx.Response:
    return request(cloud, "PUT", caller=issuer(cloud), headers=headers, **options)


def _written_twice(cloud: CoverageCloud) -> httpx.Response:
    sent = _VERSION | _BLOCK | {"if-none-match": "*"}
    assert _written(cloud, sent).is_success
    return _written(cloud, sent)


def _anonymous(
    cloud: CoverageCloud, method: str, access: str = "Container", *, path: str = "/hc1oidc/jwks", **account: Any
) -> httpx.Response:
    issuer(cloud, access, **account)
    return request(cloud, method, path)


def _listed(cloud: CoverageCloud, query: str) -> httpx.Response:
    caller = issuer(cloud)
    return request(cloud, "GET", f"/hc1oidc?{query}", caller=caller, headers=_VERSION)


def _copied(cloud: CoverageCloud, source: str) -> httpx.Response:
    return _written(cloud, _VERSION | {"x-ms-copy-source": source})


def _copied_from_a_closed_container(cloud: CoverageCloud) -> httpx.Response:
    issuer(cloud)
    caller = cloud.principal(("Storage Blob Data Contributor", f"{ACCOUNT}/blobServices/default/containers/hc1oidc"))
    source = {"x-ms-copy-source": "https://hc1oidc.blob.core.windows.net/closed/jwks"}
    return request(cloud, "PUT", caller=caller, headers=_VERSION | source)


def _written_of(cloud: CoverageCloud, kind: str) -> httpx.Response:
    content = f"<BlockList><{kind}>MQ==</{kind}></BlockList>".encode()
    return _written(cloud, _VERSION, path="/hc1oidc/jwks?comp=blocklist", content=content)


def _made_container(cloud: CoverageCloud, name: str) -> httpx.Response:
    return request(cloud, "PUT", f"/{name}", caller=issuer(cloud), content=b"", headers=_VERSION)


REFUSALS: Final[Mapping[str, Provoke]] = {
    "unknown account": lambda cloud: request(cloud, "GET", host="nobody.blob.core.windows.net"),
    "write without a bearer": lambda cloud: _anonymous(cloud, "PUT"),
    "token for another service": lambda cloud: _written(cloud, _VERSION, audience="https://vault.azure.net"),
    "no version": lambda cloud: _written(cloud, _BLOCK),
    "no role": after(
        issuer, then=lambda cloud: request(cloud, "PUT", caller=cloud.nobody(), headers={**_VERSION, **_BLOCK})
    ),
    "no role for tags": lambda cloud: _written(cloud, _VERSION | _BLOCK | {"x-ms-tags": "a=b"}),
    "signature by no key of the account": lambda cloud: _signed_write(cloud, key=_NO_KEY),
    "signature with the name of another account": lambda cloud: _signed_write(cloud, account="other"),
    "signature of sixteen minutes ago": lambda cloud: _signed_write(cloud, at=clock.now() - timedelta(minutes=16)),
    "signature without a date": lambda cloud: _signed_with(cloud, x_ms_date=""),
    "signature for an account without Shared Key": lambda cloud: _signed_write(cloud, keys=False),
    "signature of an early version": lambda cloud: _signed_with(cloud, x_ms_version="2014-02-14"),
    "signature of the scheme SharedKeyLite": lambda cloud: _signed_with(cloud, Authorization="SharedKeyLite x:y"),
    "account without public access": lambda cloud: _anonymous(cloud, "GET", "None", allowBlobPublicAccess=False),
    "private container": lambda cloud: _anonymous(cloud, "GET", "None"),
    "absent container": lambda cloud: _written(cloud, _VERSION, path="/other/jwks"),
    "absent blob": lambda cloud: _anonymous(cloud, "GET"),
    "write of a blob that is there, where there shall be none": _written_twice,
    "write without a blob type": lambda cloud: _written(cloud, _VERSION),
    "tags that are not allowed": lambda cloud: _signed_write(cloud, headers=_BLOCK | {"x-ms-tags": "a=b%23"}),
    "copy of an absent blob": lambda cloud: _copied(cloud, "https://hc1oidc.blob.core.windows.net/hc1oidc/absent"),
    "copy from a closed container": _copied_from_a_closed_container,
    "list for anybody of a container whose blobs alone are public": lambda cloud: _anonymous(
        cloud, "GET", "Blob", path="/hc1oidc?restype=container&comp=list"
    ),
    "list of no entries": lambda cloud: _listed(cloud, "restype=container&comp=list&maxresults=0"),
    "list after a marker that is none": lambda cloud: _listed(cloud, "restype=container&comp=list&marker=%21"),
    "list with snapshots": lambda cloud: _listed(cloud, "restype=container&comp=list&include=snapshots"),
    "container's properties": lambda cloud: _listed(cloud, "restype=container"),
    "container that is there": lambda cloud: _made_container(cloud, "hc1oidc?restype=container"),
    "container of another name": lambda cloud: _made_container(cloud, "Made?restype=container"),
    "blob of the root container": lambda cloud: _made_container(cloud, "blob"),
    "copy from another account": lambda cloud: _copied(cloud, "https://other.blob.core.windows.net/hc1oidc/jwks"),
    "list with a block that was not put": lambda cloud: _written_of(cloud, "Latest"),
    "list with a committed block": lambda cloud: _written_of(cloud, "Committed"),
    "blob that is not emulated": lambda cloud: _written(cloud, _VERSION | {"x-ms-blob-type": "PageBlob"}),
}
