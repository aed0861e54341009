"""Azure Resource Manager as azure-native calls it: its retries, its checks and its error messages.

Sources in pulumi/pulumi-azure-native: `provider/pkg/azure/client_azcore.go` (retries, CanCreate, error format) and
`provider/pkg/azure/azure.go` (which 404 means gone; the list of codes is quoted in issue 4841).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import httpx

from emulated.client import RefusalError, RestClient, Retry, error_of
from plugin import PluginError, pause

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
    """ARM's operations on one resource."""

    def __init__(self, rest: RestClient) -> None:
        self._rest = rest

    def get(self, resource_id: str, api_version: str) -> dict[str, Any]:
        """The resource; raises RefusalError."""
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
        """Create or update; raises RefusalError."""
        return _json(self._send("PUT", resource_id, api_version, body), {200, 201})

    def post(self, resource_id: str, verb: str, api_version: str, options: Mapping[str, str]) -> dict[str, Any]:
        """An action on the resource; raises RefusalError."""
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
