"""`pulumi-resource-azuread`, emulated: Pulumi's bridge of the Terraform provider for Entra ID, for the local cloud."""

from __future__ import annotations

import base64
import binascii
import re
import threading
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from importlib import metadata
from typing import Any, Final

import httpx
import pulumi_azuread
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from emulated.azuread.graph import RETRY, GraphClient
from emulated.azuread.resource import (
    APPLICATION_ID,
    AT_MOST_1024,
    NAMED_IDS,
    NOT_EMPTY,
    RFC3339,
    UUID,
    Argument,
    GraphResource,
    GraphSession,
    OpenSession,
    OwnedResource,
    Schema,
    exists_already,
    failing,
    one_of,
)
from emulated.client import (
    AzureProvider,
    AzureProviderSettings,
    DeployerCredential,
    RestClient,
    error_of,
)
from plugin import PluginError, PluginInterruptedError, Props, Resource, unwrap

# `azuread:index/applicationCertificate:ApplicationCertificate`.
#
# Source: `application_certificate_resource.go` in `internal/services/applications`, `internal/helpers/credentials`.

_KIND: Final = "certificate"


class ApplicationCertificateResource(GraphResource):
    """A certificate registered on an application. Its id is `<object id>/certificate/<key id>`.

    Graph has no call for one certificate: the whole list is read and written, so the calls for one application
    wait for each other. Any change replaces. Read and delete fail when the application itself is gone, as the real
    provider's do.
    """

    arguments_type = pulumi_azuread.ApplicationCertificateArgs
    schema = Schema(
        {
            "applicationId": Argument(force_new=True, rule=APPLICATION_ID),
            "encoding": Argument(default="pem", force_new=True, rule=one_of("base64", "hex", "pem")),
            "endDate": Argument(computed=True, force_new=True, rule=RFC3339),
            "keyId": Argument(computed=True, force_new=True, rule=UUID),
            "startDate": Argument(computed=True, force_new=True, rule=RFC3339),
            "type": Argument(force_new=True, rule=one_of("AsymmetricX509Cert", "Symmetric")),
            "value": Argument(force_new=True, secret=True),
        },
        computed=(),
    )

    def __init__(self, session: OpenSession) -> None:
        super().__init__(session)
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def created(self, inputs: Props) -> tuple[str, Props]:
        plain = unwrap(inputs)
        key_id = plain.get("keyId") or str(uuid.uuid4())
        path = plain["applicationId"]
        object_id = path.removeprefix(PREFIX)
        id = f"{object_id}/{_KIND}/{key_id}"
        credential = {
            "keyId": key_id,
            "type": plain.get("type", ""),
            "usage": "Verify",
            "key": _pem_base64(plain["value"], self.schema.value(inputs, "encoding")),
            "startDateTime": _seconds(plain.get("startDate")),
            "endDateTime": _seconds(plain.get("endDate")),
        }
        with self._locks[object_id]:
            current = self._credentials(path)
            if any(certificate["keyId"].lower() == key_id.lower() for certificate in current):
                raise exists_already("azuread_application_certificate", id)
            added = {name: value for name, value in credential.items() if value is not None}
            self._write(path, [*current, added], f"Adding certificate for {ApplicationResource.printed(path)}")
            # It is registered. It must be in the state even if the wait for the replicas is interrupted.
            with suppress(PluginInterruptedError):
                self.session().graph.wait(
                    f"certificate credential for {path}", lambda: self._find(path, key_id) is not None
                )
        return id, self.existing(id, inputs)

    def live(self, id: str, state: Props) -> Props | None:
        object_id, key_id = _parsed(id)
        path = f"{PREFIX}{object_id}"
        credential = self._find(path, key_id)
        if credential is None:
            return None
        kept: Props = {name: state[name] for name in ("value", "encoding") if name in state}
        return {
            "encoding": self.schema.arguments["encoding"].default,
            **kept,
            "applicationId": path,
            "keyId": key_id,
            "type": credential.get("type") or "",
            "startDate": credential["startDateTime"],
            "endDate": credential["endDateTime"],
        }

    def delete(self, urn: str, id: str, inputs: Props, state: Props) -> None:
        object_id, key_id = _parsed(id)
        path = f"{PREFIX}{object_id}"
        with self._locks[object_id]:
            kept = [
                credential for credential in self._credentials(path) if credential["keyId"].lower() != key_id.lower()
            ]
            self._write(
                path,
                kept,
                f'Removing certificate credential "{key_id}" from application with object ID "{object_id}"',
            )
            self.session().graph.wait(f"deletion of {id}", lambda: self._find(path, key_id) is None)

    def _find(self, path: str, key_id: str) -> dict[str, Any] | None:
        return next(
            (credential for credential in self._credentials(path) if credential["keyId"].lower() == key_id.lower()),
            None,
        )

    def _credentials(self, path: str) -> list[dict[str, Any]]:
        with failing(f"Retrieving {ApplicationResource.printed(path)}"):
            return list(self.session().graph.get(path)["keyCredentials"])

    def _write(self, path: str, credentials: list[dict[str, Any]], doing: str) -> None:
        with failing(doing):
            self.session().graph.patch(path, {"keyCredentials": credentials})


def _parsed(id: str) -> tuple[str, str]:
    """Object id and key id; raises PluginError if the id is not a certificate's."""
    parts = id.split("/")
    if len(parts) != 3 or parts[1] != _KIND or not all(parts):
        raise PluginError(f'unable to parse Certificate ID: "{id}" is not <object id>/{_KIND}/<key id>')
    return parts[0], parts[2]


def _pem_base64(value: str, encoding: str) -> str:
    """The certificate as the provider sends it: base64 of PEM. No error message contains the value."""
    try:
        match encoding:
            case "pem":
                pem = value.encode()
            case "hex":
                pem = x509.load_der_x509_certificate(bytes.fromhex(value.strip())).public_bytes(Encoding.PEM)
            case _:
                der = base64.b64decode(value.strip(), validate=True)
                pem = x509.load_der_x509_certificate(der).public_bytes(Encoding.PEM)
    except (ValueError, binascii.Error):
        raise PluginError(f"Generating certificate credentials: failed to decode {encoding} certificate data") from None
    return base64.b64encode(pem).decode()


def _seconds(date: str | None) -> str | None:
    """The date in Go's RFC3339: whole seconds."""
    if date is None:
        return None
    return datetime.fromisoformat(date).replace(microsecond=0).isoformat().replace("+00:00", "Z")


# `azuread:index/servicePrincipal:ServicePrincipal` (`service_principal_resource.go` in `internal/services`).

_PRINCIPAL_PREFIX: Final = "/servicePrincipals/"
# Graph's messages while the application is not replicated yet.
_NOT_REPLICATED: Final = {
    httpx.codes.BAD_REQUEST: "The appId '.+' of the service principal does not reference a valid application object",
    httpx.codes.FORBIDDEN: "When using this permission, the backing application of the service principal being created",
}


class ServicePrincipalResource(OwnedResource):
    """The service principal of an application. Its id is `/servicePrincipals/<object id>`."""

    arguments_type = pulumi_azuread.ServicePrincipalArgs
    prefix, title, deleting, not_in_graph = _PRINCIPAL_PREFIX, "Service Principal", "Deleting", "useExisting"
    schema = Schema(
        {
            "clientId": Argument(graph="appId", force_new=True, rule=UUID),
            "accountEnabled": Argument(graph="accountEnabled", default=True),
            "appRoleAssignmentRequired": Argument(graph="appRoleAssignmentRequired", default=False),
            "description": Argument(graph="description", rule=AT_MOST_1024),
            "notes": Argument(graph="notes", rule=AT_MOST_1024),
            "owners": Argument(unordered=True, rule=UUID),
            "tags": Argument(graph="tags", computed=True, unordered=True),
            "useExisting": Argument(default=False),
        },
        computed=(
            "objectId",
            "displayName",
            "applicationTenantId",
            "servicePrincipalNames",
            "signInAudience",
            "type",
            *NAMED_IDS,
        ),
    )

    @classmethod
    def computed_of(cls, found: dict[str, Any]) -> Props:
        return {
            "displayName": found["displayName"],
            "applicationTenantId": found.get("appOwnerOrganizationId") or "",
            # The application's own id is left out, as the provider does.
            "servicePrincipalNames": [
                name for name in found.get("servicePrincipalNames") or [] if name != found["appId"]
            ],
            "signInAudience": found.get("signInAudience") or "",
            "type": found.get("servicePrincipalType") or "",
        }

    def created(self, inputs: Props) -> tuple[str, Props]:
        graph, client_id = self.session().graph, self.schema.value(inputs, "clientId")
        current = graph.matching("/servicePrincipals", f"appId eq '{client_id}'")
        if current and self.schema.value(inputs, "useExisting"):
            path = f"{_PRINCIPAL_PREFIX}{current[0]['id']}"
            return path, self.changed(path, inputs, inputs)
        if current:
            raise exists_already("azuread_service_principal", current[0]["id"])
        body = self.new_body(inputs)
        described = {**body, "description": f"TERRAFORM_UPDATE_{uuid.uuid4()}"}
        with failing("Could not create service principal"):
            principal = graph.post("/servicePrincipals", described, retry_if=_principal_not_replicated)
        path = f"{_PRINCIPAL_PREFIX}{principal['id']}"
        with failing("Failed to patch service principal after creating"):
            graph.patch(path, {"description": body["description"]})
        return self.written(path, inputs)

    def changed(self, id: str, state: Props, inputs: Props) -> Props:
        return self.patched(id, state, inputs, f"Updating {self.printed(id)}")

    def may_stay(self, state: Props) -> bool:
        return bool(self.schema.value(state, "useExisting"))


def _principal_not_replicated(response: httpx.Response) -> bool:
    words = _NOT_REPLICATED.get(httpx.codes(response.status_code))
    return words is not None and re.search(words, error_of(response)[1]) is not None


PREFIX: Final = "/applications/"
_AUDIENCES: Final = (
    "AzureADMyOrg",
    "AzureADMultipleOrgs",
    "AzureADandPersonalMicrosoftAccount",
    "PersonalMicrosoftAccount",
)


class ApplicationResource(OwnedResource):
    """An application registration. Its id is `/applications/<object id>`."""

    arguments_type = pulumi_azuread.ApplicationArgs
    prefix, title, deleting, not_in_graph = PREFIX, "Application", "deleting", "preventDuplicateNames"
    schema = Schema(
        {
            "displayName": Argument(graph="displayName", rule=NOT_EMPTY),
            "description": Argument(graph="description", rule=AT_MOST_1024),
            "deviceOnlyAuthEnabled": Argument(graph="isDeviceOnlyAuthSupported", default=False),
            "fallbackPublicClientEnabled": Argument(graph="isFallbackPublicClient", default=False),
            "identifierUris": Argument(graph="identifierUris", default=[], unordered=True, rule=NOT_EMPTY),
            "notes": Argument(graph="notes", rule=NOT_EMPTY),
            "owners": Argument(unordered=True, rule=UUID),
            "preventDuplicateNames": Argument(default=False),
            "serviceManagementReference": Argument(graph="serviceManagementReference"),
            "signInAudience": Argument(graph="signInAudience", default=_AUDIENCES[0], rule=one_of(*_AUDIENCES)),
            "tags": Argument(graph="tags", computed=True, unordered=True),
        },
        computed=("clientId", "objectId", "publisherDomain", "logoUrl", "disabledByMicrosoft", *NAMED_IDS),
    )

    @classmethod
    def computed_of(cls, found: dict[str, Any]) -> Props:
        return {
            "clientId": found["appId"],
            "disabledByMicrosoft": found.get("disabledByMicrosoftStatus") or "",
            "logoUrl": (found.get("info") or {}).get("logoUrl") or "",
            "publisherDomain": found.get("publisherDomain") or "",
        }

    def created(self, inputs: Props) -> tuple[str, Props]:
        graph, name = self.session().graph, self.schema.value(inputs, "displayName")
        self._refuse_duplicate(inputs, but="")
        with failing("Could not create application"):
            application = graph.post("/applications", self.new_body(inputs))
        path = f"{PREFIX}{application['id']}"
        for display_name in (f"TERRAFORM_UPDATE_{uuid.uuid4()}", name):
            with failing(f'Failed to patch application with object ID "{application["id"]}" after creating'):
                graph.patch(path, {"displayName": display_name}, retry_if=_not_replicated)
        return self.written(path, inputs)

    def changed(self, id: str, state: Props, inputs: Props) -> Props:
        object_id = id.removeprefix(PREFIX)
        self._refuse_duplicate(inputs, but=object_id)
        return self.patched(id, state, inputs, f'Could not update application with object ID: "{object_id}"')

    def _refuse_duplicate(self, inputs: Props, but: str) -> None:
        if not self.schema.value(inputs, "preventDuplicateNames"):
            return
        name = self.schema.value(inputs, "displayName")
        quoted = name.replace("'", "''")
        for application in self.session().graph.matching("/applications", f"displayName eq '{quoted}'"):
            if application["id"] != but:
                raise PluginError(
                    f'An existing "azuread_application" with name "{name}" (ID: "{application["id"]}") was found and '
                    "`prevent_duplicate_names` was specified: To be managed via Terraform, this resource needs to be "
                    'imported into the State. Please see the resource documentation for "azuread_application" for more '
                    "information."
                )


def _not_replicated(response: httpx.Response) -> bool:
    """`applicationUpdateRetryFunc`: this replica does not know the application yet."""
    return response.status_code in {httpx.codes.NOT_FOUND, httpx.codes.CONFLICT}


_GRAPH_SCOPE: Final = "https://graph.microsoft.com/.default"
# Argument of a data source and the property of Graph that it selects by.
_SELECTORS: Final[Mapping[str, str]] = {"objectId": "id", "clientId": "appId", "displayName": "displayName"}


RESOURCES: Final[Mapping[str, Callable[[OpenSession], Resource]]] = {
    "azuread:index/application:Application": ApplicationResource,
    "azuread:index/applicationCertificate:ApplicationCertificate": ApplicationCertificateResource,
    "azuread:index/servicePrincipal:ServicePrincipal": ServicePrincipalResource,
}


class AzureAd(AzureProvider[GraphSession]):
    """The provider: three resource types and three data sources."""

    name = "azuread"
    version = metadata.version("pulumi-azuread")

    def __init__(self) -> None:
        self._resources = {token: factory(self._open_session) for token, factory in RESOURCES.items()}
        self._functions: Mapping[str, Callable[[Props], Props]] = {
            "azuread:index/getApplication:getApplication": partial(self._only, "application", ApplicationResource),
            "azuread:index/getClientConfig:getClientConfig": self._get_client_config,
            "azuread:index/getServicePrincipal:getServicePrincipal": partial(
                self._only, "service principal", ServicePrincipalResource
            ),
        }

    def configure(self, inputs: Props) -> None:
        # The real provider signs in here too, for its own object id (`internal/clients/client.go`).
        settings = AzureProviderSettings.load(self.name, inputs)
        environment = settings.environment
        sign_in = DeployerCredential(settings)
        claims = sign_in.claims(_GRAPH_SCOPE)
        rest = RestClient(environment.graph_endpoint, _GRAPH_SCOPE, sign_in, ca_file=environment.ca_file, retry=RETRY)
        self._session = GraphSession(GraphClient(rest), settings.tenant_id, settings.client_id, claims["oid"])

    def invoke(self, token: str, args: Props) -> Props:
        if token not in self._functions:
            raise self.not_emulated("function", token, self._functions)
        return self._functions[token]({name: value for name, value in unwrap(args).items() if value is not None})

    def _get_client_config(self, _: Props) -> Props:
        session = self._open_session()
        ids = (session.tenant_id, session.client_id, session.object_id)
        return {"id": "-".join(ids), **dict(zip(("tenantId", "clientId", "objectId"), ids, strict=True))}

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
