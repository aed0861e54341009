"""Blob Storage's data plane: block blobs, written whole by a role or the account's key, read by these or by anybody.

The account is named by the Host header. Source: REST reference of Blob Storage (Put Blob, Get Blob, Delete Blob,
Put Block, Put Block List, Copy Blob, List Blobs, "Authorize with Microsoft Entra ID", "Configure anonymous read
access"). Left out: shared access signatures, committed blocks, conditions, leases, copies between accounts, public
access and metadata of a container that is made here, and all of index tags but writing them with the blob.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from typing import Final, Self
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from localcloud.azure.blob import contents
from localcloud.azure.blob.contents import AccountKeys, Accounts, Blob, Blobs, allows_anyone, is_public, md5_of
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.resource_store import Resources
from localcloud.azure.shared.http import authority_of, bearer, cloud_of, service_app
from localcloud.azure.shared.refusals import ServiceError, refusal
from localcloud.azure.shared.understood import Understood, check_headers, check_query
from localcloud.azure.tenant.tokens import InvalidTokenError, audiences
from localcloud.core import clock
from localcloud.core.store import Document

# A part of a blob ("Specifying the range header for Blob service operations", Get Blob).
# The first wins if a request has both.
HEADERS: Final = ("x-ms-range", "range")
_FORM: Final = re.compile(r"bytes=(\d+)-(\d*)", re.ASCII)


@dataclass(frozen=True)
class BlobRange:
    """The first byte, and the last one, which a blob has."""

    first: int
    last: int

    @classmethod
    def of(cls, headers: Headers, size: int) -> Self | None:
        """The requested range of a blob; None for all of it. Raises 416, and 501 for other forms."""
        name = next((name for name in HEADERS if name in headers), None)
        if name is None:
            return None
        asked = _FORM.fullmatch(headers[name].strip())
        if asked is None or (asked[2] and int(asked[2]) < int(asked[1])):
            raise contents.not_emulated(f"the header {name} with {headers[name]}")
        if int(asked[1]) >= size:
            raise refusal("InvalidRange")
        return cls(int(asked[1]), min(int(asked[2] or size), size - 1))

    def cut(self, content: bytes) -> bytes:
        """The part of the content."""
        return content[self.first : self.last + 1]


# List Blobs: what a container has by prefix, a page at a time, as XML. Source: REST reference, "List Blobs".

_LARGEST_PAGE: Final = 5000


@dataclass(frozen=True)
class Asked:
    """The query's options; `marker` is the first name of the page."""

    prefix: str
    delimiter: str
    marker: str
    most: int

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Asked:
        """Read the query; raises ServiceError, 400, for an invalid number or marker."""
        return cls(query.get("prefix", ""), query.get("delimiter", ""), _marker(query), _most(query))


def list_page(container: str, endpoint: str, asked: Asked, blobs: Iterable[tuple[str, Blob]]) -> bytes:
    """The XML of one page; `blobs` are all with the asked prefix, by name, `endpoint` is the account's."""
    root = ElementTree.Element("EnumerationResults", ServiceEndpoint=f"{endpoint}/", ContainerName=container)
    for name, value in (("Prefix", asked.prefix), ("Marker", _written(asked.marker)), ("Delimiter", asked.delimiter)):
        if value:
            ElementTree.SubElement(root, name).text = value
    ElementTree.SubElement(root, "MaxResults").text = str(asked.most)
    listed = ElementTree.SubElement(root, "Blobs")
    following = ""
    rest = (entry for entry in _entries(asked, blobs) if entry[0] >= asked.marker)
    for count, (name, blob) in enumerate(rest):
        if count == asked.most:
            following = name
            break
        _add(listed, name, blob)
    ElementTree.SubElement(root, "NextMarker").text = _written(following)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written


def _entries(asked: Asked, blobs: Iterable[tuple[str, Blob]]) -> Iterator[tuple[str, Blob | None]]:
    """Blobs; those behind a delimiter appear as their common prefix, once and without a blob."""
    last = None
    for name, blob in blobs:
        head, delimiter, _ = name[len(asked.prefix) :].partition(asked.delimiter) if asked.delimiter else (name, "", "")
        if not delimiter:
            yield name, blob
        elif (beginning := f"{asked.prefix}{head}{delimiter}") != last:
            last = beginning
            yield beginning, None


def _add(listed: ElementTree.Element, name: str, blob: Blob | None) -> None:
    entry = ElementTree.SubElement(listed, "BlobPrefix" if blob is None else "Blob")
    ElementTree.SubElement(entry, "Name").text = name
    if blob is None:
        return
    properties = ElementTree.SubElement(entry, "Properties")
    changed = format_datetime(blob.changed, usegmt=True)
    values = {
        "Creation-Time": changed,
        "Last-Modified": changed,
        "Etag": blob.etag.strip('"'),
        "Content-Length": str(len(blob.content)),
        "Content-Type": blob.content_type,
        "BlobType": "BlockBlob",
    }
    for key, value in values.items():
        ElementTree.SubElement(properties, key).text = value


def _most(query: Mapping[str, str]) -> int:
    text = query.get("maxresults", str(_LARGEST_PAGE))
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise refusal("OutOfRangeQueryParameterValue")
    return min(int(text), _LARGEST_PAGE)


def _marker(query: Mapping[str, str]) -> str:
    try:
        return base64.b64decode(query.get("marker", ""), validate=True).decode()
    except ValueError:
        raise refusal("OutOfRangeQueryParameterValue") from None


def _written(marker: str) -> str:
    """Opaque to clients."""
    return base64.b64encode(marker.encode()).decode()


# Shared Key: a request that is signed with a key of the storage account, which may then do everything with its blobs.
#
# Source: REST reference of Azure Storage, "Authorize with Shared Key", as of version 2015-02-21 (an empty body has an
# empty length); the order of the headers is that of Microsoft's clients, which pass over hyphens.

_SCHEME: Final = "sharedkey"
_FIRST_SIGNED_VERSION: Final = "2015-02-21"
# How far the date of a request may be from the service's.
_TOLERANCE: Final = timedelta(minutes=15)
# In the order of the string to sign; `date` is empty beside an `x-ms-date`.
_SIGNED: Final = (
    *("content-encoding", "content-language", "content-length", "content-md5", "content-type", "date"),
    *("if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"),
)


def is_signed(request: Request) -> bool:
    """Whether the request has a signature in place of a token; raises 501 for the scheme SharedKeyLite."""
    scheme = request.headers.get("authorization", "").partition(" ")[0].lower()
    if scheme == f"{_SCHEME}lite":
        raise contents.not_emulated("SharedKeyLite")
    return scheme == _SCHEME


def check_signature(request: Request, account: Document, keys: Sequence[str]) -> None:
    """Accept a request that is signed with one of the account's keys, base64 texts.

    Raises 403 for an account without Shared Key, another signature, or a date of more than 15 minutes before or after
    now; 501 for a version before 2015-02-21.
    """
    if account["properties"].get("allowSharedKeyAccess") is False:
        raise refusal("KeyBasedAuthenticationNotPermitted")
    if request.headers.get("x-ms-version", "") < _FIRST_SIGNED_VERSION:
        raise contents.not_emulated(f"Shared Key of versions before {_FIRST_SIGNED_VERSION}")
    named, _, signature = request.headers["authorization"].partition(" ")[2].strip().partition(":")
    if named != account["name"] or not _is_of_now(request.headers):
        raise refusal("AuthenticationFailed signature")
    text = string_to_sign(request.method, request.scope["raw_path"], request.url.query, request.headers, named)
    if not any(hmac.compare_digest(sign(text, key).encode(), signature.encode()) for key in keys):
        raise refusal("AuthenticationFailed signature")


def sign(text: str, key: str) -> str:
    """The signature: HMAC-SHA256 of the text, base64."""
    return base64.b64encode(hmac.digest(base64.b64decode(key), text.encode(), hashlib.sha256)).decode()


def string_to_sign(method: str, raw_path: bytes, query: str, headers: Headers, account: str) -> str:
    """The string that the client signed; `raw_path` and `query` as they were sent, percent-encoded."""
    values = {name: headers.get(name, "") for name in _SIGNED}
    if values["content-length"] == "0":
        values["content-length"] = ""
    if "x-ms-date" in headers:
        values["date"] = ""
    names = sorted({header for header in headers if header.startswith("x-ms-")}, key=lambda name: name.replace("-", ""))
    own = [f"{name}:{','.join(value.strip() for value in headers.getlist(name))}" for name in names]
    asked = parse_qs(query, keep_blank_values=True)
    parameters = [f"{name.lower()}:{','.join(sorted(asked[name]))}" for name in sorted(asked)]
    resource = f"/{account}{raw_path.decode()}"
    return "\n".join([method, *values.values(), *own, resource, *parameters])


def _is_of_now(headers: Headers) -> bool:
    try:
        stated = parsedate_to_datetime(headers.get("x-ms-date") or headers.get("date", ""))
    except ValueError:
        return False
    return abs(clock.now() - (stated if stated.tzinfo else stated.replace(tzinfo=UTC))) <= _TOLERANCE


_PATH: Final = "/{container}/{name:path}"
_LIST: Final = {"restype": "container", "comp": "list"}
_LISTED: Final = Understood.of("restype comp prefix delimiter marker maxresults")
_READ: Final = Understood.of(headers=" ".join(HEADERS))
_COPY_SOURCE: Final = "x-ms-copy-source"
_UNLESS: Final = "if-none-match"
_HASHES: Final = ("content-md5", "x-ms-blob-content-md5")
_WRITTEN: Final = Understood.of(
    query="comp blockid",
    headers=f"x-ms-blob-type x-ms-blob-content-type x-ms-blob-cache-control {contents.TAGS_HEADER} "
    + " ".join((_COPY_SOURCE, _UNLESS, *_HASHES)),
    body=None,
)
_CONTAINER: Final = "/{container}"
_CONTAINERS: Final = Understood.of("restype")
# The first version that takes tokens of Entra ID.
_FIRST_VERSION: Final = "2017-11-09"


def app(cloud: LocalAzure) -> Starlette:
    """The data plane of every storage account of the local cloud, to be served over TLS."""
    plane = _DataPlane(cloud)
    routes = [
        plane.route("GET", _PATH, "read", plane.get_blob, _READ),
        plane.route("PUT", _PATH, "write", plane.put_blob, _WRITTEN),
        plane.route("DELETE", _PATH, "delete", plane.delete_blob),
        plane.route("GET", _CONTAINER, "read", plane.list_blobs, _LISTED),
        plane.route("PUT", _CONTAINER, "write", plane.put_container, _CONTAINERS),
        plane.route("DELETE", _CONTAINER, "delete", plane.delete_container, _CONTAINERS),
    ]
    return service_app("blob", routes, faults=cloud.faults, holder=cloud.holder, render=contents.render)


@dataclass(frozen=True)
class _BlobCall:
    """An authorized request."""

    request: Request
    account: str
    container: str
    path: str  # of the blob: account, container and name


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

        def unknown(what: str) -> ServiceError:
            return contents.not_emulated(f"{what} in {method} {path}")

        async def authorized(request: Request) -> Response:
            account = self._account(request)
            container = self._accounts.container(account, request.path_params["container"])
            self._admit(request, account, container, operation)
            check_query(request, {"timeout", *understood.query}, unknown)
            check_headers(request.headers, understood.headers, unknown)
            if understood.body is not None and await request.body():
                raise unknown("the body")
            if container is None and handler != self.put_container:
                raise refusal("ContainerNotFound")
            named = request.path_params["container"] if container is None else container["name"]
            path = f"{account['name']}/{named}/{request.path_params.get('name', '')}"
            return await handler(_BlobCall(request, account["name"], named, path))

        return Route(path, authorized, methods=[method])

    async def list_blobs(self, call: _BlobCall) -> Response:
        query = call.request.query_params
        if not _LIST.items() <= dict(query).items():
            raise contents.not_emulated("operations of containers but List Blobs")
        asked = Asked.of(query)
        blobs = self._blobs.below(f"{call.account}/{call.container}/", asked.prefix)
        endpoint = f"https://{call.account}.blob.{cloud_of(call.request.scope).storage_suffix}"
        body = list_page(call.container, endpoint, asked, blobs)
        return Response(body, media_type="application/xml")

    async def put_container(self, call: _BlobCall) -> Response:
        account = self._of_container(call)
        if not contents.CONTAINER_NAME.fullmatch(call.container):
            raise refusal("InvalidResourceName container")
        if self._accounts.container(account, call.container):
            raise refusal("ContainerAlreadyExists")
        self._accounts.make_container(account, call.container)
        return Response(status_code=201)

    async def delete_container(self, call: _BlobCall) -> Response:
        self._accounts.delete_container(self._of_container(call), call.container)
        return Response(status_code=202)

    def _of_container(self, call: _BlobCall) -> Document:
        """The account of a request about a container; the root container's blobs have such a path, too."""
        if call.request.query_params.get("restype") != "container":
            raise contents.not_emulated("blobs of the root container")
        return self._account(call.request)

    async def get_blob(self, call: _BlobCall) -> Response:
        blob = self._blobs.get(call.path)
        if blob is None:
            raise refusal("BlobNotFound")
        cached = {"Cache-Control": blob.cache_control} if blob.cache_control else {}
        tagged = {"x-ms-tag-count": str(len(blob.tags))} if blob.tags else {}
        # Each write replaces the whole blob.
        created = {"x-ms-creation-time": format_datetime(blob.changed, usegmt=True)}
        own = {"Content-Type": blob.content_type, "x-ms-blob-type": "BlockBlob"}
        headers = {**_headers(blob), **created, **cached, **tagged, **own, "Accept-Ranges": "bytes"}
        digest, size = md5_of(blob.content), len(blob.content)
        part = BlobRange.of(call.request.headers, size)
        if part is None:
            return Response(blob.content, headers={**headers, "Content-MD5": digest})
        headers |= {"x-ms-blob-content-md5": digest, "Content-Range": f"bytes {part.first}-{part.last}/{size}"}
        return Response(part.cut(blob.content), 206, headers)

    async def put_blob(self, call: _BlobCall) -> Response:
        headers, block = call.request.headers, call.request.query_params.get("blockid")
        comp = call.request.query_params.get("comp")
        kind = headers.get("x-ms-blob-type")
        if _UNLESS in headers and (headers[_UNLESS] != "*" or _COPY_SOURCE in headers):
            raise contents.not_emulated(f"the header {_UNLESS} but with * in Put Blob")
        if _UNLESS in headers and self._blobs.get(call.path) is not None:
            raise refusal("BlobAlreadyExists")
        if _COPY_SOURCE in headers:
            return self._copy(call)
        if (comp, block is None) not in {(None, True), ("block", False), ("blocklist", True)}:
            raise contents.not_emulated(f"the query option comp with {comp} and the blockid {block}")
        if kind is None and comp is None:
            raise refusal("MissingRequiredHeader")
        if kind not in {None, "BlockBlob"}:
            raise contents.not_emulated(kind)
        sent = content = await call.request.body()
        if comp == "blocklist":
            content = b"".join(self._listed(call.path, sent))
        content_type = headers.get("x-ms-blob-content-type") or (headers.get("content-type") if comp is None else None)
        for name, hashed in zip(_HASHES, (sent, content), strict=True):
            if headers.get(name) not in (None, "", md5_of(hashed)):
                raise refusal("Md5Mismatch")
        if block is not None:
            self._blobs.put_block(call.path, block, content)
            return Response(status_code=201, headers={"Content-MD5": md5_of(content)})
        cache_control, tags = headers.get("x-ms-blob-cache-control"), contents.stated_tags(headers)
        blob = Blob(content, content_type or "application/octet-stream", cache_control, clock.now(), tags)
        self._blobs.put(call.path, blob)
        return Response(status_code=201, headers={**_headers(blob), "Content-MD5": md5_of(content)})

    def _listed(self, path: str, blocks: bytes) -> Iterator[bytes]:
        """The parts that a Put Block List names. Raises 400 if one was not put, 501 for committed ones."""
        if b"<Committed>" in blocks:
            raise contents.not_emulated("committed blocks")
        for block in re.findall("<(?:Latest|Uncommitted)>(.+?)</", blocks.decode()):
            part = self._blobs.block(path, block)
            if part is None:
                raise refusal("InvalidBlockList")
            yield part

    def _copy(self, call: _BlobCall) -> Response:
        """Copy Blob within an account, done at once; the right to read the source was checked before."""
        container, name = self._copied(call.request, call.account)
        source = self._blobs.get(f"{call.account}/{container}/{name}")
        if source is None:
            raise refusal("BlobNotFound")
        blob = replace(source, changed=clock.now(), tags=contents.stated_tags(call.request.headers))
        self._blobs.put(call.path, blob)
        done = {"x-ms-copy-id": str(uuid.uuid4()), "x-ms-copy-status": "success"}
        return Response(status_code=202, headers={**_headers(blob), **done})

    def _copied(self, request: Request, account: str) -> tuple[str, str]:
        """Container and name of the blob that a request copies."""
        source = urlsplit(request.headers[_COPY_SOURCE])
        suffix = cloud_of(request.scope).storage_suffix
        if source.query or source.hostname != f"{account}.blob.{suffix}":
            raise contents.not_emulated("copies between accounts, and of snapshots or versions")
        container, _, name = unquote(source.path).lstrip("/").partition("/")
        return container, name

    async def delete_blob(self, call: _BlobCall) -> Response:
        if not self._blobs.delete(call.path):
            raise refusal("BlobNotFound")
        return Response(status_code=202)

    def _account(self, request: Request) -> Document:
        host = request.headers.get("host", "").rpartition(":")[0] or request.headers.get("host", "")
        suffix = f".blob.{cloud_of(request.scope).storage_suffix}"
        account = self._accounts.named(host.removesuffix(suffix)) if host.endswith(suffix) else None
        if account is None:
            raise refusal("AccountNotFound", host=host)
        return account

    def _admit(self, request: Request, account: Document, container: Document | None, operation: str) -> None:
        if is_signed(request):
            check_signature(request, account, tuple(self._keys.of(account["name"]).values()))
            return
        token = bearer(request)
        authority = f"{authority_of(request.scope, self._cloud.authority_host)}{self._cloud.tenant_id}"
        asked = f"Bearer authorization_uri={authority}/oauth2/authorize resource_id=https://storage.azure.com"
        challenge = {"WWW-Authenticate": asked}
        if token is None:
            if operation != "read":
                raise refusal("NoAuthenticationInformation", challenge)
            if not allows_anyone(account):
                raise refusal("PublicAccessNotPermitted")
            if container is None or not is_public(container, listed="name" not in request.path_params):
                raise refusal("ResourceNotFound private container")
            return
        try:
            caller = self._cloud.tokens.verify(token, audiences(cloud_of(request.scope)).storage)
        except InvalidTokenError:
            raise refusal("InvalidAuthenticationInfo", challenge) from None
        if request.headers.get("x-ms-version", "") < _FIRST_VERSION:
            raise refusal("InvalidAuthenticationInfo", challenge)
        # To make and delete a container are no data actions (Create Container, Delete Container).
        data = operation == "read" or "name" in request.path_params
        needed = [(f"blobs/{operation}" if data else operation, request.path_params["container"])]
        if contents.TAGS_HEADER in request.headers:
            needed.append(("blobs/tags/write", request.path_params["container"]))
        if _COPY_SOURCE in request.headers:
            needed.append(("blobs/read", self._copied(request, account["name"])[0]))
        for action, name in needed:
            scope = f"{account['id']}/blobServices/default/containers/{name}"
            full = f"{contents.CONTAINERS}/{action}"
            if not self._cloud.authorization.allowed(caller.object_id, full, scope, data=data):
                raise refusal("AuthorizationPermissionMismatch")


def _headers(blob: Blob) -> dict[str, str]:
    return {"ETag": blob.etag, "Last-Modified": format_datetime(blob.changed, usegmt=True)}
