"""`azuread:index/application:Application` (`internal/services/applications/application_resource.go`)."""

from __future__ import annotations

import uuid
from typing import Any, Final

import httpx
import pulumi_azuread

from emulated.azuread.resource import OwnedResource, failed
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
    def state_of(cls, found: dict[str, Any]) -> Props:
        return {
            "clientId": found["appId"],
            "objectId": found["id"],
            "displayName": found["displayName"],
            "description": found.get("description") or "",
            "deviceOnlyAuthEnabled": bool(found.get("isDeviceOnlyAuthSupported")),
            "disabledByMicrosoft": found.get("disabledByMicrosoftStatus") or "",
            "fallbackPublicClientEnabled": bool(found.get("isFallbackPublicClient")),
            "identifierUris": found.get("identifierUris") or [],
            "logoUrl": (found.get("info") or {}).get("logoUrl") or "",
            "notes": found.get("notes") or "",
            "publisherDomain": found.get("publisherDomain") or "",
            "serviceManagementReference": found.get("serviceManagementReference") or "",
            "signInAudience": found.get("signInAudience") or "",
            "tags": found.get("tags") or [],
            **{name: {} for name in NAMED_IDS},
        }

    def created(self, inputs: Props) -> tuple[str, Props]:
        graph, name = self.session().graph, self.schema.value(inputs, "displayName")
        self._refuse_duplicate(inputs, but="")
        try:
            application = graph.post("/applications", self.new_body(inputs))
        except RefusalError as error:
            raise failed("Could not create application", error) from None
        path = f"{PREFIX}{application['id']}"
        for display_name in (f"TERRAFORM_UPDATE_{uuid.uuid4()}", name):
            try:
                graph.patch(path, {"displayName": display_name}, retry_if=_not_replicated)
            except RefusalError as error:
                raise failed(
                    f'Failed to patch application with object ID "{application["id"]}" after creating', error
                ) from None
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
