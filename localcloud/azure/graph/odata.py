"""The part of OData that clients of applications use: `$filter`, `$select`, and collections."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from starlette.requests import Request

from localcloud.azure.shared.http import ServiceError

_FILTERABLE = ("id", "appId", "displayName", "uniqueName", "servicePrincipalType")
_TEXT = r"'((?:[^']|'')*)'"  # a quote within is doubled
_EQUALS = re.compile(rf"(\w+) eq {_TEXT}")
_STARTS_WITH = re.compile(rf"startswith\(\s*(\w+)\s*,\s*{_TEXT}\s*\)", re.IGNORECASE)
_ANY = re.compile(rf"(tags|identifierUris)/any\((\w+):\s*\2 eq {_TEXT}\)")
_AND = re.compile(r" and (?=(?:[^']*'[^']*')*[^']*$)")  # outside quotes


def collection(request: Request, name: str, items: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The answer to a list request: the items that `$filter` lets through, cut to `$select`."""
    expression = request.query_params.get("$filter")
    chosen = [select(request, item) for item in items if expression is None or _matches(item, expression)]
    return {"@odata.context": f"{_context(request)}#{name}", "value": chosen}


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
    return f"{str(request.base_url).rstrip('/')}/v1.0/$metadata"


def _matches(item: dict[str, Any], expression: str) -> bool:
    return all(_holds(item, term.strip()) for term in _AND.split(expression))


def _holds(item: dict[str, Any], term: str) -> bool:
    if (match := _ANY.fullmatch(term)) is not None:
        return _unquoted(match[3]) in item.get(match[1], ())
    # Entra compares names and ids without regard to case.
    if (match := _EQUALS.fullmatch(term)) is not None and match[1] in _FILTERABLE:
        return str(item.get(match[1]) or "").casefold() == _unquoted(match[2]).casefold()
    if (match := _STARTS_WITH.fullmatch(term)) is not None and match[1] in _FILTERABLE:
        return str(item.get(match[1]) or "").casefold().startswith(_unquoted(match[2]).casefold())
    raise ServiceError(400, "Request_UnsupportedQuery", f"Unsupported query: '{term}'.")


def _unquoted(text: str) -> str:
    return text.replace("''", "'")
