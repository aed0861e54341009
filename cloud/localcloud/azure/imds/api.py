"""IMDS as its clients call it: `GET /metadata/identity/oauth2/token` over plain HTTP on the node.

An identity is the node's when a scale set of the subscription carries it (`identity.userAssignedIdentities`), for this
machine is the one node of every cluster here. Sources: azure-docs "How to use managed identities on a VM" for
parameters and error codes; messages from Azure/aad-pod-identity and azure-docs issue 21322.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.shared.http import service_app
from localcloud.azure.shared.refusals import ServiceError, refusal
from localcloud.azure.shared.understood import Understood, operation
from localcloud.azure.tenant.objects import ServicePrincipal
from localcloud.azure.tenant.tokens import EXCHANGE, exchange_issuer, first_party_audiences
from localcloud.core import clock
from localcloud.core.clouds import CLOUDS, DEFAULT_CLOUD

_SCALE_SETS = "microsoft.compute/virtualmachinescalesets"
_LIFETIME = timedelta(hours=24)
# The parameters that select an identity; `msi_res_id` is the older spelling.
_SELECTORS = ("client_id", "object_id", "mi_res_id", "msi_res_id")


def app(cloud: LocalAzure) -> Starlette:
    """The metadata service's application, to be served over plain HTTP."""
    imds = _Imds(cloud)
    reads = Understood.of(f"api-version resource bypass_cache {' '.join(_SELECTORS)}", "metadata")
    routes = [operation("imds", "/metadata/identity/oauth2/token", imds.token, "GET", reads=reads)]
    return service_app("imds", routes, faults=cloud.faults, holder=cloud.holder, render=_render)


class _Imds:
    def __init__(self, cloud: LocalAzure) -> None:
        self._cloud = cloud

    async def token(self, request: Request) -> Response:
        if request.headers.get("metadata", "").lower() != "true":
            raise _invalid("Required metadata header not specified")
        if "x-forwarded-for" in request.headers:
            raise _invalid("A request with the header X-Forwarded-For is not answered")
        query = request.query_params
        for name in ("api-version", "resource"):
            if not query.get(name):
                raise _invalid(f"Required query variable '{name}' is missing")
        principal = self._chosen({name: query[name] for name in _SELECTORS if query.get(name)})
        resource = query["resource"]
        if resource not in (EXCHANGE, *first_party_audiences()) and not self._cloud.directory.offers(resource):
            raise refusal("invalid_resource unknown to IMDS", resource=resource, tenant=self._cloud.tenant_id)
        now = int(clock.now().timestamp())
        seconds = int(_LIFETIME.total_seconds())
        return JSONResponse(
            {
                "access_token": self._issue(principal, resource),
                "client_id": principal.app_id,
                "expires_in": str(seconds),
                "expires_on": str(now + seconds),
                "ext_expires_in": str(seconds),
                "not_before": str(now),
                "resource": resource,
                "token_type": "Bearer",
            }
        )

    def _issue(self, principal: ServicePrincipal, resource: str) -> str:
        tokens = self._cloud.tokens
        if resource == EXCHANGE:
            issuer = exchange_issuer(CLOUDS[DEFAULT_CLOUD], self._cloud.tenant_id)
            return tokens.issue_for_exchange(principal, resource, issuer, _LIFETIME)
        return tokens.issue(principal, resource, lifetime=_LIFETIME)

    def _chosen(self, selectors: dict[str, str]) -> ServicePrincipal:
        """The node's identity that the query selects; raises 400."""
        attached = list({identity.object_id: identity for identity in self._attached()}.values())
        if len(selectors) > 1:
            raise _invalid("Only one of client_id, object_id and msi_res_id may be specified")
        for name, value in selectors.items():
            member = {"client_id": "app_id", "object_id": "object_id"}.get(name, "resource_id")
            attached = [one for one in attached if (getattr(one, member) or "").lower() == value.lower()]
        if not attached:
            raise _invalid("Identity not found")
        if len(attached) > 1:
            raise _invalid(
                "Multiple user assigned identities exist, please specify the clientId / resourceId of the identity in "
                "the token request"
            )
        return attached[0]

    def _attached(self) -> Iterator[ServicePrincipal]:
        for _, machine in self._cloud.store.items("arm"):
            if str(machine.get("type", "")).lower() == _SCALE_SETS:
                for identity in (machine.get("identity") or {}).get("userAssignedIdentities", {}):
                    document = self._cloud.store.get("arm", identity.lower())
                    principal = document and self._cloud.directory.service_principal(
                        document["properties"]["principalId"]
                    )
                    if principal:
                        yield principal


def _invalid(description: str) -> ServiceError:
    return refusal("invalid_request", problem=description)


def _render(error: ServiceError) -> Response:
    body = {"error": error.code, "error_description": error.message}
    return JSONResponse(body, status_code=error.status, headers=error.headers)
