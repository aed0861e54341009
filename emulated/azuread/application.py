"""`azuread:index/application:Application` (`internal/services/applications/application_resource.go`)."""

from __future__ import annotations

import uuid
from typing import Any, Final

import httpx
import pulumi_azuread

from emulated.azuread.resource import GraphResource, failed
from emulated.azuread.schema import AT_MOST_1024, NOT_EMPTY, UUID, Argument, Schema, one_of
from emulated.client import RefusalError
from plugin import PluginError, Props

PREFIX: Final = "/applications/"
# Ids of roles and permission scopes by their values; this project's applications have neither.
NAMED_IDS: Final = ("appRoleIds", "oauth2PermissionScopeIds")
_AUDIENCES: Final = (
    "AzureADMyOrg",
    "AzureADMultipleOrgs",
    "AzureADandPersonalMicrosoftAccount",
    "PersonalMicrosoftAccount",
)


class ApplicationResource(GraphResource):
    """An application registration. Its id is `/applications/<object id>`."""

    arguments_type = pulumi_azuread.ApplicationArgs
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

    def created(self, inputs: Props) -> tuple[str, Props]:
        session = self.session()
        name = self.schema.value(inputs, "displayName")
        self._refuse_duplicate(inputs, but="")
        owners = self.schema.value(inputs, "owners") or []
        # The caller is the first owner; at the end it is removed unless it is in `owners`.
        others = [owner for owner in owners if owner != session.object_id]
        bound = [session.graph.reference(owner) for owner in (session.object_id, *others)]
        body = {"tags": [], **self.schema.graph_body(inputs), "owners@odata.bind": bound}
        try:
            application = session.graph.post("/applications", body)
        except RefusalError as error:
            raise failed("Could not create application", error) from None
        path = f"{PREFIX}{application['id']}"
        for display_name in (f"TERRAFORM_UPDATE_{uuid.uuid4()}", name):
            try:
                session.graph.patch(path, {"displayName": display_name}, retry_if=_not_replicated)
            except RefusalError as error:
                raise failed(
                    f'Failed to patch application with object ID "{application["id"]}" after creating', error
                ) from None
        if session.object_id not in owners:
            session.graph.remove_owner(path, session.object_id)
        return path, self.existing(path, inputs)

    def live(self, id: str, state: Props) -> Props | None:
        session = self.session()
        application = session.graph.find(checked_id(id, PREFIX))
        if application is None:
            return None
        return {
            **application_state(application),
            "owners": session.graph.owner_ids(id),
            "preventDuplicateNames": self.schema.value(state, "preventDuplicateNames"),
        }

    def changed(self, id: str, state: Props, inputs: Props) -> Props:
        session = self.session()
        self._refuse_duplicate(inputs, but=id.removeprefix(PREFIX))
        try:
            session.graph.patch(id, self.schema.graph_body(inputs))
        except RefusalError as error:
            raise failed(f'Could not update application with object ID: "{id.removeprefix(PREFIX)}"', error) from None
        if "owners" in self.schema.changes(state, inputs):
            session.graph.change_owners(id, self.schema.value(inputs, "owners") or [])
        return self.existing(id, inputs)

    def delete(self, urn: str, id: str, inputs: Props, state: Props) -> None:
        graph = self.session().graph
        try:
            graph.delete(id)
        except RefusalError as error:
            raise failed(f"deleting {printed_id(id)}", error) from None
        graph.wait(f"deletion of {id}", lambda: graph.find(id) is None)

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


def application_state(application: dict[str, Any]) -> Props:
    """The provider's state of an application, from Graph's JSON: null becomes the empty string."""
    return {
        "clientId": application["appId"],
        "objectId": application["id"],
        "displayName": application["displayName"],
        "description": application.get("description") or "",
        "deviceOnlyAuthEnabled": bool(application.get("isDeviceOnlyAuthSupported")),
        "disabledByMicrosoft": application.get("disabledByMicrosoftStatus") or "",
        "fallbackPublicClientEnabled": bool(application.get("isFallbackPublicClient")),
        "identifierUris": application.get("identifierUris") or [],
        "logoUrl": (application.get("info") or {}).get("logoUrl") or "",
        "notes": application.get("notes") or "",
        "publisherDomain": application.get("publisherDomain") or "",
        "serviceManagementReference": application.get("serviceManagementReference") or "",
        "signInAudience": application.get("signInAudience") or "",
        "tags": application.get("tags") or [],
        **{name: {} for name in NAMED_IDS},
    }


def checked_id(id: str, prefix: str) -> str:
    """The id, which is also its path at Graph; raises PluginError for an id of another kind."""
    if not id.startswith(prefix) or "/" in id.removeprefix(prefix):
        raise PluginError(f'parsing "{id}": expected an ID of the form {prefix}<object id>')
    return id


def printed_id(id: str) -> str:
    """An application's id as go-azure-sdk prints it in errors."""
    return f'Application (Application: "{id.removeprefix(PREFIX)}")'


def _not_replicated(response: httpx.Response) -> bool:
    """`applicationUpdateRetryFunc`: this replica does not know the application yet."""
    return response.status_code in {httpx.codes.NOT_FOUND, httpx.codes.CONFLICT}
