"""The two webhooks that kube-apiserver calls, as on AKS: TokenReview and SubjectAccessReview."""

from __future__ import annotations

from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from localcloud.azure.aks_webhooks.access import AccessReviews
from localcloud.azure.aks_webhooks.tokens import TokenReviews
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.shared.http import json_object, service_app
from localcloud.azure.shared.understood import Understood, operation

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
