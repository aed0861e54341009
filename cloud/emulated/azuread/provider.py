"""`pulumi-resource-azuread`, emulated: Pulumi's bridge of the Terraform provider for Entra ID, for the local cloud."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import metadata
from typing import Final

from emulated.azuread.application import ApplicationCertificateResource, ApplicationResource, ServicePrincipalResource
from emulated.azuread.graph import RETRY, GraphClient
from emulated.azuread.resource import GraphSession, OpenSession, OwnedResource
from emulated.client import DeployerCredential, RestClient
from emulated.settings import AzureProviderSettings, check_settings, not_emulated
from plugin import Checked, PluginError, Props, Provider, Resource, unwrap

_GRAPH_SCOPE: Final = "https://graph.microsoft.com/.default"
# Argument of a data source and the property of Graph that it selects by.
_SELECTORS: Final[Mapping[str, str]] = {"objectId": "id", "clientId": "appId", "displayName": "displayName"}


RESOURCES: Final[Mapping[str, Callable[[OpenSession], Resource]]] = {
    "azuread:index/application:Application": ApplicationResource,
    "azuread:index/applicationCertificate:ApplicationCertificate": ApplicationCertificateResource,
    "azuread:index/servicePrincipal:ServicePrincipal": ServicePrincipalResource,
}


class AzureAd(Provider):
    """The provider: three resource types and three data sources."""

    name = "azuread"
    version = metadata.version("pulumi-azuread")

    def __init__(self) -> None:
        self._session: GraphSession | None = None
        self._resources = {token: factory(self._open_session) for token, factory in RESOURCES.items()}
        self._functions: Mapping[str, Callable[[Props], Props]] = {
            "azuread:index/getApplication:getApplication": partial(self._only, "application", ApplicationResource),
            "azuread:index/getClientConfig:getClientConfig": self._get_client_config,
            "azuread:index/getServicePrincipal:getServicePrincipal": partial(
                self._only, "service principal", ServicePrincipalResource
            ),
        }

    def check_config(self, urn: str, old: Props | None, new: Props) -> Checked:
        return Checked(new, check_settings(self.name, new))

    def configure(self, inputs: Props) -> None:
        # The real provider signs in here too, for its own object id (`internal/clients/client.go`).
        settings = AzureProviderSettings.load(self.name, inputs)
        environment = settings.environment
        sign_in = DeployerCredential(settings)
        claims = sign_in.claims(_GRAPH_SCOPE)
        rest = RestClient(environment.graph_endpoint, _GRAPH_SCOPE, sign_in, ca_file=environment.ca_file, retry=RETRY)
        self._session = GraphSession(GraphClient(rest), settings.tenant_id, settings.client_id, claims["oid"])

    def resource(self, type_token: str) -> Resource:
        if type_token not in self._resources:
            raise not_emulated(self.name, "resource type", type_token, self._resources)
        return self._resources[type_token]

    def invoke(self, token: str, args: Props) -> Props:
        if token not in self._functions:
            raise not_emulated(self.name, "function", token, self._functions)
        return self._functions[token]({name: value for name, value in unwrap(args).items() if value is not None})

    def _get_client_config(self, _: Props) -> Props:
        session = self._open_session()
        ids = (session.tenant_id, session.client_id, session.object_id)
        return {
            "id": "-".join(ids),
            "tenantId": session.tenant_id,
            "clientId": session.client_id,
            "objectId": session.object_id,
        }

    def _only(self, kind: str, resource: type[OwnedResource], args: Props) -> Props:
        """The state of the one object that the arguments select; raises PluginError for none or several."""
        selectors = [name for name in args if name in _SELECTORS]
        if len(selectors) != 1 or len(args) != 1:
            raise PluginError(f"looking up an {kind}: give exactly one of {', '.join(_SELECTORS)}")
        name = selectors[0]
        quoted = str(args[name]).replace("'", "''")
        objects = self._open_session().graph.matching(resource.prefix.rstrip("/"), f"{_SELECTORS[name]} eq '{quoted}'")
        if not objects:
            raise PluginError(f"No {kind} found with {name}: {args[name]}")
        if len(objects) > 1:
            raise PluginError(f"Found multiple {kind}s with {name}: {args[name]}")
        return {"id": f"{resource.prefix}{objects[0]['id']}", **resource.state_of(objects[0])}

    def _open_session(self) -> GraphSession:
        if self._session is None:
            raise PluginError("the azuread provider is not configured")
        return self._session
