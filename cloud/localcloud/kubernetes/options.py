"""The options of a request, as kube-apiserver reads them; it ignores every other name.

Sources: apimachinery `pkg/apis/meta/v1` and `pkg/apis/meta/internalversion` (`validation`), `pkg/runtime/converter`
(booleans), apiserver `pkg/storage` (versions, pages).
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from starlette.datastructures import QueryParams

from localcloud.kubernetes.errors import Cause, bad_request, expired, invalid_options, too_large_version
from localcloud.kubernetes.kinds import ResourceKind, field_at

_MATCHES: Final = ("Exact", "NotOlderThan", "")
_VALIDATIONS: Final = ("", "Ignore", "Strict", "Warn")
_POLICIES: Final = ("Background", "Foreground", "Orphan")
_TOO_OLD_PAGE: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
_TOKEN_VERSION: Final = "meta.k8s.io/v1"
# Of a token that continues with the current list (apiserver `pkg/storage/continue.go`).
_ANY_VERSION: Final = -1


@dataclass(frozen=True)
class ListOptions:
    """The options of a list or watch; `version` is None for any, `timeout` is in seconds."""

    labels: str
    fields: str
    is_watch: bool
    version: int | None
    limit: int
    timeout: int | None
    # After this key of an object; only of a following page.
    after: str = ""

    @classmethod
    def of(cls, query: QueryParams, newest: int) -> ListOptions:
        """Read a query; `newest` is the current resource version. Raises 400, 410, 422 and 504 `StatusError`."""
        is_watch, version = _boolean(query, "watch"), _version(query, newest)
        _check_list(query, is_watch=is_watch)
        if _first(query, "resourceVersionMatch") == "Exact" and version is not None and version < newest:
            raise expired("The resourceVersion for the provided list is too old.")
        after = ""
        if token := _first(query, "continue"):
            if version:
                raise bad_request("specifying resource version is not allowed when using continue")
            after = _after(token, newest)
        return cls(
            labels=_first(query, "labelSelector"),
            fields=_first(query, "fieldSelector"),
            is_watch=is_watch,
            version=version,
            limit=_integer(query, "limit") or 0,
            timeout=_integer(query, "timeoutSeconds"),
            after=after,
        )

    def page(self, items: list[dict[str, Any]], newest: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """The objects of this page, from all in the order of their keys, and the metadata of the list."""
        left = [item for item in items if _key(item) > self.after]
        metadata: dict[str, Any] = {"resourceVersion": str(newest)}
        if not 0 < self.limit < len(left):
            return left, metadata
        shown = left[: self.limit]
        metadata["continue"] = _token(newest, _key(shown[-1]))
        if not self.labels and not self.fields:
            metadata["remainingItemCount"] = len(left) - self.limit
        return shown, metadata


@dataclass(frozen=True)
class WriteOptions:
    dry_run: bool = False
    strict: bool = False
    # Whether the client wants warnings about dropped fields.
    warns: bool = True

    @classmethod
    def of(cls, query: QueryParams, kind: str) -> WriteOptions:
        """Read a query of `kind`, such as PatchOptions; raises a 422 `StatusError`."""
        validation, manager = _first(query, "fieldValidation"), _first(query, "fieldManager")
        causes = [*_dry_run_causes(query.getlist("dryRun"))]
        if validation not in _VALIDATIONS:
            causes.append(_unsupported("fieldValidation", validation, _VALIDATIONS))
        if len(manager) > 128:
            causes.append(Cause("fieldManager", "Too long: may not be more than 128 bytes", "FieldValueTooLong"))
        elif not manager.isprintable():
            causes.append(
                Cause("fieldManager", f'Invalid value: "{manager}": should only contain printable characters')
            )
        if causes:
            raise invalid_options(kind, causes)
        return cls(dry_run="dryRun" in query, strict=validation == "Strict", warns=validation != "Ignore")


@dataclass(frozen=True)
class DeleteOptions:
    """The options of a deletion; an object is deleted at once, whatever the grace period."""

    dry_run: bool
    orphan: bool
    preconditions: Mapping[str, str]

    @classmethod
    def of(cls, query: QueryParams, body: Mapping[str, Any]) -> DeleteOptions:
        """Read the body, or the query without one; raises a 400 or 422 `StatusError`."""
        policy, orphan = body.get("propagationPolicy"), body.get("orphanDependents")
        dry_run = body.get("dryRun") or []
        if not body:
            policy, dry_run = _first(query, "propagationPolicy") or None, query.getlist("dryRun")
            orphan = _boolean(query, "orphanDependents") if "orphanDependents" in query else None
            _integer(query, "gracePeriodSeconds")
        if not isinstance(dry_run, list):
            raise bad_request("dryRun: an array is expected")
        causes = [*_dry_run_causes(dry_run)]
        if policy is not None and orphan is not None:
            message = f'Invalid value: "{policy}": orphanDependents and deletionPropagation cannot be both set'
            causes.append(Cause("propagationPolicy", message))
        elif policy is not None and policy not in _POLICIES:
            causes.append(_unsupported("propagationPolicy", policy, _POLICIES))
        if causes:
            raise invalid_options("DeleteOptions", causes)
        return cls(bool(dry_run), policy == "Orphan" or orphan is True, body.get("preconditions") or {})


def check_get(query: QueryParams, newest: int) -> None:
    """Raise a 400 or 504 `StatusError` for an invalid or future resource version."""
    _version(query, newest)


def check_patch(query: QueryParams, *, is_apply: bool) -> None:
    """Raise a 422 `StatusError` for an option that only an apply may have, or must have."""
    if is_apply and not _first(query, "fieldManager"):
        cause = Cause("fieldManager", "Required value: is required for apply patch", "FieldValueRequired")
        raise invalid_options("PatchOptions", [cause])
    if not is_apply and "force" in query:
        raise invalid_options("PatchOptions", [_forbidden("force", "may not be specified for non-apply patch")])


def _check_list(query: QueryParams, *, is_watch: bool) -> None:
    match, version = _first(query, "resourceVersionMatch"), _first(query, "resourceVersion")
    causes: list[Cause] = []
    forbid = partial(_forbidden, "resourceVersionMatch")
    if "sendInitialEvents" in query:
        # A watch gets the message of a server without the feature, so clients list and watch instead.
        gate = "watch unless the WatchList feature gate is enabled" if is_watch else "list"
        causes.append(_forbidden("sendInitialEvents", f"sendInitialEvents is forbidden for {gate}"))
    elif match and is_watch:
        causes.append(forbid("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"))
    elif match:
        if not version:
            causes.append(forbid("resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if _first(query, "continue"):
            causes.append(forbid("resourceVersionMatch is forbidden when continue is provided"))
        if match not in _MATCHES:
            causes.append(_unsupported("resourceVersionMatch", match, _MATCHES))
        if match == "Exact" and version == "0":
            causes.append(forbid('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if causes:
        raise invalid_options("ListOptions", causes)


def _version(query: QueryParams, newest: int) -> int | None:
    """None without a version, and for "0", which means any."""
    text = _first(query, "resourceVersion")
    if not text.isascii() or not text.isdecimal():
        if text:
            raise bad_request(
                f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
            )
        return None
    if int(text) > newest:
        raise too_large_version(int(text), newest)
    return int(text) or None


def _after(token: str, newest: int) -> str:
    try:
        position = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        version, after = int(position["rv"]), str(position["start"]).removesuffix("\0")
        if position["v"] != _TOKEN_VERSION:
            raise ValueError(position["v"])
    except (ValueError, KeyError, TypeError):
        raise bad_request("continue key is not valid: it is not a token that this server has answered") from None
    if version not in {newest, _ANY_VERSION}:
        raise expired(_TOO_OLD_PAGE, {"continue": _token(_ANY_VERSION, after)})
    return after


def _token(version: int, after: str) -> str:
    document = {"v": _TOKEN_VERSION, "rv": version, "start": f"{after}\0"}
    return base64.urlsafe_b64encode(json.dumps(document, separators=(",", ":")).encode()).decode().rstrip("=")


def _key(document: Mapping[str, Any]) -> str:
    metadata = document["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


def _first(query: QueryParams, name: str) -> str:
    return next(iter(query.getlist(name)), "")


def _boolean(query: QueryParams, name: str) -> bool:
    """An option without a value is set."""
    return name in query and _first(query, name).lower() not in {"false", "0"}


def _integer(query: QueryParams, name: str) -> int | None:
    text = _first(query, name)
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def _dry_run_causes(values: list[Any]) -> list[Cause]:
    return [_unsupported("dryRun", value, ("All",)) for value in values if value != "All"]


def _unsupported(field: str, value: object, supported: tuple[str, ...]) -> Cause:
    listed = ", ".join(f'"{value}"' for value in supported)
    return Cause(field, f'Unsupported value: "{value}": supported values: {listed}', "FieldValueNotSupported")


def _forbidden(field: str, message: str) -> Cause:
    return Cause(field, f"Forbidden: {message}", "FieldValueForbidden")


Matches = Callable[[Mapping[str, Any]], bool]

_SET: Final = re.compile(r"^(?P<key>\S+)\s+(?P<operator>in|notin)\s*\((?P<values>[^)]*)\)$")
_LABEL_EQUALITY: Final = re.compile(r"(?P<key>[\w./-]+)\s*(?P<operator>==|=|!=)\s*(?P<values>[\w.-]*)", re.ASCII)
_EQUALITY: Final = re.compile(r"^(?P<key>[^!=\s]+)\s*(?P<operator>==|=|!=)\s*(?P<value>.*)$")
_COMMAS_OUTSIDE_PARENTHESES: Final = re.compile(r",(?![^(]*\))")


def label_selector(text: str) -> Matches:
    """`a=b,c!=d,e in (f,g),h,!i`; empty matches everything. Raises a 400 `StatusError` for anything else."""
    tests = [_label_test(part.strip()) for part in _COMMAS_OUTSIDE_PARENTHESES.split(text) if part.strip()]

    def matches(document: Mapping[str, Any]) -> bool:
        labels = document["metadata"].get("labels") or {}
        return all(test(labels) for test in tests)

    return matches


def field_selector(kind: ResourceKind, text: str) -> Matches:
    """`metadata.name=x,type!=y` over the fields that the kind makes selectable; others are a 400 `StatusError`."""
    supported = ("metadata.name", *(("metadata.namespace",) if kind.namespaced else ()), *kind.selectable)
    tests: list[tuple[str, str, bool]] = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        match = _EQUALITY.match(part)
        if match is None:
            raise bad_request(f"invalid field selector: '{part}'; can't understand it")
        if match["key"] not in supported:
            raise bad_request(
                f'field label "{match["key"]}" not supported for {kind.kind}: known are {", ".join(supported)}'
            )
        tests.append((match["key"], match["value"], match["operator"] != "!="))
    return lambda document: all(((field_at(document, path) or "") == wanted) is equal for path, wanted, equal in tests)


def _label_test(part: str) -> Matches:
    if match := _SET.match(part) or _LABEL_EQUALITY.fullmatch(part):
        key, is_among = match["key"], match["operator"] in {"in", "=", "=="}
        values = {value.strip() for value in match["values"].split(",")}
        return lambda labels: (labels.get(key) in values) is is_among
    if re.fullmatch(r"!\s*[\w./-]+", part):
        absent = part[1:].strip()
        return lambda labels: absent not in labels
    if re.fullmatch(r"[\w./-]+", part):
        return lambda labels: part in labels
    raise bad_request(f"unable to parse requirement: {part!r} is not a label selector")
