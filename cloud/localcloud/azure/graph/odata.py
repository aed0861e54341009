"""The part of OData that clients of applications use: queries, collections, preferences.

Sources: Graph v1.0, "Use query parameters" and "Advanced query capabilities on directory objects".
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from localcloud.azure.graph import representation
from localcloud.azure.shared import odata_filter
from localcloud.azure.shared.http import json_object
from localcloud.azure.shared.odata_filter import (
    AnyOf,
    Called,
    Compared,
    Expression,
    Joined,
    Negated,
    OneOf,
    Path,
    Value,
)
from localcloud.azure.shared.refusals import ServiceError, not_emulated, refusal
from localcloud.azure.shared.understood import Understood, check_headers, check_objects, check_query, first_unknown

_FILTERABLE = frozenset(
    {"id", "appId", "displayName", "uniqueName", "servicePrincipalType", "signInAudience", "accountEnabled"}
    | {"appOwnerOrganizationId", "name"}
)
_COLLECTIONS = frozenset(
    {"tags", "identifierUris", "servicePrincipalNames", "alternativeNames"}
    | {"web/redirectUris", "spa/redirectUris", "publicClient/redirectUris"}
)
_SORTABLE = frozenset({"displayName", "createdDateTime", "appId", "id"})
_MOST_EXPANDED = 20  # Graph v1.0, "Use query parameters", $expand
_LARGEST_PAGE = 999
_SEARCH = re.compile(r'"displayName:([^"]*)"')
_BETA = "/beta/"
_VERSION = "localcloud.graph-version"
# What only `/beta` has, of an object without SAML; azuread asks for it (Graph beta, servicePrincipal).
_OF_BETA = ("samlMetadataUrl",)
_PAGE_SIZE = 100  # of applications and service principals, without `$top`

LISTED = Understood.of("$filter $search $select $top $count $skiptoken $expand $orderby", "consistencylevel")
READ = Understood.of("$select $expand", "consistencylevel")
"""What lists and single objects read of a request."""
Expand = Callable[[str], Sequence[dict[str, Any]]]
"""The owners of the object with an id."""


def route(
    method: str, path: str, handler: Callable[[Request], Awaitable[Response]], reads: Understood | None = None
) -> Route:
    """A route of Graph that refuses what its handler would ignore; any object of a body may have annotations."""
    understood = Understood() if reads is None else reads

    def unknown(what: str) -> ServiceError:
        return not_emulated("graph", f"{what} of {method} {path}")

    async def checked(request: Request) -> Response:
        check_query(request, understood.query, unknown)
        check_headers(request.headers, understood.headers, unknown)
        body, known = representation.without_annotations(await json_object(request)), understood.body or {}
        if (path_of := first_unknown(body, known)) is not None:
            raise refusal("Request_BadRequest unknown property", name=path_of[-1])
        check_objects(body, known)
        return await handler(request)

    return Route(path, checked, methods=[method])


def prefers_creation(request: Request) -> bool:
    """Whether an upsert is requested; raises 501 for any other preference."""
    preference = request.headers.get("prefer", "").strip()
    if preference not in ("", "create-if-missing"):
        raise not_emulated("graph", f"the preference {preference}")
    return bool(preference)


def refuse_preferences(request: Request) -> None:
    """Raises 501 for a header `Prefer`."""
    if "prefer" in request.headers:
        raise not_emulated(
            "graph", f"the preference {request.headers['prefer']} of {request.method} {request.url.path}"
        )


class BetaAsWell:
    """Middleware of Graph: `/beta` has what `/v1.0` has."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if path.startswith(_BETA):
            scope = {**scope, "path": f"/v1.0{path.removeprefix('/beta')}", _VERSION: "beta"}
        await self._app(scope, receive, send)


def collection(
    request: Request, name: str, items: Iterable[dict[str, Any]], expand: Expand | None = None
) -> dict[str, Any]:
    """The answer to a list request: the items that match `$filter` and `$search`, reduced to `$select`, in pages."""
    query = request.query_params
    _check_expand(request, expand)
    chosen = _sorted(request, _chosen(request, items))
    begin, size = _integer(query.get("$skiptoken", "0")), _integer(query.get("$top", str(_PAGE_SIZE)))
    if not 1 <= size <= _LARGEST_PAGE:
        raise refusal("Request_UnsupportedQuery page size", size=size, most=_LARGEST_PAGE)
    answer: dict[str, Any] = {"@odata.context": f"{_context(request)}#{name}"}
    if query.get("$count", "").lower() == "true":
        answer["@odata.count"] = len(chosen)
    if begin + size < len(chosen):
        answer["@odata.nextLink"] = str(request.url.include_query_params(**{"$skiptoken": str(begin + size)}))
    return {**answer, "value": [_presented(request, item, expand) for item in chosen[begin : begin + size]]}


def count(request: Request, items: Iterable[dict[str, Any]]) -> str:
    """The number of items that match `$filter` and `$search`; raises 400 without the header for advanced queries."""
    if not _is_eventual(request):
        raise refusal("Request_BadRequest count")
    return str(len(_chosen(request, items)))


def strings(request: Request, values: Sequence[str]) -> dict[str, Any]:
    return {"@odata.context": f"{_context(request)}#Collection(Edm.String)", "value": list(values)}


def entity(request: Request, name: str, item: dict[str, Any], expand: Expand | None = None) -> dict[str, Any]:
    """The answer with one object, reduced to `$select`."""
    _check_expand(request, expand)
    return {"@odata.context": f"{_context(request)}#{name}/$entity", **_presented(request, item, expand)}


def selected(request: Request) -> set[str]:
    """The property names in `$select`, none when all are wanted."""
    return {name.strip() for name in request.query_params.get("$select", "").split(",") if name.strip()}


def _check_expand(request: Request, expand: Expand | None) -> None:
    """Raises 501 for anything but `owners`, where there are any."""
    expanded = request.query_params.get("$expand", "").strip()
    if expanded and (expanded != "owners" or expand is None):
        raise not_emulated("graph", f"$expand={expanded} of {request.url.path}")


def _presented(request: Request, item: dict[str, Any], expand: Expand | None) -> dict[str, Any]:
    """The item's properties that `$select` names, all without one, and what `$expand` names; raises 501 for others."""
    wanted, expanded = selected(request), request.query_params.get("$expand", "").strip()
    if request.method != "GET":  # the answer to a write has everything
        return item
    if _VERSION in request.scope:
        item = {**item, **{name: None for name in _OF_BETA if name in wanted}}
    if unknown := sorted(wanted - item.keys()):
        raise not_emulated("graph", f"the property {unknown[0]} in $select of {request.url.path}")
    chosen = item if not wanted else {name: value for name, value in item.items() if name in wanted}
    return {**chosen, "owners": expand(item["id"])[:_MOST_EXPANDED]} if expanded and expand is not None else chosen


def _sorted(request: Request, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    order = request.query_params.get("$orderby", "").split()
    if not order:
        return items
    name, *direction = order
    if name not in _SORTABLE or direction not in ([], ["asc"], ["desc"]):
        raise not_emulated("graph", f"$orderby={' '.join(order)} of {request.url.path}")
    return sorted(items, key=lambda item: str(item.get(name) or "").casefold(), reverse=direction == ["desc"])


def _context(request: Request) -> str:
    return f"{str(request.base_url).rstrip('/')}/{request.scope.get(_VERSION, 'v1.0')}/$metadata"


def _integer(text: str) -> int:
    if not text.isdecimal():
        raise refusal("BadRequest integer", text=text)
    return int(text)


def _search(request: Request) -> str | None:
    """The text that `$search` looks for in display names, None without one; raises 400."""
    expression = request.query_params.get("$search")
    if expression is None:
        return None
    if not _is_eventual(request):
        raise refusal("Request_UnsupportedQuery search")
    match = _SEARCH.fullmatch(expression)
    if match is None:
        raise refusal("Request_UnsupportedQuery", query=expression)
    return match[1]


def _is_eventual(request: Request) -> bool:
    return request.headers.get("consistencylevel", "").lower() == "eventual"


def _chosen(request: Request, items: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items that match `$filter` and `$search`; raises 400."""
    searched, text = _search(request), request.query_params.get("$filter")
    is_advanced = _is_eventual(request) and request.query_params.get("$count", "").lower() == "true"
    holds = _condition(_parsed(text), text, is_advanced) if text is not None else None
    return [
        item
        for item in items
        if (searched is None or searched.casefold() in str(item.get("displayName") or "").casefold())
        and (holds is None or holds(item))
    ]


def _parsed(text: str) -> Expression:
    try:
        return odata_filter.parse(text)
    except odata_filter.InvalidFilterError:
        raise refusal("Request_UnsupportedQuery", query=text) from None


def _condition(expression: Expression, text: str, is_advanced: bool) -> Callable[[dict[str, Any]], bool]:
    """The condition on an item; raises 400. `ne`, `not` and `endsWith` are advanced queries."""

    def below(inner: Expression) -> Callable[[dict[str, Any]], bool]:
        return _condition(inner, text, is_advanced)

    match expression:
        case Joined(operator, conditions):
            each_of, joined = [below(condition) for condition in conditions], all if operator == "and" else any
            return lambda item: joined(holds(item) for holds in each_of)
        case Negated(inner) if is_advanced:
            holds = below(inner)
            return lambda item: not holds(item)
        case Compared(member, "eq", value) if member in _FILTERABLE:
            return lambda item: _is(item.get(member), value)
        case Compared(member, "ne", value) if member in _FILTERABLE and is_advanced:
            return lambda item: not _is(item.get(member), value)
        case OneOf(member, values) if member in _FILTERABLE:
            return lambda item: any(_is(item.get(member), value) for value in values)
        case Called("startswith", (Path(member), str(part))) if member in _FILTERABLE:
            return lambda item: str(item.get(member) or "").casefold().startswith(part.casefold())
        case Called("endswith", (Path(member), str(part))) if member in _FILTERABLE and is_advanced:
            return lambda item: str(item.get(member) or "").casefold().endswith(part.casefold())
        case AnyOf(member, variable, Compared(own, "eq", str(value))) if member in _COLLECTIONS and own == variable:
            return lambda item: value in _values(item, member)
        case AnyOf(member, variable, Called("startswith", (Path(own), str(part)))) if (
            member in _COLLECTIONS and own == variable
        ):
            return lambda item: any(value.startswith(part) for value in _values(item, member))
    raise refusal("Request_UnsupportedQuery", query=text)


def _values(item: dict[str, Any], member: str) -> list[str]:
    """A collection of an item, `a` or `a/b`."""
    holder, _, name = member.rpartition("/")
    return list(((item.get(holder) or {}) if holder else item).get(name) or ())


def _is(actual: object, asked: Value) -> bool:
    """Whether a property has a value; Entra ignores the case of names and ids."""
    if isinstance(actual, str) and isinstance(asked, str):
        return actual.casefold() == asked.casefold()
    return actual == asked
