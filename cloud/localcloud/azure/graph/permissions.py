"""What a caller of Graph may do, by the application permissions in its token.

Source: Graph permissions reference. `Application.ReadWrite.OwnedBy` lists and reads everything, and manages what the
calling service principal owns; it owns what it creates. Nobody may change managed identities.
"""

from __future__ import annotations

from starlette.requests import Request

from localcloud.azure.graph.throttle import GraphThrottle
from localcloud.azure.shared.asked_cloud import cloud_of
from localcloud.azure.shared.http import ServiceError, bearer
from localcloud.azure.tenant.objects import Application, ServicePrincipal
from localcloud.azure.tenant.resources import GRAPH_APP_ID, audiences
from localcloud.azure.tenant.tokens import Caller, InvalidTokenError, Tokens

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
            raise ServiceError(401, "InvalidAuthenticationToken", "Access token is empty.")
        try:
            caller = self._tokens.verify(token, (*audiences(cloud_of(request.scope)).graph, GRAPH_APP_ID))
        except InvalidTokenError as error:
            raise ServiceError(401, "InvalidAuthenticationToken", error.reason) from None
        self._throttle.take(caller, request)
        return caller


def require_memberships(caller: Caller) -> None:
    """Raises 403 unless the caller may read the groups of a user, for itself or on a user's behalf."""
    granted = caller.roles | caller.scopes
    if not (granted & _READ_DIRECTORY or (granted & _READ_USERS and granted & _READ_GROUPS)):
        raise denied()


def require_read(caller: Caller) -> None:
    """Raises 403 unless the caller may read applications and service principals."""
    if not caller.roles & _READ:
        raise denied()


def require_create(caller: Caller) -> None:
    """Raises 403 unless the caller may create an application."""
    if not caller.roles & {WRITE_OWNED, WRITE_ALL}:
        raise denied()


def require_write(caller: Caller, entry: Application | ServicePrincipal) -> None:
    """Raises 403 unless the caller may change, delete or restore `entry`."""
    if isinstance(entry, ServicePrincipal) and entry.kind == "ManagedIdentity":
        raise denied()
    owned = WRITE_OWNED in caller.roles and caller.object_id in entry.owners
    if WRITE_ALL not in caller.roles and not owned:
        raise denied()


def require_create_principal(caller: Caller, application: Application | None) -> None:
    """Raises 403 unless the caller may create the service principal of `application` (None: no such application)."""
    require_create(caller)
    owned = application is not None and caller.object_id in application.owners
    if WRITE_ALL not in caller.roles and not owned:
        # Graph's message, verbatim; it is also sent while a replica does not know the application yet.
        raise denied(
            "When using this permission, the backing application of the service principal being created "
            "must in the local tenant"
        )


def initial_owners(caller: Caller, requested: tuple[str, ...]) -> tuple[str, ...]:
    """The owners of what the caller creates: with `OwnedBy` it is one of them."""
    if WRITE_ALL in caller.roles or caller.object_id in requested:
        return requested
    return (caller.object_id, *requested)


def denied(message: str = "Insufficient privileges to complete the operation.") -> ServiceError:
    """Graph's 403."""
    return ServiceError(403, "Authorization_RequestDenied", message)
