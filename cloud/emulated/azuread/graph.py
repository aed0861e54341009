"""Microsoft Graph as the azuread provider calls it: retries, error messages, waiting for replicas.

Sources in hashicorp/terraform-provider-azuread: the vendored `go-azure-sdk/sdk/client/client.go` (retries, error text),
`internal/helpers/consistency/consistency.go` and the resources' own StateChangeConf (five reads in a row).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import httpx

from emulated.client import RefusalError, RestClient, Retry, error_of, never
from plugin import PluginError, pause

# 1, 2, 4 ... 61 s: 14 retries fill the ten minutes that the provider gives a create or an update.
RETRY: Final = Retry(
    statuses=frozenset({408, 424, 429, 500, 502, 503, 504}),
    delay=lambda number: min(2.0 ** (number - 1), 61.0),
    limit=14,
)
_READS_IN_A_ROW: Final = 5
# Seconds between two reads. The provider waits 1 s (5 s after a deletion); the local replicas are faster, too.
_READ_INTERVAL: Final = 0.1
_TIMEOUT: Final = 600.0

RetryIf = Callable[[httpx.Response], bool]


class GraphClient:
    """Graph v1.0, signed in as the deployer; its methods raise RefusalError."""

    def __init__(self, rest: RestClient, sleep: Callable[[float], None] = pause) -> None:
        self._rest = rest
        self._sleep = sleep

    def reference(self, object_id: str) -> str:
        """The URL with which one directory object refers to another."""
        return f"{self._rest.base_url}/v1.0/directoryObjects/{object_id}"

    def get(self, path: str) -> dict[str, Any]:
        body: dict[str, Any] = self._send("GET", path, {200}).json()
        return body

    def find(self, path: str) -> dict[str, Any] | None:
        """One object, None if it does not exist."""
        try:
            return self.get(path)
        except RefusalError as refused:
            if refused.status == httpx.codes.NOT_FOUND:
                return None
            raise

    def matching(self, path: str, condition: str | None = None) -> list[dict[str, Any]]:
        """A collection, filtered by an OData condition."""
        params = {"$filter": condition} if condition else {}
        objects: list[dict[str, Any]] = self._send("GET", path, {200}, params=params).json()["value"]
        return objects

    def post(self, path: str, body: dict[str, Any], retry_if: RetryIf = never) -> dict[str, Any]:
        document: dict[str, Any] = self._send("POST", path, {201}, body=body, also_retry=retry_if).json()
        return document

    def patch(self, path: str, body: dict[str, Any], retry_if: RetryIf = never) -> None:
        self._send("PATCH", path, {200, 202, 204}, body=body, also_retry=retry_if)

    def delete(self, path: str) -> None:
        """Delete; an object that is already gone is a refusal."""
        self._send("DELETE", path, {204})

    def owner_ids(self, path: str) -> list[str]:
        """Object ids of an application's or service principal's owners."""
        return [str(owner["id"]) for owner in self.matching(f"{path}/owners")]

    def change_owners(self, path: str, wanted: list[str]) -> None:
        """Add the owners that are missing, then remove the surplus ones."""
        current = self.owner_ids(path)
        for owner in (owner for owner in wanted if owner not in current):
            self._send("POST", f"{path}/owners/$ref", {204}, body={"@odata.id": self.reference(owner)})
        for owner in (owner for owner in current if owner not in wanted):
            self.remove_owner(path, owner)

    def remove_owner(self, path: str, owner: str) -> None:
        self.delete(f"{path}/owners/{owner}/$ref")

    def wait(self, what: str, is_so: Callable[[], bool]) -> None:
        """Wait until five reads in a row agree, as one may meet a fast replica; PluginError after ten minutes."""
        deadline = time.monotonic() + _TIMEOUT
        in_a_row = 0
        while in_a_row < _READS_IN_A_ROW:
            if time.monotonic() > deadline:
                raise PluginError(f"Waiting for {what}: timeout after {_TIMEOUT:.0f} s")
            in_a_row = in_a_row + 1 if is_so() else 0
            self._sleep(_READ_INTERVAL)

    def _send(self, method: str, path: str, expected: set[int], **options: Any) -> httpx.Response:
        response = self._rest.request(method, f"/v1.0{path}", **options)
        if response.status_code in expected:
            return response
        code, message = error_of(response)
        status = f"{response.status_code} ({response.status_code} {response.reason_phrase})"
        text = f"unexpected status {status} with error: {code}: {message}"
        raise RefusalError(response.status_code, code, message, text)
