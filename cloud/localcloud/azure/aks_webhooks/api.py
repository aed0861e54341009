"""The two webhooks that kube-apiserver calls, as on AKS: TokenReview and SubjectAccessReview."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from localcloud.azure.arm.containerservice import ManagedClusters
from localcloud.azure.graph.api import app as graph
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.resource_store import Resources
from localcloud.azure.shared.http import json_object, service_app
from localcloud.azure.shared.understood import Understood, operation
from localcloud.azure.tenant.tokens import PUBLIC_AUDIENCES, InvalidTokenError
from localcloud.core.arm_ids import is_uuid
from localcloud.core.clouds import AKS_SERVER_APP_ID

# The user behind a token that leaves out its groups: TokenReview (authentication.k8s.io/v1).
#
# Rules: github.com/kubeguard/guard, `auth/providers/azure`, in its mode for AKS: the user's name is `upn`, and the
# groups are read from Graph on behalf of the user. kube-apiserver verifies any other token itself, before it calls the
# webhook; a token that it refused stays refused.
#
# Left out: proof-of-possession tokens, which Arc's clusters take; the client certificate of kube-apiserver. A caller
# already has the token under review.


# The least scopes that Graph requires to read a user's groups.
_GRAPH: Final = PUBLIC_AUDIENCES.graph[0]
_SCOPES: Final = ("User.ReadBasic.All", "GroupMember.Read.All")


class _NotAuthenticatedError(Exception):
    """Why a token is not accepted; kube-apiserver logs it, and its client does not see it."""


class TokenReviews:
    def __init__(self, cloud: LocalAzure) -> None:
        self._tokens = cloud.tokens
        # Graph's own application, with its own permission checks.
        self._graph = httpx.AsyncClient(transport=httpx.ASGITransport(graph(cloud)), base_url=_GRAPH)

    async def status(self, token: str) -> dict[str, Any]:
        try:
            return {"authenticated": True, "user": await self._user(token)}
        except _NotAuthenticatedError as error:
            return {"authenticated": False, "error": str(error)}

    async def _user(self, token: str) -> dict[str, Any]:
        try:
            claims = self._tokens.claims(token, [AKS_SERVER_APP_ID])
        except InvalidTokenError as error:
            raise _NotAuthenticatedError(f"failed to verify token for azure: {error.reason}") from None
        if "groups" not in claims.get("_claim_names", {}):
            raise _NotAuthenticatedError("the token contains its groups, so kube-apiserver verifies it alone")
        if claims["idtyp"] == "app":
            raise _NotAuthenticatedError("service principal with group membership exceeding 200 is not supported")
        name = str(claims["upn"])
        return {"username": name, "groups": await self._groups(token, name), "extra": {"oid": [str(claims["oid"])]}}

    async def _groups(self, token: str, name: str) -> list[str]:
        delegated = self._tokens.on_behalf_of(token, AKS_SERVER_APP_ID, _GRAPH, _SCOPES)
        answer = await self._graph.post(
            f"/v1.0/users/{name}/getMemberGroups",
            json={"securityEnabledOnly": False},
            headers={"Authorization": f"Bearer {delegated}"},
        )
        if answer.status_code != HTTPStatus.OK:
            raise _NotAuthenticatedError(f"failed to get groups: Graph answers {answer.status_code}: {answer.text}")
        return list(answer.json()["value"])


# Whether role assignments allow a request to Kubernetes: SubjectAccessReview (authorization.k8s.io/v1).
#
# "Azure RBAC for Kubernetes authorization", by the rules of github.com/kubeguard/guard, `authz/providers/azure`: each
# request is a data action, `Microsoft.ContainerService/managedClusters/[<API group>/]<resource>/<read, write, ...>`, on
# the cluster or on a namespace of it. kube-apiserver evaluates its own roles first; either kind can allow a request.
#
# Every managed cluster here is this machine's one Kubernetes API, so what one of them allows is allowed; without Azure
# RBAC on any of them there is no opinion. A request with a wildcard, for which AKS tries every operation, is denied.
# Left out: impersonation.

_ALLOWED: Final = {"allowed": True, "reason": "Access allowed by Azure RBAC"}
_DENIED: Final = {
    "allowed": False,
    "denied": True,
    "reason": "User does not have access to the resource in Azure. Update role assignment to allow access.",
}
_NOT_ASKED: Final = {"allowed": False}  # a cluster without Azure RBAC does not ask
_NO_OPINION: Final = {"allowed": False, "reason": "Azure does not have opinion for this user."}
_ANY: Final = "*"
_ACTIONS: Final = {
    **dict.fromkeys(("get", "list", "watch"), "read"),
    **dict.fromkeys(("create", "patch", "update"), "write"),
    **dict.fromkeys(("delete", "deletecollection"), "delete"),
    **{verb: f"{verb}/action" for verb in ("bind", "escalate", "use", "impersonate")},
}


class AccessReviews:
    def __init__(self, cloud: LocalAzure) -> None:
        self._cloud = cloud
        self._resources = Resources(cloud.store)

    def status(self, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        # Those on which role assignments decide.
        clusters = [
            cluster["id"]
            for cluster in self._resources.below(f"/subscriptions/{self._cloud.subscription_id}", ManagedClusters.name)
            if (cluster["properties"].get("aadProfile") or {}).get("enableAzureRBAC")
        ]
        if not clusters:
            return _NOT_ASKED
        who = self._object_id(str(spec.get("user", "")))
        if who is None:
            return _NO_OPINION
        principals = [who, *filter(is_uuid, spec.get("groups") or ())]
        action, namespace = _data_action(spec)
        scopes = [f"{cluster}/namespaces/{namespace}" if namespace else cluster for cluster in clusters]
        is_allowed = _ANY not in action and any(
            self._cloud.authorization.allowed(principal, action, scope, data=True)
            for principal in principals
            for scope in scopes
        )
        return _ALLOWED if is_allowed else _DENIED

    def _object_id(self, user: str) -> str | None:
        """The object id of a Kubernetes user, None for a user that is not in Entra ID."""
        if is_uuid(user):
            return user
        person = self._cloud.people.user_by_name(user)
        return person.object_id if person else None


def _data_action(spec: Mapping[str, Any]) -> tuple[str, str]:
    """The data action of a request, and the namespace it is for ("": none)."""
    asked: Mapping[str, Any] = spec.get("resourceAttributes") or {}
    if not asked:
        path = spec.get("nonResourceAttributes") or {}
        parts = [path.get("path", ""), _ACTIONS.get(path.get("verb", ""), path.get("verb", ""))]
        return _joined(*parts), ""
    resource, verb = asked.get("resource", ""), asked.get("verb", "")
    if (resource, asked.get("subresource")) == ("pods", "exec"):
        return _joined("pods", "exec", "action"), asked.get("namespace", "")
    return _joined(asked.get("group", ""), resource, _ACTIONS.get(verb, verb)), asked.get("namespace", "")


def _joined(*parts: str) -> str:
    return "/".join([ManagedClusters.name, *(part.strip("/") for part in parts if part.strip("/"))])


TOKENS: Final = "/tokenreviews"
ACCESS: Final = "/subjectaccessreviews"
_ACCESS_SPEC: Final = "resourceAttributes nonResourceAttributes user groups uid extra"


def app(cloud: LocalAzure) -> Starlette:
    """The webhooks' application. A denial is 200, too: kube-apiserver reads no reason from other statuses."""
    tokens, access = TokenReviews(cloud), AccessReviews(cloud)

    async def review_token(request: Request) -> Response:
        status = await tokens.status(str((await _spec(request)).get("token", "")))
        return JSONResponse({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": status})

    async def review_access(request: Request) -> Response:
        status = access.status(await _spec(request))
        return JSONResponse({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "status": status})

    routes = [
        operation("aks-webhooks", TOKENS, review_token, "POST", reads=_reads("token audiences")),
        operation("aks-webhooks", ACCESS, review_access, "POST", reads=_reads(_ACCESS_SPEC)),
    ]
    return service_app("aks-webhooks", routes, faults=cloud.faults, holder=cloud.holder)


def _reads(spec: str) -> Understood:
    """A review has `metadata` and `status`, which are empty, and kube-apiserver says how long it waits."""
    members = dict.fromkeys(("apiVersion", "kind", "metadata", "status"))
    return Understood.of("timeout", body={**members, "spec": dict.fromkeys(spec.split())})


async def _spec(request: Request) -> dict[str, Any]:
    return (await json_object(request)).get("spec") or {}
