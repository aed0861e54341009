"""The user behind a token that leaves out its groups: TokenReview (authentication.k8s.io/v1).

Rules: github.com/kubeguard/guard, `auth/providers/azure`, in its mode for AKS: the user's name is `upn`, and the groups
are read from Graph on behalf of the user. kube-apiserver verifies any other token itself, before it calls the webhook;
a token that it refused stays refused.

Left out: proof-of-possession tokens, which Arc's clusters take; the client certificate of kube-apiserver. A caller
already has the token under review.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

import httpx

from localcloud.azure.graph.api import app as graph
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.tenant.resources import PUBLIC_AUDIENCES
from localcloud.azure.tenant.tokens import InvalidTokenError
from localcloud.core.clouds import AKS_SERVER_APP_ID

# The least scopes that Graph requires to read a user's groups.
_GRAPH: Final = PUBLIC_AUDIENCES.graph[0]
_SCOPES: Final = ("User.ReadBasic.All", "GroupMember.Read.All")


class _NotAuthenticatedError(Exception):
    """Why a token is not accepted; kube-apiserver logs it, and its client does not see it."""


class TokenReviews:
    """Answers TokenReviews."""

    def __init__(self, cloud: LocalAzure) -> None:
        self._tokens = cloud.tokens
        # Graph's own application, with its own permission checks.
        self._graph = httpx.AsyncClient(transport=httpx.ASGITransport(graph(cloud)), base_url=_GRAPH)

    async def status(self, token: str) -> dict[str, Any]:
        """The `status` of a TokenReview."""
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
