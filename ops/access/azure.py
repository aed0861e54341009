"""Reads Azure Resource Manager and Microsoft Graph as the deployer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from azure.core import PipelineClient
from azure.core.credentials import TokenCredential
from azure.core.exceptions import AzureError, ServiceRequestError, ServiceResponseError
from azure.core.pipeline.policies import BearerTokenCredentialPolicy, RetryPolicy
from azure.core.pipeline.transport import RequestsTransport
from azure.core.rest import HttpRequest, HttpResponse

from identity.access.arm_environment import credential
from identity.clouds import CLOUDS, Cloud, LocalEnvironment, local_cloud
from ops.stack.environment import variables
from ops.stack.errors import CommandError

# An ARM resource or a directory object as its service answers it.
AzureObject: TypeAlias = dict[str, Any]
_Client: TypeAlias = PipelineClient[HttpRequest, HttpResponse]

_TIMEOUT: Final = 60  # seconds to connect, and between two bytes of an answer
_RETRIES: Final = 5
# No POST of this client changes anything.
_REPEATED: Final = frozenset({"GET", "POST"})


class AzureClient:
    """Requests to one cloud by azure-core's pipeline; safe for many threads.

    A request that the service throttles or cannot answer (408, 429, 500 and 502 to 504) is repeated five times, when
    `Retry-After` asks for it or with growing pauses. Every method raises CommandError for a sign-in that fails, for a
    service that does not answer, and for every other error status but 404.
    """

    def __init__(self, cloud: Cloud, credential: TokenCredential, ca_file: str | None = None) -> None:
        """`ca_file` (PEM) holds the authorities to trust; without it they and the proxy are the environment's."""
        self.cloud = cloud
        self._transport = RequestsTransport(
            connection_timeout=_TIMEOUT,
            read_timeout=_TIMEOUT,
            connection_verify=ca_file or True,
            use_env_settings=ca_file is None,
        )
        self._arm = self._client(cloud.arm_endpoint, credential, cloud.arm_scope)
        self._graph = self._client(f"{cloud.graph_endpoint}/v1.0", credential, cloud.graph_scope)

    def _client(self, endpoint: str, credential: TokenCredential, scope: str) -> _Client:
        policies = [
            # A host that is out of reach stays so: its name is wrong, or the network.
            RetryPolicy(retry_total=_RETRIES, retry_status=_RETRIES, retry_connect=0, retry_read=0),
            BearerTokenCredentialPolicy(credential, scope),
        ]
        return PipelineClient(endpoint, policies=policies, transport=self._transport)

    def __enter__(self) -> Self:
        self._transport.open()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._transport.close()

    def resource(self, resource_id: str, api_version: str) -> AzureObject | None:
        """A resource of ARM, None if there is none."""
        return _send(self._arm, HttpRequest("GET", resource_id, params={"api-version": api_version}))

    def directory_object(self, path: str) -> AzureObject | None:
        """An object of the directory by its path (`/applications/<object id>`), None if there is none."""
        return _send(self._graph, HttpRequest("GET", path))

    def directory_objects(self, path: str, condition: str) -> list[AzureObject]:
        """The objects of a collection (`/applications`) for which an OData condition holds."""
        found = _send(self._graph, HttpRequest("GET", path, params={"$filter": condition}))
        return list(found["value"]) if found else []

    def action(self, resource_id: str, verb: str, api_version: str, options: Mapping[str, str]) -> AzureObject:
        """The answer to a POST on a resource of ARM; `options` are query parameters. A 404 raises CommandError, too."""
        parameters = {"api-version": api_version, **options}
        found = _send(self._arm, HttpRequest("POST", f"{resource_id}/{verb}", params=parameters))
        if found is None:
            raise CommandError(f"{resource_id} does not exist; correct its name, or create it")
        return found


def _send(client: _Client, request: HttpRequest) -> AzureObject | None:
    request.url = client.format_url(request.url)
    # Without its query, which takes more room than it explains.
    address = request.url.partition("?")[0]
    doing = "read" if request.method == "GET" else "call"
    try:
        response = client.send_request(request, retry_on_methods=_REPEATED)
    except (ServiceRequestError, ServiceResponseError) as error:
        raise CommandError(f"{address} does not answer: {error.message}") from None
    except AzureError as error:
        raise CommandError(f"signing in to {doing} {address}: {error.message}") from None
    if response.status_code == HTTPStatus.NOT_FOUND:
        return None
    if response.status_code >= HTTPStatus.BAD_REQUEST:
        raise CommandError(f"{doing}ing {address}: {response.status_code} {response.text()}")
    found: AzureObject = response.json()
    return found


@contextmanager
def deployer(stack: str, configuration: Mapping[str, Any], local: LocalEnvironment | None) -> Iterator[AzureClient]:
    """The cloud and tenant that a stack's configuration names, as its deployer.

    Args:
        stack: its name, which decides whose variables sign in.
        configuration: `cloud` and `tenantId` are read.
        local: the endpoints of the local cloud, for a local stack.
    """
    cloud = local_cloud(local) if local else CLOUDS[configuration["cloud"]]
    options: dict[str, Any] = {"authority": cloud.authority_host}
    if local:
        options |= {"connection_verify": local.ca_file, "disable_instance_discovery": True}
    signed_in = credential(configuration["tenantId"], variables(stack), **options)
    with AzureClient(cloud, signed_in, local.ca_file if local else None) as clients:
        yield clients
