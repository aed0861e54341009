"""Shared Key: a request that is signed with a key of the storage account, which may then do everything with its blobs.

Source: REST reference of Azure Storage, "Authorize with Shared Key", as of version 2015-02-21 (an empty body has an
empty length); the order of the headers is that of Microsoft's clients, which pass over hyphens.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import Request

from localcloud.azure.blob import errors
from localcloud.core import clock
from localcloud.core.store import Document

_SCHEME: Final = "sharedkey"
_FIRST_VERSION: Final = "2015-02-21"
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
        raise errors.not_emulated("SharedKeyLite")
    return scheme == _SCHEME


def check(request: Request, account: Document, keys: Sequence[str]) -> None:
    """Accept a request that is signed with one of the account's keys.

    Args:
        keys: base64 texts.

    Raises:
        ServiceError: 403 for an account without Shared Key, for another signature or for a date of more than 15
            minutes before or after now, 501 for a version before 2015-02-21.
    """
    if account["properties"].get("allowSharedKeyAccess") is False:
        raise errors.key_not_permitted()
    if request.headers.get("x-ms-version", "") < _FIRST_VERSION:
        raise errors.not_emulated(f"Shared Key of versions before {_FIRST_VERSION}")
    named, _, signature = request.headers["authorization"].partition(" ")[2].strip().partition(":")
    if named != account["name"] or not _is_of_now(request.headers):
        raise errors.signature_refused()
    text = string_to_sign(request.method, request.scope["raw_path"], request.url.query, request.headers, named)
    if not any(hmac.compare_digest(sign(text, key).encode(), signature.encode()) for key in keys):
        raise errors.signature_refused()


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
    return abs(clock.now() - _aware(stated)) <= _TOLERANCE


def _aware(instant: datetime) -> datetime:
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)
