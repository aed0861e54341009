"""A configured azure-native provider: its clients and its identity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx

from emulated.client import AzureProviderSettings, DeployerCredential, RefusalError, RestClient, Retry, error_of
from localcloud.core.clouds import Cloud, local_cloud
from plugin import PluginError, Props, pause

# Azure Resource Manager as azure-native calls it: its retries, its checks and its error messages.
#
# Sources in pulumi/pulumi-azure-native: `provider/pkg/azure/client_azcore.go` (retries, CanCreate, error format) and
# `provider/pkg/azure/azure.go` (which 404 means gone; the list of codes is quoted in issue 4841).


# azcore backs off by (2^n - 1) times its base delay, which azure-native sets to 20 s, up to 120 s, three times.
RETRY: Final = Retry(
    statuses=frozenset({408, 429, 500, 502, 503, 504}), delay=lambda number: min((2**number - 1) * 20.0, 120.0), limit=3
)
# Conflicts that end by themselves (`shouldRetryConflict`; the second since pull request 4421).
_PASSING_CONFLICTS: Final = frozenset(
    {"AnotherOperationInProgress", "ConcurrentFederatedIdentityCredentialsWritesForSingleManagedIdentity"}
)
# Seconds; a service on this machine may ask for none.
_SHORTEST_POLL: Final = 0.05
_GONE: Final = frozenset(
    {
        "NotFound",
        "ResourceNotFound",
        "ResourceGroupNotFound",
        "LockNotFound",
        "ParentResourceNotFound",
        "EntityNotFound",
        "SubscriptionNotFound",
        "RoleAssignmentNotFound",
    }
)


class ArmClient:
    """ARM's operations on one resource, which raise RefusalError."""

    def __init__(self, rest: RestClient) -> None:
        self._rest = rest

    def get(self, resource_id: str, api_version: str) -> dict[str, Any]:
        return _json(self._send("GET", resource_id, api_version), {200})

    def find(self, resource_id: str, api_version: str) -> dict[str, Any] | None:
        """The resource, None if it does not exist. A 404 with a code that is not ARM's own is an error."""
        try:
            return self.get(resource_id, api_version)
        except RefusalError as refused:
            if refused.status == httpx.codes.NOT_FOUND and refused.code in _GONE:
                return None
            raise

    def refuse_existing(self, resource_id: str, api_version: str) -> None:
        """Raise PluginError unless the resource can be created: azure-native never takes over an existing one."""
        response = self._send("GET", resource_id, api_version)
        if response.status_code == httpx.codes.OK:
            raise PluginError(f"cannot create already existing resource '{resource_id}'")
        if response.status_code != httpx.codes.NOT_FOUND:
            raise PluginError(
                f"cannot check existence of resource '{resource_id}': "
                f"status code {response.status_code}, {response.text}"
            )

    def put(self, resource_id: str, api_version: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return _json(self._send("PUT", resource_id, api_version, body), {200, 201})

    def post(self, resource_id: str, verb: str, api_version: str, options: Mapping[str, str]) -> dict[str, Any]:
        return _json(self._send("POST", f"{resource_id}/{verb}", api_version, options=options), {200})

    def delete(self, resource_id: str, api_version: str) -> None:
        """Delete, and wait until it is done; a resource that does not exist counts as deleted."""
        response = self._send("DELETE", resource_id, api_version)
        while response.status_code == httpx.codes.ACCEPTED and "Location" in response.headers:
            pause(max(float(response.headers.get("Retry-After", "0")), _SHORTEST_POLL))
            response = self._rest.request("GET", response.headers["Location"])
        if response.status_code not in {200, 202, 204, 404}:
            raise _refusal(response)

    def _send(
        self,
        method: str,
        resource_id: str,
        api_version: str,
        body: Mapping[str, Any] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        params = {"api-version": api_version, **(options or {})}
        return self._rest.request(method, resource_id, params=params, body=body, also_retry=_conflict_passes)


def _conflict_passes(response: httpx.Response) -> bool:
    return response.status_code == httpx.codes.CONFLICT and error_of(response)[0] in _PASSING_CONFLICTS


def _json(response: httpx.Response, expected: set[int]) -> dict[str, Any]:
    if response.status_code not in expected:
        raise _refusal(response)
    body: dict[str, Any] = response.json()
    return body


def _refusal(response: httpx.Response) -> RefusalError:
    code, message = error_of(response)
    coded = f'Code="{code}" ' if code else ""
    text = f'Status={response.status_code} {coded}Message="{message}"'
    return RefusalError(response.status_code, code, message, text)


_GRAPH_SCOPE: Final = "https://graph.microsoft.com/.default"
# azsecrets, the module behind the delete (`security/keyvault/azsecrets` v1.3).
_VAULT_API_VERSION: Final = "7.5"
# azcore's own defaults: azsecrets is used without options.
_VAULT_RETRY: Final = Retry(
    statuses=frozenset({408, 429, 500, 502, 503, 504}), delay=lambda number: min((2**number - 1) * 0.8, 60.0), limit=3
)


@dataclass(frozen=True)
class ArmSession:
    """The clients that every call of a configured provider uses."""

    cloud: Cloud
    subscription_id: str
    sign_in: DeployerCredential
    arm: ArmClient
    vault: RestClient

    @classmethod
    def open(cls, settings: AzureProviderSettings) -> ArmSession:
        """Create the clients for the local ARM and Key Vault; the first request signs in."""
        environment = settings.environment
        cloud = local_cloud(environment)
        sign_in = DeployerCredential(settings)

        def client(base_url: str, scope: str, retry: Retry) -> RestClient:
            return RestClient(base_url, scope, sign_in, ca_file=environment.ca_file, retry=retry)

        return cls(
            cloud=cloud,
            subscription_id=settings.subscription_id,
            sign_in=sign_in,
            arm=ArmClient(client(cloud.arm_endpoint, cloud.arm_scope, RETRY)),
            vault=client(environment.key_vault_endpoint, cloud.vault_scope, _VAULT_RETRY),
        )

    def delete_from_vault(self, vault: str, collection: str, name: str) -> None:
        """Delete a secret or key at the vault's own endpoint, if it exists. Needs a data-plane role."""
        _, headers = self.cloud.vault_request(vault)
        response = self.vault.request(
            "DELETE", f"/{collection}/{name}", params={"api-version": _VAULT_API_VERSION}, headers=headers
        )
        if response.status_code not in {200, 404}:
            raise PluginError(_response_error(response, f"{self.cloud.vault_uri(vault)}/{collection}/{name}"))

    def client_config(self) -> Props:
        """`getClientConfig`: from the claims of a Graph token (`provider/pkg/provider/auth_getclientconfig.go`)."""
        claims = self.sign_in.claims(_GRAPH_SCOPE)
        return {
            "clientId": claims["appid"],
            "objectId": claims["oid"],
            "subscriptionId": self.subscription_id,
            "tenantId": claims["tid"],
        }

    def client_token(self, endpoint: str) -> Props:
        """`getClientToken`: a token for the endpoint, by default ARM's."""
        return {"token": self.sign_in.token(f"{endpoint or 'https://management.azure.com/'}/.default")}


OpenSession = Callable[[], ArmSession]


def _response_error(response: httpx.Response, url: str) -> str:
    """The message of azcore's ResponseError."""
    rule = "-" * 80
    status = f"{response.status_code} {response.reason_phrase}"
    code = error_of(response)[0] or "UNAVAILABLE"
    return (
        f"DELETE {url}\n{rule}\nRESPONSE {response.status_code}: {status}\nERROR CODE: {code}\n{rule}\n{response.text}"
    )
