"""GET requests as the kubelet's probes make them: one connection each, and only the status of the answer.

A whole HTTP client would cost ten times the CPU, many times a minute on an idle cluster. The rules
are those of kubernetes `pkg/probe/http` (any certificate, `Connection: close`, at most 10 KiB of the body, the default
headers); a redirect is not followed, because it is a success already.
"""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlsplit

_LONGEST_ANSWER: Final = 10 * 1024
_STATUS_LINE: Final = re.compile(rb"HTTP/1\.[01] ([1-9]\d\d)(?: [^\r\n]*)?\r?\n")
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NOT_IN_A_VALUE: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
# Characters of a path beside letters and digits, and existing escapes; everything else is escaped.
_UNESCAPED: Final = "%/:=&?~+!$,;'@()*[]"


class NoAnswerError(Exception):
    """Why a request got no status, in the words of Go's HTTP client; the URL is not part of it."""


@dataclass(frozen=True)
class HttpGet:
    host: str
    port: int
    is_tls: bool
    message: bytes

    @classmethod
    def of(cls, url: str, headers: Mapping[str, str]) -> HttpGet:
        """Prepare a request to an `http` or `https` URL; raises NoAnswerError for a header that cannot be sent."""
        parts = urlsplit(url)
        is_tls = parts.scheme == "https"
        sent = {"host": parts.netloc, "user-agent": "kube-probe/1.35", "accept": "*/*", "connection": "close"}
        for name, value in headers.items():
            if not _HEADER_NAME.fullmatch(name):
                raise NoAnswerError(f'net/http: invalid header field name "{name}"')
            if _NOT_IN_A_VALUE.search(value):
                raise NoAnswerError(f'net/http: invalid header field value for "{name}"')
            sent[name.lower()] = value
        target = quote(f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}", safe=_UNESCAPED)
        lines = [f"GET {target} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items()), "", ""]
        return cls(str(parts.hostname), parts.port or (443 if is_tls else 80), is_tls, "\r\n".join(lines).encode())


class HttpGetter:
    """Sends requests. Any certificate is accepted, because the CA of a container is unknown."""

    def __init__(self) -> None:
        self._tls = ssl.create_default_context()
        self._tls.check_hostname = False
        self._tls.verify_mode = ssl.CERT_NONE

    async def status(self, request: HttpGet, timeout: float) -> int:
        """The status of the answer, which must be complete within `timeout` seconds; raises NoAnswerError."""
        try:
            async with asyncio.timeout(timeout):
                reader, writer = await asyncio.open_connection(
                    request.host, request.port, ssl=self._tls if request.is_tls else None
                )
                try:
                    writer.write(request.message)
                    answer = await reader.readexactly(_LONGEST_ANSWER)
                except asyncio.IncompleteReadError as error:
                    answer = error.partial
                finally:
                    writer.transport.abort()
        except TimeoutError:
            raise NoAnswerError("context deadline exceeded") from None
        except OSError as error:
            raise NoAnswerError(_reason(error)) from None
        if not answer:
            raise NoAnswerError("EOF")
        match = _STATUS_LINE.match(answer)
        if match is None:
            raise NoAnswerError("malformed HTTP response")
        return int(match[1])


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError) or error.errno is None:
        return str(error) or "EOF"
    return os.strerror(error.errno).lower()
