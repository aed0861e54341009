"""Blob Storage's data plane: block blobs, written whole by a role or the account's key, read by these or by anybody.

The account is named by the Host header. Source: REST reference of Blob Storage (Put Blob, Get Blob, Delete Blob,
Copy Blob, List Blobs, "Authorize with Microsoft Entra ID", "Configure anonymous read access"). Left out: shared access
signatures, blocks, conditions, leases, copies between accounts, and all of index tags but writing them with the
blob.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from email.utils import format_datetime
from typing import Final
from urllib.parse import unquote, urlsplit

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from localcloud.azure.blob import errors, listing, ranges, shared_key, tags
from localcloud.azure.blob.accounts import AccountKeys, Accounts, allows_anyone, is_public
from localcloud.azure.blob.contents import Blob, Blobs, md5_of
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.resource_store import Resources
from localcloud.azure.shared.asked_cloud import authority_of, cloud_of
from localcloud.azure.shared.http import ServiceError, bearer, service_app
from localcloud.azure.shared.understood import Understood, check_headers, check_query
from localcloud.azure.tenant.resources import audiences
from localcloud.azure.tenant.tokens import InvalidTokenError
from localcloud.core.store import Document

_PATH: Final = "/{container}/{name:path}"
_LIST: Final = {"restype": "container", "comp": "list"}
_LISTED: Final = Understood.of("restype comp prefix delimiter marker maxresults")
_READ: Final = Understood.of(headers=" ".join(ranges.HEADERS))
_COPY_SOURCE: Final = "x-ms-copy-source"
_HASHES: Final = ("content-md5", "x-ms-blob-content-md5")
_WRITTEN: Final = Understood.of(
    headers=" ".join(
        ("x-ms-blob-type x-ms-blob-content-type x-ms-blob-cache-control", tags.HEADER, _COPY_SOURCE, *_HASHES)
    ),
    body=None,
)
_ACTION: Final = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"
# The first version that takes tokens of Entra ID.
_FIRST_VERSION: Final = "2017-11-09"


def app(cloud: LocalAzure) -> Starlette:
    """The data plane of every storage account of the local cloud, to be served over TLS."""
    plane = _DataPlane(cloud)
    routes = [
        plane.route("GET", _PATH, "read", plane.get_blob, _READ),
        plane.route("PUT", _PATH, "write", plane.put_blob, _WRITTEN),
        plane.route("DELETE", _PATH, "delete", plane.delete_blob),
        plane.route("GET", "/{container}", "read", plane.list_blobs, _LISTED),
    ]
    return service_app("blob", routes, faults=cloud.faults, holder=cloud.holder, render=errors.render)


@dataclass(frozen=True)
class _BlobCall:
    """An authorized request."""

    request: Request
    account: str
    container: str
    name: str


_Handler = Callable[[_BlobCall], Awaitable[Response]]


class _DataPlane:
    def __init__(self, cloud: LocalAzure) -> None:
        self._cloud = cloud
        self._accounts = Accounts(Resources(cloud.store))
        self._blobs = Blobs(cloud.store)
        self._keys = AccountKeys(cloud.store)

    def route(
        self, method: str, path: str, operation: str, handler: _Handler, reads: Understood | None = None
    ) -> Route:
        """A route with the checks of every request: account, caller, what the operation understands, container.

        `reads`: options and headers of the operation beside those of all; its body, if it has one, is the content.
        """
        understood = Understood.of() if reads is None else reads

        def refusal(what: str) -> ServiceError:
            return errors.not_emulated(f"{what} in {method} {path}")

        async def authorized(request: Request) -> Response:
            account = self._account(request)
            container = self._accounts.container(account, request.path_params["container"])
            self._admit(request, account, container, operation)
            check_query(request, {"timeout", *understood.query}, refusal)
            check_headers(request.headers, understood.headers, refusal)
            if understood.body is not None and await request.body():
                raise refusal("the body")
            if container is None:
                raise errors.container_not_found()
            name = request.path_params.get("name", "")
            return await handler(_BlobCall(request, account["name"], container["name"], name))

        return Route(path, authorized, methods=[method])

    async def list_blobs(self, call: _BlobCall) -> Response:
        query = call.request.query_params
        if not _LIST.items() <= dict(query).items():
            raise errors.not_emulated("operations of containers but List Blobs")
        asked = listing.Asked.of(query)
        blobs = self._blobs.below(call.account, call.container, asked.prefix)
        endpoint = f"https://{call.account}.blob.{cloud_of(call.request.scope).storage_suffix}"
        body = listing.page(call.container, endpoint, asked, blobs)
        return Response(body, media_type="application/xml")

    async def get_blob(self, call: _BlobCall) -> Response:
        blob = self._blobs.get(call.account, call.container, call.name)
        if blob is None:
            raise errors.blob_not_found()
        cached = {"Cache-Control": blob.cache_control} if blob.cache_control else {}
        tagged = {"x-ms-tag-count": str(len(blob.tags))} if blob.tags else {}
        # Each write replaces the whole blob.
        created = {"x-ms-creation-time": format_datetime(blob.changed, usegmt=True)}
        own = {"Content-Type": blob.content_type, "x-ms-blob-type": "BlockBlob"}
        headers = {**_headers(blob), **created, **cached, **tagged, **own, "Accept-Ranges": "bytes"}
        digest, size = md5_of(blob.content), len(blob.content)
        part = ranges.BlobRange.of(call.request.headers, size)
        if part is None:
            return Response(blob.content, headers={**headers, "Content-MD5": digest})
        headers |= {"x-ms-blob-content-md5": digest, "Content-Range": f"bytes {part.first}-{part.last}/{size}"}
        return Response(part.cut(blob.content), 206, headers)

    async def put_blob(self, call: _BlobCall) -> Response:
        headers = call.request.headers
        kind = headers.get("x-ms-blob-type")
        if _COPY_SOURCE in headers:
            return self._copy(call)
        if kind is None:
            raise errors.header_missing()
        if kind != "BlockBlob":
            raise errors.not_emulated(kind)
        content = await call.request.body()
        content_type = headers.get("x-ms-blob-content-type") or headers.get("content-type")
        if any(headers.get(name) not in (None, "", md5_of(content)) for name in _HASHES):
            raise errors.hash_differs()
        blob = self._blobs.put(
            call.account,
            call.container,
            call.name,
            content,
            content_type or "application/octet-stream",
            headers.get("x-ms-blob-cache-control"),
            tags.stated(headers),
        )
        return Response(status_code=201, headers={**_headers(blob), "Content-MD5": md5_of(content)})

    def _copy(self, call: _BlobCall) -> Response:
        """Copy Blob within an account, done at once; the right to read the source was checked before."""
        container, name = self._copied(call.request, call.account)
        source = self._blobs.get(call.account, container, name)
        if source is None:
            raise errors.blob_not_found()
        blob = self._blobs.put(
            call.account,
            call.container,
            call.name,
            source.content,
            source.content_type,
            source.cache_control,
            tags.stated(call.request.headers),
        )
        done = {"x-ms-copy-id": str(uuid.uuid4()), "x-ms-copy-status": "success"}
        return Response(status_code=202, headers={**_headers(blob), **done})

    def _copied(self, request: Request, account: str) -> tuple[str, str]:
        """Container and name of the blob that a request copies."""
        source = urlsplit(request.headers[_COPY_SOURCE])
        suffix = cloud_of(request.scope).storage_suffix
        if source.query or source.hostname != f"{account}.blob.{suffix}":
            raise errors.not_emulated("copies between accounts, and of snapshots or versions")
        container, _, name = unquote(source.path).lstrip("/").partition("/")
        return container, name

    async def delete_blob(self, call: _BlobCall) -> Response:
        if not self._blobs.delete(call.account, call.container, call.name):
            raise errors.blob_not_found()
        return Response(status_code=202)

    def _account(self, request: Request) -> Document:
        host = request.headers.get("host", "").rpartition(":")[0] or request.headers.get("host", "")
        suffix = f".blob.{cloud_of(request.scope).storage_suffix}"
        account = self._accounts.named(host.removesuffix(suffix)) if host.endswith(suffix) else None
        if account is None:
            raise errors.account_not_found(host)
        return account

    def _admit(self, request: Request, account: Document, container: Document | None, operation: str) -> None:
        if shared_key.is_signed(request):
            shared_key.check(request, account, tuple(self._keys.of(account["name"]).values()))
            return
        token = bearer(request)
        authority = f"{authority_of(request.scope, self._cloud.authority_host)}{self._cloud.tenant_id}"
        asked = f"Bearer authorization_uri={authority}/oauth2/authorize resource_id=https://storage.azure.com"
        challenge = {"WWW-Authenticate": asked}
        if token is None:
            if operation != "read":
                raise errors.not_authenticated(challenge)
            if not allows_anyone(account):
                raise errors.public_access_not_permitted()
            if container is None or not is_public(container, listed="name" not in request.path_params):
                raise errors.resource_not_found()
            return
        try:
            caller = self._cloud.tokens.verify(token, audiences(cloud_of(request.scope)).storage)
        except InvalidTokenError:
            raise errors.bearer_refused(challenge) from None
        if request.headers.get("x-ms-version", "") < _FIRST_VERSION:
            raise errors.bearer_refused(challenge)
        needed = [(operation, request.path_params["container"])]
        if tags.HEADER in request.headers:
            needed.append(("tags/write", request.path_params["container"]))
        if _COPY_SOURCE in request.headers:
            needed.append(("read", self._copied(request, account["name"])[0]))
        for action, name in needed:
            scope = f"{account['id']}/blobServices/default/containers/{name}"
            if not self._cloud.authorization.allowed(caller.object_id, f"{_ACTION}/{action}", scope, data=True):
                raise errors.permission_mismatch()


def _headers(blob: Blob) -> dict[str, str]:
    return {"ETag": blob.etag, "Last-Modified": format_datetime(blob.changed, usegmt=True)}
