"""The part of OData that clients of applications use: `$filter`, `$search`, `$select`, `$top`, `$count`, collections.

Sources: Graph v1.0, "Use query parameters" and "Advanced query capabilities on directory objects".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from localcloud.azure.shared.http import ServiceError

_FILTERABLE = ("id", "appId", "displayName", "uniqueName", "servicePrincipalType")
_TEXT = r"'((?:[^']|'')*)'"  # a quote within is doubled
_EQUALS = re.compile(rf"(\w+) eq {_TEXT}")
_STARTS_WITH = re.compile(rf"startswith\(\s*(\w+)\s*,\s*{_TEXT}\s*\)", re.IGNORECASE)
_ANY = re.compile(rf"(tags|identifierUris|servicePrincipalNames|alternativeNames)/any\((\w+):\s*\2 eq {_TEXT}\)")
_ANY_STARTS_WITH = re.compile(
    rf"(tags|identifierUris|servicePrincipalNames|alternativeNames)/any\((\w+):\s*startswith\(\s*\2\s*,\s*{_TEXT}\s*\)\)",
    re.IGNORECASE,
)
_SEARCH = re.compile(r'"displayName:([^"]*)"')
_BETA = "/beta/"
_VERSION = "localcloud.graph-version"
_PAGE_SIZE = 100  # of applications and service principals, without `$top`
_AND = re.compile(r" and (?=(?:[^']*'[^']*')*[^']*$)")  # outside quotes


class BetaAsWell:
    """Around Graph's application: `/beta` has what `/v1.0` has."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if path.startswith(_BETA):
            scope = {**scope, "path": f"/v1.0{path.removeprefix('/beta')}", _VERSION: "beta"}
        await self._app(scope, receive, send)


def collection(request: Request, name: str, items: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The answer to a list request: the items that `$filter` and `$search` let through, cut to `$select`, in pages."""
    query = request.query_params
    chosen = [item for item in items if _is_wanted(item, query.get("$filter"), _search(request))]
    begin, size = _integer(query.get("$skiptoken", "0")), _integer(query.get("$top", str(_PAGE_SIZE)))
    answer: dict[str, Any] = {"@odata.context": f"{_context(request)}#{name}"}
    if query.get("$count", "").lower() == "true":
        answer["@odata.count"] = len(chosen)
    if begin + size < len(chosen):
        answer["@odata.nextLink"] = str(request.url.include_query_params(**{"$skiptoken": str(begin + size)}))
    return {**answer, "value": [select(request, item) for item in chosen[begin : begin + size]]}


def strings(request: Request, values: Sequence[str]) -> dict[str, Any]:
    """The answer that holds a list of strings."""
    return {"@odata.context": f"{_context(request)}#Collection(Edm.String)", "value": list(values)}


def entity(request: Request, name: str, item: dict[str, Any]) -> dict[str, Any]:
    """The answer that holds one object, cut to `$select`."""
    return {"@odata.context": f"{_context(request)}#{name}/$entity", **select(request, item)}


def select(request: Request, item: dict[str, Any]) -> dict[str, Any]:
    """The item's properties that `$select` names; all without one."""
    wanted = selected(request)
    return item if not wanted else {name: value for name, value in item.items() if name in wanted}


def selected(request: Request) -> set[str]:
    """The property names in `$select`, none when all are wanted."""
    return {name for name in request.query_params.get("$select", "").split(",") if name}


def _context(request: Request) -> str:
    return f"{str(request.base_url).rstrip('/')}/{request.scope.get(_VERSION, 'v1.0')}/$metadata"


def _integer(text: str) -> int:
    if not text.isdecimal():
        raise ServiceError(400, "BadRequest", f"Invalid value '{text}' for a query option: an integer is expected.")
    return int(text)


def _search(request: Request) -> str | None:
    """The text that `$search` looks for in display names, None without one; raises 400."""
    expression = request.query_params.get("$search")
    if expression is None:
        return None
    if request.headers.get("consistencylevel", "").lower() != "eventual":
        raise ServiceError(
            400,
            "Request_UnsupportedQuery",
            "Request with $search query parameter only works through MSGraph with a special request header: "
            "'ConsistencyLevel: eventual'",
        )
    match = _SEARCH.fullmatch(expression)
    if match is None:
        raise ServiceError(400, "Request_UnsupportedQuery", f"Unsupported query: '{expression}'.")
    return match[1]


def _is_wanted(item: dict[str, Any], expression: str | None, searched: str | None) -> bool:
    if searched is not None and searched.casefold() not in str(item.get("displayName") or "").casefold():
        return False
    return expression is None or _matches(item, expression)


def _matches(item: dict[str, Any], expression: str) -> bool:
    return all(_holds(item, term.strip()) for term in _AND.split(expression))


def _holds(item: dict[str, Any], term: str) -> bool:
    if (match := _ANY.fullmatch(term)) is not None:
        return _unquoted(match[3]) in item.get(match[1], ())
    if (match := _ANY_STARTS_WITH.fullmatch(term)) is not None:
        return any(each.startswith(_unquoted(match[3])) for each in item.get(match[1], ()))
    # Entra compares names and ids without regard to case.
    if (match := _EQUALS.fullmatch(term)) is not None and match[1] in _FILTERABLE:
        return str(item.get(match[1]) or "").casefold() == _unquoted(match[2]).casefold()
    if (match := _STARTS_WITH.fullmatch(term)) is not None and match[1] in _FILTERABLE:
        return str(item.get(match[1]) or "").casefold().startswith(_unquoted(match[2]).casefold())
    raise ServiceError(400, "Request_UnsupportedQuery", f"Unsupported query: '{term}'.")


def _unquoted(text: str) -> str:
    return text.replace("''", "'")
