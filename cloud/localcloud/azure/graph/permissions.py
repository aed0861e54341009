"""What a caller of Graph may do, by the application permissions in its token.

Source: Graph permissions reference. `Application.ReadWrite.OwnedBy` lists and reads everything, and manages what the
calling service principal owns; it owns what it creates. Nobody may change managed identities.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.requests import Request

from localcloud.azure.shared.faults import TokenBuckets
from localcloud.azure.shared.http import bearer, cloud_of
from localcloud.azure.shared.refusals import refusal
from localcloud.azure.tenant.objects import Application, ServicePrincipal
from localcloud.azure.tenant.tokens import GRAPH_APP_ID, Caller, InvalidTokenError, Tokens, audiences

# Graph's limits of identity and access: resource units and writes of an application in a tenant, writes of a tenant.
#
# Source of rule, costs, figures and headers: Microsoft Learn, "Microsoft Graph service-specific throttling limits",
# identity and access service limits, which name the token bucket. The answer is that of "Microsoft Graph throttling
# guidance". Left out: the limits of an application in all tenants (there is one tenant), priorities, and the headers of
# answers that are not throttled.


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
        """Count a caller's request; raises 429 with Retry-After at a limit, where the request counts for none."""
        pair = (caller.client_id, caller.tenant_id)
        costs = [("unit", pair, units(request), "Tenant_Application/ReadWrite", "ResourceUnitLimitExceeded")]
        if is_write(request):
            costs += [
                ("write", pair, 1, "Tenant_Application/Write", "WriteLimitExceeded"),
                ("tenant_write", (caller.tenant_id, ""), 1, "Tenant/Write", "WriteLimitExceeded"),
            ]
        for kind, holder, amount, scope, reason in costs:
            if seconds := self._buckets.wait(holder, kind, amount):
                headers = {"Retry-After": str(seconds), "x-ms-throttle-information": reason}
                headers["x-ms-throttle-scope"] = f"{scope}/{caller.client_id}/{caller.tenant_id}"
                raise refusal("TooManyRequests", headers)
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
    return request.method not in ("GET", "HEAD") and _last(request) not in _READING_POSTS


def _last(request: Request) -> str:
    return request.url.path.rpartition("/")[2]


WRITE_OWNED = "Application.ReadWrite.OwnedBy"
WRITE_ALL = "Application.ReadWrite.All"
# Graph v1.0 reference, directoryObject: getMemberGroups, "Group memberships for a user"; the same for either kind.
_READ_DIRECTORY = frozenset({"Directory.Read.All"})
_READ_USERS = frozenset({"User.ReadBasic.All", "User.Read.All"})
_READ_GROUPS = frozenset({"GroupMember.Read.All", "Group.Read.All"})
_READ = frozenset({"Application.Read.All", "Directory.Read.All", WRITE_OWNED, WRITE_ALL})


class GraphGuard:
    """The checks of every request: authentication, then the limits of Graph."""

    def __init__(self, tokens: Tokens, throttle: GraphThrottle) -> None:
        self._tokens = tokens
        self._throttle = throttle

    def authenticate(self, request: Request) -> Caller:
        """The caller behind the bearer; raises 401 without a valid one for Graph, and 429 beyond a limit."""
        token = bearer(request)
        if token is None:
            raise refusal("InvalidAuthenticationToken", reason="Access token is empty.")
        try:
            caller = self._tokens.verify(token, (*audiences(cloud_of(request.scope)).graph, GRAPH_APP_ID))
        except InvalidTokenError as error:
            raise refusal("InvalidAuthenticationToken", reason=error.reason) from None
        self._throttle.take(caller, request)
        return caller


def require_memberships(caller: Caller) -> None:
    """Raises 403 unless the caller may read the groups of a user, for itself or on a user's behalf."""
    granted = caller.roles | caller.scopes
    if not (granted & _READ_DIRECTORY or (granted & _READ_USERS and granted & _READ_GROUPS)):
        raise refusal("Authorization_RequestDenied")


def require_read(caller: Caller) -> None:
    """Raises 403 unless the caller may read applications and service principals."""
    if not caller.roles & _READ:
        raise refusal("Authorization_RequestDenied")


def require_create(caller: Caller) -> None:
    """Raises 403 unless the caller may create an application."""
    if not caller.roles & {WRITE_OWNED, WRITE_ALL}:
        raise refusal("Authorization_RequestDenied")


def require_write(caller: Caller, entry: Application | ServicePrincipal) -> None:
    """Raises 403 unless the caller may change, delete or restore `entry`."""
    if isinstance(entry, ServicePrincipal) and entry.kind == "ManagedIdentity":
        raise refusal("Authorization_RequestDenied")
    owned = WRITE_OWNED in caller.roles and caller.object_id in entry.owners
    if WRITE_ALL not in caller.roles and not owned:
        raise refusal("Authorization_RequestDenied")


def require_create_principal(caller: Caller, application: Application | None) -> None:
    """Raises 403 unless the caller may create the service principal of `application` (None: no such application)."""
    require_create(caller)
    owned = application is not None and caller.object_id in application.owners
    if WRITE_ALL not in caller.roles and not owned:
        raise refusal("Authorization_RequestDenied foreign application")


def initial_owners(caller: Caller, requested: tuple[str, ...]) -> tuple[str, ...]:
    """The owners of what the caller creates: with `OwnedBy` it is one of them."""
    if WRITE_ALL in caller.roles or caller.object_id in requested:
        return requested
    return (caller.object_id, *requested)
