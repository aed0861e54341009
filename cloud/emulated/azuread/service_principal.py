"""`azuread:index/servicePrincipal:ServicePrincipal` (`service_principal_resource.go` in `internal/services`)."""

from __future__ import annotations

import re
import uuid
from typing import Any, Final

import httpx
import pulumi_azuread

from emulated.azuread.application import NAMED_IDS
from emulated.azuread.resource import OwnedResource, exists_already, failed
from emulated.azuread.schema import AT_MOST_1024, UUID, Argument, Schema
from emulated.client import RefusalError, error_of
from plugin import Props

PREFIX: Final = "/servicePrincipals/"
# Graph's messages while the application is not replicated yet.
_NOT_REPLICATED: Final = {
    httpx.codes.BAD_REQUEST: "The appId '.+' of the service principal does not reference a valid application object",
    httpx.codes.FORBIDDEN: "When using this permission, the backing application of the service principal being created",
}


class ServicePrincipalResource(OwnedResource):
    """The service principal of an application. Its id is `/servicePrincipals/<object id>`."""

    arguments_type = pulumi_azuread.ServicePrincipalArgs
    prefix, title, deleting, not_in_graph = PREFIX, "Service Principal", "Deleting", "useExisting"
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
    def state_of(cls, found: dict[str, Any]) -> Props:
        return {
            "clientId": found["appId"],
            "objectId": found["id"],
            "displayName": found["displayName"],
            "accountEnabled": bool(found.get("accountEnabled")),
            "appRoleAssignmentRequired": bool(found.get("appRoleAssignmentRequired")),
            "applicationTenantId": found.get("appOwnerOrganizationId") or "",
            "description": found.get("description") or "",
            "notes": found.get("notes") or "",
            # The application's own id is left out, as the provider does.
            "servicePrincipalNames": [
                name for name in found.get("servicePrincipalNames") or [] if name != found["appId"]
            ],
            "signInAudience": found.get("signInAudience") or "",
            "tags": found.get("tags") or [],
            "type": found.get("servicePrincipalType") or "",
            **{name: {} for name in NAMED_IDS},
        }

    def created(self, inputs: Props) -> tuple[str, Props]:
        graph, client_id = self.session().graph, self.schema.value(inputs, "clientId")
        current = graph.matching("/servicePrincipals", f"appId eq '{client_id}'")
        if current and self.schema.value(inputs, "useExisting"):
            path = f"{PREFIX}{current[0]['id']}"
            return path, self.changed(path, inputs, inputs)
        if current:
            raise exists_already("azuread_service_principal", current[0]["id"])
        body = self.new_body(inputs)
        described = {**body, "description": f"TERRAFORM_UPDATE_{uuid.uuid4()}"}
        try:
            principal = graph.post("/servicePrincipals", described, retry_if=_not_replicated)
        except RefusalError as error:
            raise failed("Could not create service principal", error) from None
        path = f"{PREFIX}{principal['id']}"
        try:
            graph.patch(path, {"description": body["description"]})
        except RefusalError as error:
            raise failed("Failed to patch service principal after creating", error) from None
        return self.written(path, inputs)

    def changed(self, id: str, state: Props, inputs: Props) -> Props:
        return self.patched(id, state, inputs, f"Updating {self.printed(id)}")

    def may_stay(self, state: Props) -> bool:
        return bool(self.schema.value(state, "useExisting"))


def _not_replicated(response: httpx.Response) -> bool:
    words = _NOT_REPLICATED.get(httpx.codes(response.status_code))
    return words is not None and re.search(words, error_of(response)[1]) is not None
