"""Requests to Azure Resource Manager, Microsoft Graph and Key Vault, signed in as the caller of this program."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from html import unescape
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, Self, TypeAlias
from urllib.parse import urlsplit, urlunsplit

from azure.core import PipelineClient
from azure.core.credentials import TokenCredential
from azure.core.exceptions import AzureError, IncompleteReadError, ServiceRequestError, ServiceResponseError
from azure.core.pipeline.policies import BearerTokenCredentialPolicy, RetryPolicy
from azure.core.rest import HttpRequest, HttpResponse
from identity.azure.errors import AzureRefusedError, SignInRefusedError
from identity.clouds import Cloud
from identity.credentials.transport import EnvironmentTransport
from identity.naming import is_vault_name

# An ARM resource, a directory object or a vault's answer as its service writes it.
AzureObject: TypeAlias = dict[str, Any]
_Client: TypeAlias = PipelineClient[HttpRequest, HttpResponse]

_TIMEOUT: Final = 60  # seconds to connect, and between two bytes of an answer
_RETRIES: Final = 5
# Every request here may be repeated: PUT and PATCH state the result, though a secret gets an equal version more. A POST
# changes nothing, or recovers what then is no longer deleted.
_REPEATED: Final = frozenset({"GET", "PUT", "PATCH", "DELETE", "POST"})
# The version of the data planes of vaults and managed HSMs.
_VAULT_API: Final = "7.4"
# Blob Storage's first version with tokens of Entra ID (REST reference, "Authorize with Microsoft Entra ID").
_BLOB_API: Final = "2017-11-09"
# In the XML of List Blobs (REST reference), which has the names of account and container in attributes.
_BLOB_NAME: Final = re.compile(r"<Name>([^<]*)</Name>")
# Changes of an issuer's documents have to be visible soon.
_CACHE_CONTROL: Final = "public, max-age=60"


@dataclass(frozen=True)
class AzureAnswer:
    """A service's answer: the object, None for a 404, and the service's time (UTC) if the answer has it."""

    body: AzureObject | None
    date: datetime | None


class AzureClient:
    """Requests to one cloud by azure-core's pipeline; safe for many threads.

    A request that the service throttles or cannot answer (408, 429, 500 and 502 to 504) is repeated five times, after
    `Retry-After` or with growing pauses; one whose connection ends without an answer, once. Every method raises
    AzureRefusedError for a failed sign-in, for a service that does not answer, and for every error status but 404.
    """

    def __init__(self, cloud: Cloud, credential: TokenCredential, ca_file: str | None = None) -> None:
        """`ca_file` (PEM) holds the authorities to trust; without it they and the proxy are the environment's."""
        self.cloud = cloud
        own = {} if ca_file is None else {"connection_verify": ca_file, "use_env_settings": False}
        self._transport = EnvironmentTransport(connection_timeout=_TIMEOUT, read_timeout=_TIMEOUT, **own)
        self._arm = self._client(cloud.arm_endpoint, credential, cloud.arm_scope)
        self._graph = self._client(f"{cloud.graph_endpoint}/v1.0", credential, cloud.graph_scope)
        # Each request names its vault, or its storage account.
        self._vaults = self._client("", credential, cloud.vault_scope)
        self._hsms = self._client("", credential, cloud.managed_hsm_scope)
        self._storage = self._client("", credential, cloud.storage_scope)
        self._anybody: _Client = PipelineClient("", policies=[_retries()], transport=self._transport)

    def _client(self, endpoint: str, credential: TokenCredential, scope: str) -> _Client:
        policies = [_retries(), BearerTokenCredentialPolicy(credential, scope)]
        return PipelineClient(endpoint, policies=policies, transport=self._transport)

    def __enter__(self) -> Self:
        self._transport.open()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._transport.close()

    def resource(self, resource_id: str, api_version: str) -> AzureObject | None:
        """A resource of ARM, None if there is none."""
        return self.resource_with_date(resource_id, api_version).body

    def resource_with_date(self, resource_id: str, api_version: str) -> AzureAnswer:
        """A resource of ARM, and ARM's time."""
        return _send(self._arm, HttpRequest("GET", resource_id, params={"api-version": api_version}))

    def resources(self, collection: str, api_version: str, condition: str | None = None) -> list[AzureObject]:
        """The resources of a collection of ARM (`/subscriptions/<id>/providers/Microsoft.KeyVault/vaults`) for which a
        condition of OData holds, page by page; none if there is no such collection.
        """
        parameters = {"api-version": api_version} | ({} if condition is None else {"$filter": condition})
        return _pages(self._arm, HttpRequest("GET", collection, params=parameters), "nextLink")

    def change_resource(
        self, verb: str, resource_id: str, api_version: str, body: Mapping[str, Any]
    ) -> AzureObject | None:
        """The answer to a PUT or PATCH of a resource of ARM, None if it, or its parent, does not exist."""
        request = HttpRequest(verb, resource_id, params={"api-version": api_version}, json=dict(body))
        return _send(self._arm, request).body

    def directory_object(self, path: str) -> AzureObject | None:
        """An object of the directory by its path (`/applications/<object id>`), None if there is none."""
        return _send(self._graph, HttpRequest("GET", path)).body

    def delete_resource(self, resource_id: str, api_version: str) -> None:
        """DELETE a resource of ARM; a missing one is not an error."""
        _send(self._arm, HttpRequest("DELETE", resource_id, params={"api-version": api_version}))

    def directory_objects(self, path: str, condition: str) -> list[AzureObject]:
        """The objects of a collection (`/applications`) for which an OData condition holds, page by page."""
        return _pages(self._graph, HttpRequest("GET", path, params={"$filter": condition}), "@odata.nextLink")

    def change_directory_object(self, path: str, body: Mapping[str, Any]) -> None:
        """PATCH an object of the directory; a missing one is not an error."""
        _send(self._graph, HttpRequest("PATCH", path, json=dict(body)))

    def delete_directory_object(self, path: str) -> None:
        """DELETE an object of the directory; a missing one is not an error."""
        _send(self._graph, HttpRequest("DELETE", path))

    def vault(self, vault: str, verb: str, path: str, body: Mapping[str, Any] | None = None) -> AzureObject | None:
        """The answer of a vault's data plane to a request for `path` (`/secrets/<name>`), None for a 404.

        `path` may be the address of a next page, which the vault gives whole, with its port.
        """
        _require_host_label(vault)
        base, headers = self.cloud.vault_request(vault)
        page = urlsplit(path)
        path = urlunsplit(("", "", page.path, page.query, ""))
        parameters = {} if "api-version=" in path else {"api-version": _VAULT_API}
        json = None if body is None else dict(body)
        request = HttpRequest(verb, f"{base}{path}", params=parameters, headers=dict(headers), json=json)
        return _send(self._vaults, request).body

    def vault_list(self, vault: str, path: str) -> list[AzureObject]:
        """What a vault lists at `path` (`/deletedsecrets`), page by page."""
        values: list[AzureObject] = []
        page: str | None = path
        while page:
            answer = self.vault(vault, "GET", page) or {}
            values += answer.get("value") or []
            page = answer.get("nextLink")
        return values

    def managed_hsm(self, hsm: str, verb: str, path: str, body: Mapping[str, Any] | None = None) -> AzureObject | None:
        """The answer of a managed HSM's data plane to a request for `path`, None for a 404."""
        _require_host_label(hsm)
        url = f"https://{hsm}.{self.cloud.managed_hsm_suffix}{path}"
        json = None if body is None else dict(body)
        return _send(self._hsms, HttpRequest(verb, url, params={"api-version": _VAULT_API}, json=json)).body

    def write_blob(self, url: str, content: bytes, content_type: str) -> None:
        """Write a block blob whole (Put Blob); 404 raises AzureRefusedError, too."""
        address, headers = self.cloud.public_request(url)
        request_headers = {
            **headers,
            "x-ms-version": _BLOB_API,
            "x-ms-blob-type": "BlockBlob",
            "x-ms-blob-content-type": content_type,
            "x-ms-blob-cache-control": _CACHE_CONTROL,
            "Content-Type": content_type,
        }
        response = _answer(self._storage, HttpRequest("PUT", address, headers=request_headers, content=content))
        _require_success(response, f"writing {url}")

    def blob_names(self, container: str, prefix: str) -> list[str]:
        """Names of at most 5,000 blobs below a prefix in a container (an https URL; List Blobs).

        404 raises AzureRefusedError, too.
        """
        parameters = {"restype": "container", "comp": "list", "prefix": prefix}
        return [unescape(name) for name in _BLOB_NAME.findall(self._read_blobs(container, parameters).decode())]

    def blob(self, url: str) -> bytes:
        """The content of a blob (Get Blob); 404 raises AzureRefusedError, too."""
        return self._read_blobs(url, {})

    def _read_blobs(self, url: str, parameters: Mapping[str, str]) -> bytes:
        address, headers = self.cloud.public_request(url)
        request_headers = {**headers, "x-ms-version": _BLOB_API}
        response = _answer(self._storage, HttpRequest("GET", address, params=dict(parameters), headers=request_headers))
        _require_success(response, f"reading {url}")
        return bytes(response.read())

    def public_document(self, url: str) -> bytes | None:
        """What anybody gets at an https address, None for a 404."""
        address, headers = self.cloud.public_request(url)
        response = _answer(self._anybody, HttpRequest("GET", address, headers=dict(headers)))
        if response.status_code == HTTPStatus.NOT_FOUND:
            return None
        _require_success(response, f"reading {url}")
        return bytes(response.read())

    def action(self, resource_id: str, verb: str, api_version: str, options: Mapping[str, str]) -> AzureObject:
        """The answer to a POST on a resource of ARM; `options` are query parameters. A 404 raises AzureRefusedError,
        too.
        """
        parameters = {"api-version": api_version, **options}
        answer = _send(self._arm, HttpRequest("POST", f"{resource_id}/{verb}", params=parameters)).body
        if answer is None:
            raise AzureRefusedError(f"{resource_id} does not exist; correct its name, or create it")
        return answer


def _require_host_label(vault: str) -> None:
    """Refuse what would make another host of a vault's address: that host would get the token."""
    if not is_vault_name(vault):
        raise AzureRefusedError(f"{vault!r} is not a vault name: 3-24 letters, digits and hyphens; no request was sent")


def _retries() -> RetryPolicy[HttpRequest, HttpResponse]:
    # Retries do not help against a wrong name or network. A host that hangs up has most likely closed an idle
    # connection just when it was used again.
    return RetryPolicy(retry_total=_RETRIES, retry_status=_RETRIES, retry_connect=0, retry_read=1)


def _answer(client: _Client, request: HttpRequest) -> HttpResponse:
    request.url = client.format_url(request.url)
    try:
        return client.send_request(request, retry_on_methods=_REPEATED)
    except (ServiceRequestError, ServiceResponseError) as error:
        raise AzureRefusedError(f"{_address(request)} does not answer: {error.message}") from None
    except IncompleteReadError:
        may = "" if request.method == "GET" else ", and the request may have taken effect all the same"
        raise AzureRefusedError(f"{request.method} {_address(request)}: the answer was cut short{may}") from None
    except SignInRefusedError as error:
        raise AzureRefusedError(f"signing in to {_verb(request)[0]} {_address(request)}: {error}") from None
    except AzureError as error:
        raise AzureRefusedError(f"signing in to {_verb(request)[0]} {_address(request)}: {error.message}") from None


def _address(request: HttpRequest) -> str:
    """Without its query, which takes more room than it explains."""
    return request.url.partition("?")[0]


def _verb(request: HttpRequest) -> tuple[str, str]:
    """What the request does, as an infinitive and a gerund."""
    return {"GET": ("read", "reading"), "POST": ("call", "calling")}.get(request.method, ("change", "changing"))


def _require_success(response: HttpResponse, doing: str) -> None:
    """Raise AzureRefusedError for an error of Azure Storage, whose header has the code of its XML."""
    if response.status_code >= HTTPStatus.BAD_REQUEST:
        reason = f"{response.status_code} {response.headers.get('x-ms-error-code', '')}".rstrip()
        raise AzureRefusedError(f"{doing}: {reason}", response.status_code)


def _pages(client: _Client, first: HttpRequest, link: str) -> list[AzureObject]:
    """The values of all pages; `link` is the member with the address of the next one."""
    values: list[AzureObject] = []
    request: HttpRequest | None = first
    while request is not None:
        page = _send(client, request).body or {}
        values += page.get("value") or []
        # Only its path counts, as the token is for this service alone; that of Graph has the endpoint's version.
        following = urlsplit(page.get(link) or "")
        address = urlunsplit(("", "", following.path.removeprefix("/v1.0"), following.query, ""))
        request = HttpRequest("GET", address) if address else None
    return values


def _send(client: _Client, request: HttpRequest) -> AzureAnswer:
    response = _answer(client, request)
    date = None
    with suppress(ValueError):
        date = parsedate_to_datetime(response.headers.get("Date", ""))
    if response.status_code == HTTPStatus.NOT_FOUND:
        return AzureAnswer(None, date)
    if response.status_code >= HTTPStatus.BAD_REQUEST:
        text = f"{_verb(request)[1]} {_address(request)}: {response.status_code} {response.text()}"
        raise AzureRefusedError(text, response.status_code)
    return AzureAnswer(response.json() if response.content else {}, date)
