"""Reads Azure Resource Manager and Microsoft Graph as the deployer."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self

import httpx
from azure.core.credentials import TokenCredential
from azure.core.exceptions import AzureError

from identity.clouds import Cloud
from ops.trouble import Trouble

_ANSWERS_WITHIN: Final = 60.0  # seconds
# Answers after which the service asks to come back, and how often that is done.
_LATER: Final = frozenset({httpx.codes.TOO_MANY_REQUESTS, httpx.codes.SERVICE_UNAVAILABLE})
_RETRIES: Final = 5


class Azure:
    """GET requests to one cloud; safe for many threads. `ca_file` holds the authorities to trust if not the system's.

    A throttled request is repeated when the service says so. Raises Trouble for a sign-in that fails and for every
    other answer but the thing itself or a 404.
    """

    def __init__(
        self,
        cloud: Cloud,
        credential: TokenCredential,
        ca_file: str | None = None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._sleep = sleep
        self._cloud = cloud
        self._credential = credential
        # Without an authority file the proxy and the certificates are those of the environment.
        verify = ssl.create_default_context(cafile=ca_file)
        self._http = httpx.Client(verify=verify, trust_env=ca_file is None, timeout=_ANSWERS_WITHIN)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._http.close()

    def resource(self, resource_id: str, api_version: str) -> dict[str, Any] | None:
        """A resource of ARM, None if there is none."""
        url = f"{self._cloud.arm_endpoint}{resource_id}"
        return self._get(url, self._cloud.arm_scope, {"api-version": api_version})

    def directory_object(self, path: str) -> dict[str, Any] | None:
        """An object of the directory by its path (`/applications/<object id>`), None if there is none."""
        return self._get(self._graph(path), self._cloud.graph_scope, {})

    def directory_objects(self, path: str, condition: str) -> list[dict[str, Any]]:
        """The objects of a collection (`/applications`) for which an OData condition holds."""
        found = self._get(self._graph(path), self._cloud.graph_scope, {"$filter": condition})
        return list(found["value"]) if found else []

    def _graph(self, path: str) -> str:
        return f"{self._cloud.graph_endpoint}/v1.0{path}"

    def _get(self, url: str, scope: str, query: dict[str, str]) -> dict[str, Any] | None:
        try:
            token = self._credential.get_token(scope).token
            response = self._patiently(url, query, {"Authorization": f"Bearer {token}"})
        except AzureError as error:
            raise Trouble(f"signing in to read {url}: {error.message}") from None
        except httpx.HTTPError as error:
            raise Trouble(f"{url} does not answer: {error}") from None
        if response.status_code == httpx.codes.NOT_FOUND:
            return None
        if response.is_error:
            raise Trouble(f"reading {url}: {response.status_code} {response.text}")
        found: dict[str, Any] = response.json()
        return found

    def _patiently(self, url: str, query: dict[str, str], headers: dict[str, str]) -> httpx.Response:
        for number in range(_RETRIES):
            response = self._http.get(url, params=query, headers=headers)
            if response.status_code not in _LATER:
                return response
            asked = response.headers.get("Retry-After", "")
            self._sleep(float(asked) if asked.isdigit() else 2.0**number)
        return self._http.get(url, params=query, headers=headers)
