"""Reads Azure Resource Manager and Microsoft Graph as the deployer."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, Self

import httpx
from azure.core.credentials import TokenCredential
from azure.core.exceptions import AzureError

from identity.access.arm_environment import credential
from identity.clouds import CLOUDS, Cloud, LocalEnvironment, local_cloud
from ops.stack.environment import variables
from ops.stack.errors import CommandError

_ANSWERS_WITHIN: Final = 60.0  # seconds
# Answers after which the service asks to come back, and how often that is done.
_LATER: Final = frozenset({httpx.codes.TOO_MANY_REQUESTS, httpx.codes.SERVICE_UNAVAILABLE})
_RETRIES: Final = 5


class AzureClient:
    """Requests to one cloud; safe for many threads. `ca_file` holds the authorities to trust if not the system's.

    A throttled request is repeated when the service says so. Raises CommandError for a sign-in that fails and for every
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
        self.cloud = cloud
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
        url = f"{self.cloud.arm_endpoint}{resource_id}"
        return self._get(url, self.cloud.arm_scope, {"api-version": api_version})

    def directory_object(self, path: str) -> dict[str, Any] | None:
        """An object of the directory by its path (`/applications/<object id>`), None if there is none."""
        return self._get(self._graph(path), self.cloud.graph_scope, {})

    def directory_objects(self, path: str, condition: str) -> list[dict[str, Any]]:
        """The objects of a collection (`/applications`) for which an OData condition holds."""
        found = self._get(self._graph(path), self.cloud.graph_scope, {"$filter": condition})
        return list(found["value"]) if found else []

    def _graph(self, path: str) -> str:
        return f"{self.cloud.graph_endpoint}/v1.0{path}"

    def action(self, resource_id: str, verb: str, api_version: str, options: Mapping[str, str]) -> dict[str, Any]:
        """The answer to a POST on a resource of ARM, which must exist; `options` are query parameters."""
        url = f"{self.cloud.arm_endpoint}{resource_id}/{verb}"
        found = self._request("POST", url, self.cloud.arm_scope, {"api-version": api_version, **options})
        if found is None:
            raise CommandError(f"{resource_id} does not exist; correct its name, or create it")
        return found

    def _get(self, url: str, scope: str, query: dict[str, str]) -> dict[str, Any] | None:
        return self._request("GET", url, scope, query)

    def _request(self, method: str, url: str, scope: str, query: Mapping[str, str]) -> dict[str, Any] | None:
        doing = "read" if method == "GET" else "call"
        try:
            token = self._credential.get_token(scope).token
            response = self._patiently(method, url, query, {"Authorization": f"Bearer {token}"})
        except AzureError as error:
            raise CommandError(f"signing in to {doing} {url}: {error.message}") from None
        except httpx.HTTPError as error:
            raise CommandError(f"{url} does not answer: {error}") from None
        if response.status_code == httpx.codes.NOT_FOUND:
            return None
        if response.is_error:
            raise CommandError(f"{doing}ing {url}: {response.status_code} {response.text}")
        found: dict[str, Any] = response.json()
        return found

    def _patiently(self, method: str, url: str, query: Mapping[str, str], headers: Mapping[str, str]) -> httpx.Response:
        for number in range(_RETRIES):
            response = self._http.request(method, url, params=query, headers=headers)
            if response.status_code not in _LATER:
                return response
            asked = response.headers.get("Retry-After", "")
            self._sleep(float(asked) if asked.isdigit() else 2.0**number)
        return self._http.request(method, url, params=query, headers=headers)


@contextmanager
def deployer(stack: str, configuration: Mapping[str, Any], local: LocalEnvironment | None) -> Iterator[AzureClient]:
    """The cloud and tenant that a stack's configuration names, as its deployer."""
    cloud = local_cloud(local) if local else CLOUDS[configuration["cloud"]]
    options: dict[str, Any] = {"authority": cloud.authority_host}
    if local:
        options |= {"connection_verify": local.ca_file, "disable_instance_discovery": True}
    signed_in = credential(configuration["tenantId"], variables(stack), **options)
    with AzureClient(cloud, signed_in, local.ca_file if local else None) as clients:
        yield clients
