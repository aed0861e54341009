"""The entry of ARM: authenticates and authorizes each request, finds its parents, and calls the resource type.

The order is ARM's: api-version, bearer, subscription, limits, resource type, authorization, resource group, parent. So
a caller without rights learns nothing about what exists. Linked authorization is left to each resource type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from localcloud.azure.arm import (
    authorization,
    compute,
    containerservice,
    errors,
    json_types,
    keyvault,
    managedidentity,
    network,
    resources,
    storage,
    subscriptions,
)
from localcloud.azure.arm.path import ArmPath, parse
from localcloud.azure.arm.resource_type import ANSWERED, Call, ResourceType, unknown_member
from localcloud.azure.authorization import Attributes
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.resource_store import Resources
from localcloud.azure.shared.faults import TokenBuckets
from localcloud.azure.shared.http import authority_of, bearer, cloud_of, json_object, service_app
from localcloud.azure.shared.refusals import ServiceError, refusal
from localcloud.azure.shared.understood import check_headers, check_query, first_unknown, without_nulls
from localcloud.azure.tenant.tokens import Caller, InvalidTokenError, audiences
from localcloud.core.clouds import CLOUDS, DEFAULT_CLOUD, Cloud
from localcloud.core.documents import document

# `GET /metadata/endpoints`: the addresses of a cloud's services, which needs no token.
#
# Source: the answer of management.azure.com with api-version 2022-09-01, of which this has the emulated services, and
# the list of 2019-05-01, which the Azure CLI reads (azure-cli-core `cloud.py`).

_METADATA_PATH: Final = "/metadata/endpoints"
# Versions from here on answer one object, earlier ones a list of every cloud.
_ONE_CLOUD: Final = "2022-09-01"
# The names that ARM gives the clouds.
_NAMES: Final = {DEFAULT_CLOUD: "AzureCloud", "AzureUSGovernmentCloud": "AzureUSGovernment"}


async def _endpoints(request: Request) -> Response:
    """The endpoints of the cloud that was asked."""
    version = request.query_params.get("api-version", "")
    errors.check_api_version(version)
    if version >= _ONE_CLOUD:
        return JSONResponse(_described(cloud_of(request.scope)))
    return JSONResponse([_described(cloud) for cloud in CLOUDS.values()])


def _described(cloud: Cloud) -> dict[str, Any]:
    return document(
        *(__file__, "cloud"),
        name=_NAMES.get(cloud.name, cloud.name),
        login=cloud.authority_host.rstrip("/"),
        audience=cloud.arm_scope.removesuffix("/.default"),
        arm=cloud.arm_endpoint,
        graph=cloud.graph_endpoint,
        vaults=cloud.vault_suffix,
        hsms=cloud.managed_hsm_suffix,
        storage=cloud.storage_suffix,
    )


# ARM's request limits: a token bucket for each principal, subscription and kind of operation.
#
# Source of rule and figures: Microsoft Learn, "Understand how Azure Resource Manager throttles requests" (the
# architecture of 2024). The message is quoted in azure-docs issue 105248 and in the logs of many users.


class Throttle:
    """Counts requests. `limits` has (bucket size, tokens refilled per second) for read, write and delete."""

    def __init__(self, limits: Mapping[str, tuple[float, float]]) -> None:
        self._limits = limits
        self._buckets = TokenBuckets(limits)

    def take(self, actor: str, subscription: str | None, kind: str) -> Mapping[str, str]:
        """Count one request of an object id; returns the headers for its answer. A kind without a limit is not counted.

        Raises:
            ServiceError: 429 with Retry-After, when the bucket is empty. Such a request takes no token.
        """
        if kind not in self._limits:
            return {}
        holder = (actor, subscription)
        if seconds := self._buckets.wait(holder, kind):
            words = {"kind": kind, "actor": actor, "seconds": seconds}
            headers = {"Retry-After": str(seconds)}
            if subscription is None:
                raise refusal("TenantRequestsThrottled", headers, **words)
            raise refusal("SubscriptionRequestsThrottled", headers, subscription=subscription, **words)
        level = "tenant" if subscription is None else "subscription"
        return {f"x-ms-ratelimit-remaining-{level}-{kind}s": str(self._buckets.take(holder, kind))}


_NAMESPACES: Final = (
    authorization,
    compute,
    containerservice,
    keyvault,
    managedidentity,
    network,
    resources,
    storage,
    subscriptions,
)
_OPERATIONS: Final = {"GET": "read", "HEAD": "read", "PUT": "write", "PATCH": "write", "DELETE": "delete"}


def app(cloud: LocalAzure) -> Starlette:
    """The service."""
    known = {type_.name.lower(): type_ for namespace in _NAMESPACES for type_ in namespace.types()}
    type_names = tuple(resource_type.name for resource_type in known.values())
    store = Resources(cloud.store)
    throttle = Throttle(cloud.faults.arm_requests)

    async def handle(request: Request) -> Response:
        query = {name.lower(): value for name, value in request.query_params.items()}
        errors.check_api_version(query.get("api-version", ""))
        caller = _authenticate(cloud, request)
        path = parse(request.url.path, request.method)
        if path.subscription is not None and path.subscription.lower() != cloud.subscription_id:
            raise refusal("SubscriptionNotFound", subscription=path.subscription)
        headers = throttle.take(caller.object_id, path.subscription, _OPERATIONS.get(request.method, "write"))
        resources.end_due_deletions(cloud)
        resource_type = known.get(path.type.lower())
        if resource_type is None:
            raise errors.not_emulated(f"the resource type {path.type}")
        if not _is_open(cloud, caller, resource_type, path, request.method):
            attributes = None if resource_type.checks_conditions else Attributes()
            # azure-docs `role-definitions`, in Azure's own letter case
            operation = f"{path.verb}/action" if request.method == "POST" else _OPERATIONS[request.method]
            cloud.authorization.require(
                caller.object_id, f"{resource_type.name}/{operation}", path.authorization_scope, attributes
            )
        held = cloud.holder.now()
        errors.refuse_unregistered(path, held.unregistered_providers)
        errors.refuse_locked(path, _OPERATIONS.get(request.method, "write"), held.locks)
        body = await _understood(request, resource_type, path)
        _find_place(store, path, resource_type, request.method)
        _refuse_read_only(cloud, path, request.method)
        asked = cloud_of(request.scope)
        call = Call(cloud, store, path, caller, body, query, request.url, asked, type_names)
        response = await _dispatch(resource_type, call, request.method)
        response.headers.update(headers)
        if response.headers.get("Location", "").startswith("/"):
            response.headers["Location"] = f"{str(request.base_url).rstrip('/')}{response.headers['Location']}"
        return response

    methods = [*_OPERATIONS, "POST"]
    routes = [
        Route(_METADATA_PATH, _endpoints, methods=["GET"]),
        Route("/{path:path}", handle, methods=methods),
    ]
    return service_app("arm", routes, faults=cloud.faults, holder=cloud.holder)


def _is_open(cloud: LocalAzure, caller: Caller, resource_type: ResourceType, path: ArmPath, method: str) -> bool:
    """Whether the caller may make this request without a role that grants it."""
    if resource_type.listed_by_access and path.is_collection:
        return True
    if method not in ("GET", "HEAD", "POST"):
        return False
    if resource_type.read_with_any_role:
        return cloud.authorization.has_any_role(caller.object_id, f"/subscriptions/{cloud.subscription_id}")
    return resource_type.read_by_anybody_at_the_root and path.scope == "" and method != "POST"


async def _understood(request: Request, resource_type: ResourceType, path: ArmPath) -> dict[str, Any]:
    """The body of a request; raises 400 and 501 for anything that its operation would ignore."""
    method = "GET" if request.method == "HEAD" else request.method
    operation = {"GET": "list"}.get(method, "") if path.is_collection else method
    if method == "POST":
        operation = f"POST {str(path.verb).lower()}"
    reads = resource_type.reads_of(operation) if operation else None
    body = await json_object(request)
    if reads is None:
        return body

    def unknown(what: str) -> ServiceError:
        return errors.not_emulated(f"{what} of {operation} {resource_type.name}")

    check_query(request, {*reads.query, "api-version"}, unknown)
    check_headers(request.headers, reads.headers, unknown)
    known = {**ANSWERED, **(reads.body or {})}
    if (member := first_unknown(body, known)) is not None:
        raise unknown_member(resource_type, operation, member)
    json_types.check(body, resource_type.name)
    return without_nulls(body) if method == "PUT" else body


def _authenticate(cloud: LocalAzure, request: Request) -> Caller:
    def unauthenticated(code: str, message: str) -> ServiceError:
        authority = f"{authority_of(request.scope, cloud.authority_host)}{cloud.tenant_id}"
        challenge = f'Bearer authorization_uri="{authority}", error="invalid_token", error_description="{message}"'
        return ServiceError(401, code, message, {"WWW-Authenticate": challenge})

    token = bearer(request)
    if token is None:
        raise unauthenticated("AuthenticationFailed", "Authentication failed. The 'Authorization' header is missing.")
    try:
        return cloud.tokens.verify(token, audiences(cloud_of(request.scope)).arm)
    except InvalidTokenError as refusal:
        raise unauthenticated("InvalidAuthenticationToken", refusal.reason) from None


def _refuse_read_only(cloud: LocalAzure, path: ArmPath, method: str) -> None:
    """Refuse to change a vault, or a secret in it, that is held read-only."""
    if method in ("PUT", "PATCH", "DELETE") and path.type.lower().startswith("microsoft.keyvault/vaults"):
        for vault in path.names[:1]:
            if cloud.holder.now().is_read_only(vault):
                raise refusal("Forbidden read-only vault", vault=vault)


def _find_place(store: Resources, path: ArmPath, resource_type: ResourceType, method: str) -> None:
    """Refuse a request into a resource group, a parent or (extension types) onto a resource that does not exist.

    The scope of an extension may be finer than ARM's own resources (a key of a vault, a namespace of a cluster), so
    only the outermost resource is looked for.
    """
    is_the_group = path.scope is None and not path.is_collection
    group = None if path.group_id is None or is_the_group else store.get(path.group_id)
    if path.group_id is not None and not is_the_group and group is None:
        raise refusal("ResourceGroupNotFound", name=path.resource_group)
    if group is not None and method in ("PUT", "PATCH"):
        errors.refuse_deleting(group)
    if resource_type.extension and path.scope and "/providers/" in path.scope.lower():
        outermost = parse(path.scope, "GET").outermost
        if store.get(outermost.id) is None:
            raise errors.resource_not_found(outermost, outermost.type)
    in_a_group = path.resource_group is not None and path.scope is not None
    if in_a_group and path.parent_id is not None and store.get(path.parent_id) is None:
        raise errors.parent_not_found(path, resource_type.name, _OPERATIONS.get(method, "write"))


async def _dispatch(resource_type: ResourceType, call: Call, method: str) -> Response:
    if call.path.is_collection:
        if method != "GET":
            raise refusal("MethodNotAllowed", method=method)
        return await resource_type.list(call)
    match method:
        case "GET":
            return await resource_type.get(call)
        case "HEAD":
            await resource_type.get(call)
            return Response(status_code=204)
        case "PUT":
            return await resource_type.put(call)
        case "PATCH":
            return await resource_type.patch(call)
        case "DELETE":
            return await resource_type.delete(call)
        case _:
            return await resource_type.action(call)
