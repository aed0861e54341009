"""What an operation understands of a request. Anything else is refused by its name.

Azure ignores some unknown parts. The local cloud would then answer 200 to something it has not done, so every
operation declares its query options, its headers and the members of its body.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from localcloud.azure.shared.http import json_object
from localcloud.azure.shared.refusals import ServiceError, not_emulated, refusal

Members: TypeAlias = Mapping[str, "Members | None"]
"""The members of a JSON object; of each the members in it, also within a list, or None for any content."""
ANY: Final = "*"
"""As a member: the operation checks by itself which others there are."""
Handler: TypeAlias = Callable[[Request], Awaitable[Response]]
Refusal: TypeAlias = Callable[[str], ServiceError]
"""The service's error for what is not emulated, by its words."""

# Headers without meaning for the operation (transport, authentication, diagnostics). RFC 9110; "Azure REST guidelines"
# of api-guidelines; MSAL `oauth2cli`; azure-cli `client_factory.py`; Graph SDKs' `SdkVersion`; W3C Trace Context;
# openshift/azure-kubernetes-kms `pkg/plugin/keyvault.go` (what its proxy is to call).
_NEUTRAL: Final = re.compile(
    r"accept(-.+)?|authorization|cache-control|connection|content-(length|type)|cookie|date|dnt|expect|forwarded|host"
    r"|keep-alive|max-forwards|origin|pragma|priority|proxy-.+|referer|te|trailer|transfer-encoding|upgrade(-.+)?"
    r"|user-agent|via|x-forwarded-.+|x-real-ip|x-requested-with|sec-.+"
    r"|traceparent|tracestate|baggage|request-(id|context)|correlation-(context|id)|x-b3-.+|x-request-id|x-amzn-trace-id"
    r"|(x-ms-)?(return-)?client-request-id|x-ms-(correlation|parent|root)(-request)?-id|x-ms-return-client-request-id"
    r"|x-ms-(user-?agent|client-.+|date|version|lib-capability|pkeyauth|cmd-.+|command-name|tracking-.+|request-id)"
    r"|x-(client|app|anchormailbox|ms-effective-locale)(-.+)?|commandname|parametersetname|sdkversion"
    r"|odata-(max)?version|ocp-apim-.+|x-azure-proxy-target"
)


def members_of(asked: str | Mapping[str, Any]) -> Members:
    """Members declared in words: several have the same content with blanks between, words are members of one."""
    below = dict.fromkeys(asked.split()) if isinstance(asked, str) else asked
    return {
        name: None if inside is None else members_of(inside)
        for names, inside in below.items()
        for name in names.split()
    }


@dataclass(frozen=True)
class Understood:
    """What one operation reads of a request.

    Attributes:
        query: names of query options, in lower case.
        headers: headers beside those that say nothing about the operation, in lower case.
        body: the members of its JSON body; None: the body is not a JSON object, and the operation checks it.
    """

    query: frozenset[str] = frozenset()
    headers: frozenset[str] = frozenset()
    body: Members | None = field(default_factory=dict)

    @classmethod
    def of(cls, query: str = "", headers: str = "", body: str | Mapping[str, Any] | None = "") -> Understood:
        """Declared in words: names with blanks between, a body as for `members_of`."""
        return cls(frozenset(query.split()), frozenset(headers.split()), None if body is None else members_of(body))

    async def check(self, request: Request, refuse: Refusal) -> None:
        """Refuse the request if it has anything else; the body is checked if it is JSON."""
        check_query(request, self.query, refuse)
        check_headers(request.headers, self.headers, refuse)
        if self.body is None:
            return
        body = await json_object(request)
        if (path := first_unknown(body, self.body)) is not None:
            raise refuse(f"the member {'.'.join(path)} of the body")
        check_objects(body, self.body)


def operation(service: str, path: str, handler: Handler, *methods: str, reads: Understood | None = None) -> Route:
    """A route whose requests have nothing that the handler would ignore; without `reads` they have nothing at all."""
    understood = Understood() if reads is None else reads

    async def checked(request: Request) -> Response:
        await understood.check(request, lambda what: not_emulated(service, f"{what} of {request.method} {path}"))
        return await handler(request)

    return Route(path, checked, methods=[*methods])


def check_query(request: Request, known: Iterable[str], refuse: Refusal) -> None:
    """Refuse a query option that is unknown or repeated."""
    names = Counter(name.lower() for name, _ in request.query_params.multi_items())
    for name in request.query_params:
        if name.lower() not in known:
            raise refuse(f"the query option {name}")
        if names[name.lower()] > 1:
            raise refuse(f"the query option {name} more than once")


def check_headers(headers: Headers, known: Iterable[str], refuse: Refusal) -> None:
    """Refuse a header that is not known and may change what the operation does."""
    for name, value in headers.items():
        # Some clients send headers without meaning.
        if value.strip() and name not in known and not is_neutral(name):
            raise refuse(f"the header {name}")


def is_neutral(name: str) -> bool:
    """Whether a header of this name, in any letter case, has no meaning for the operation."""
    return _NEUTRAL.fullmatch(name.lower()) is not None


def first_unknown(body: Mapping[str, Any], known: Members) -> Sequence[str] | None:
    """The path of the first member of a JSON object that is not known; null counts as absent."""
    for name, value in body.items():
        if value is None:
            continue
        if name not in known and ANY not in known:
            return (name,)
        below = known.get(name)
        if below is None:
            continue
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Mapping) and (path := first_unknown(item, below)) is not None:
                return (name, *path)
    return None


def check_objects(body: Mapping[str, Any], known: Members, *path: str) -> None:
    """Refuse a member, at `path` or below, that should have members and has none; raises 400."""
    for name, value in body.items():
        below = known.get(name)
        if below is None or value is None:
            continue
        for item in value if isinstance(value, list) else [value]:
            if not isinstance(item, Mapping):
                raise refusal("InvalidRequestContent", problem=f"{'.'.join((*path, name))}: a JSON object is expected")
            check_objects(item, below, *path, name)


def without_nulls(body: dict[str, Any]) -> dict[str, Any]:
    """A JSON object without the members that are null, at any depth."""
    return {name: _without_nulls(value) for name, value in body.items() if value is not None}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return without_nulls(value)
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
