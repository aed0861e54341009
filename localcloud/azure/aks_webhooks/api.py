"""The two webhooks that kube-apiserver calls, as on AKS: TokenReview and SubjectAccessReview."""

from __future__ import annotations

from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from localcloud.azure.aks_webhooks.access import AccessReviews
from localcloud.azure.aks_webhooks.tokens import TokenReviews
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.shared.http import json_object, service_app

TOKENS: Final = "/tokenreviews"
ACCESS: Final = "/subjectaccessreviews"


def app(cloud: LocalAzure) -> Starlette:
    """The webhooks' application. A denial is 200, too: kube-apiserver reads no reason from other statuses."""
    tokens, access = TokenReviews(cloud), AccessReviews(cloud)

    async def review_token(request: Request) -> Response:
        status = await tokens.status(str((await _spec(request)).get("token", "")))
        return JSONResponse({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": status})

    async def review_access(request: Request) -> Response:
        status = access.status(await _spec(request))
        return JSONResponse({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "status": status})

    routes = [Route(TOKENS, review_token, methods=["POST"]), Route(ACCESS, review_access, methods=["POST"])]
    return service_app("aks-webhooks", routes, faults=cloud.faults, holder=cloud.holder)


async def _spec(request: Request) -> dict[str, Any]:
    return (await json_object(request)).get("spec") or {}
