"""`$filter` of the lists of resource groups and of resources.

Sources: REST reference 2021-04-01, "Resource Groups - List" (a tag, with or without its value; azure-rest-api-specs
issue 3853) and "Resources - List" (location, resourceType, name, resourceGroup with `eq` or `ne`, `substringof` and
`startswith`, or a tag alone; azure-powershell issue 293).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from localcloud.azure.arm import errors
from localcloud.azure.shared import odata_filter
from localcloud.azure.shared.odata_filter import Called, Compared, Expression, Joined, Path
from localcloud.core.store import Document

Wanted = Callable[[Document], bool]
_MEMBERS: Final = frozenset({"resourcetype", "name", "location", "resourcegroup"})
_TAG: Final = frozenset({"tagname", "tagvalue"})


def of_groups(text: str) -> Wanted:
    """The condition on a resource group; raises 400 `InvalidFilterInQueryString`."""
    expression = _parsed(text)
    if expression is None:
        return lambda _: True
    return _tagged(expression, text)


def of_resources(text: str) -> Wanted:
    """The condition on a resource; raises 400 `InvalidFilterInQueryString`."""
    expression = _parsed(text)
    if expression is None:
        return lambda _: True
    if any(isinstance(term, Compared) and term.member.lower() in _TAG for term in odata_filter.terms(expression)):
        return _tagged(expression, text)
    return _condition(expression, text)


def _parsed(text: str) -> Expression | None:
    if not text.strip():
        return None
    try:
        return odata_filter.parse(text)
    except odata_filter.InvalidFilterError:
        raise errors.invalid_filter(text) from None


def _tagged(expression: Expression, text: str) -> Wanted:
    """Tag names are compared without case, their values with it (azure-docs `tag-resources`)."""
    asked: dict[str, str] = {}
    for term in odata_filter.terms(expression):
        match term:
            case Compared(member, "eq", str(value)) if member.lower() in _TAG - asked.keys():
                asked[member.lower()] = value
            case _:
                raise errors.invalid_filter(text)
    if "tagname" not in asked:
        raise errors.invalid_filter(text)

    def holds(resource: Document) -> bool:
        values = [value for name, value in (resource.get("tags") or {}).items() if name.lower() == name_asked]
        return bool(values) and asked.get("tagvalue", values[0]) in values

    name_asked = asked["tagname"].lower()
    return holds


def _condition(expression: Expression, text: str) -> Wanted:
    match expression:
        case Joined(operator, conditions):
            each_of = [_condition(condition, text) for condition in conditions]
            joined = all if operator == "and" else any
            return lambda resource: joined(holds(resource) for holds in each_of)
        case Compared(member, "eq" | "ne" as operator, str(value)) if member.lower() in _MEMBERS:
            is_equal = operator == "eq"
            return lambda resource: (_member(resource, member) == value.lower()) is is_equal
        case Called("substringof", (str(value), Path(member))) if member.lower() in _MEMBERS:
            return lambda resource: value.lower() in _member(resource, member)
        case Called("startswith", (Path(member), str(value))) if member.lower() in _MEMBERS:
            return lambda resource: _member(resource, member).startswith(value.lower())
    raise errors.invalid_filter(text)


def _member(resource: Document, name: str) -> str:
    values = {
        "resourcetype": resource["type"],
        "name": resource["name"],
        "location": resource["location"],
        "resourcegroup": resource["id"].split("/")[4],
    }
    return str(values[name.lower()]).lower()
