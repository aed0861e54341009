"""Graph's limits of identity and access: resource units and writes of an application in a tenant, writes of a tenant.

Source of rule, costs, figures and headers: Microsoft Learn, "Microsoft Graph service-specific throttling limits",
identity and access service limits, which name the token bucket. The answer is that of "Microsoft Graph throttling
guidance". Left out: the limits of an application in all tenants (there is one tenant), priorities, and the headers of
answers that are not throttled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.requests import Request

from localcloud.azure.shared.http import ServiceError
from localcloud.azure.shared.token_buckets import TokenBuckets
from localcloud.azure.tenant.tokens import Caller

# Resource units of the operations that are emulated and cost another number than 1: by method and end of the path.
_UNITS: Final[Mapping[tuple[str, str], int]] = {
    ("GET", "applications"): 2,
    ("POST", "getByIds"): 3,
    ("POST", "getMemberGroups"): 2,
}
_READING_POSTS: Final = frozenset({"getByIds", "getMemberGroups"})
_SMALL_PAGE: Final = 20


class GraphThrottle:
    """Counts requests. `limits` has (bucket size, refilled per second) for `unit`, `write` and `tenant_write`."""

    def __init__(self, limits: Mapping[str, tuple[float, float]]) -> None:
        self._buckets = TokenBuckets(limits)

    def take(self, caller: Caller, request: Request) -> None:
        """Count a request of an authenticated caller.

        Raises:
            ServiceError: 429 with Retry-After, when a limit is reached. Such a request counts for none.
        """
        pair = (caller.client_id, caller.tenant_id)
        costs = [("unit", pair, units(request), "Tenant_Application/ReadWrite", "ResourceUnitLimitExceeded")]
        if is_write(request):
            costs += [
                ("write", pair, 1, "Tenant_Application/Write", "WriteLimitExceeded"),
                ("tenant_write", (caller.tenant_id, ""), 1, "Tenant/Write", "WriteLimitExceeded"),
            ]
        for kind, holder, amount, scope, reason in costs:
            if seconds := self._buckets.wait(holder, kind, amount):
                raise _throttled(seconds, f"{scope}/{caller.client_id}/{caller.tenant_id}", reason)
        for kind, holder, amount, _, _ in costs:
            self._buckets.take(holder, kind, amount)


def units(request: Request) -> int:
    """What a request costs of the resource units: that of its path, changed by its query, and at least 1."""
    query = request.query_params
    cost = _UNITS.get((request.method, _last(request)), 1)
    cost += ("$expand" in query) - ("$select" in query)
    top = query.get("$top", "")
    cost -= top.isdecimal() and int(top) < _SMALL_PAGE
    return max(1, cost)


def is_write(request: Request) -> bool:
    """Whether a request counts as a write."""
    return request.method not in ("GET", "HEAD") and _last(request) not in _READING_POSTS


def _last(request: Request) -> str:
    return request.url.path.rpartition("/")[2]


def _throttled(seconds: int, scope: str, reason: str) -> ServiceError:
    headers = {"Retry-After": str(seconds), "x-ms-throttle-scope": scope, "x-ms-throttle-information": reason}
    return ServiceError(429, "TooManyRequests", "Please retry again later.", headers)
