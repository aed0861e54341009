"""`azuread:index/servicePrincipal:ServicePrincipal` (`service_principal_resource.go` in `internal/services`)."""

from __future__ import annotations

import re
import uuid
from typing import Any, Final

import httpx
import pulumi_azuread

from emulated.azuread.application import NAMED_IDS, checked_id
from emulated.azuread.resource import GraphResource, exists_already, failed
from emulated.azuread.schema import AT_MOST_1024, UUID, Argument, Schema
from emulated.client import RefusalError, error_of
from plugin import Props

PREFIX: Final = "/servicePrincipals/"
# Graph's messages while the application is not replicated yet.
_NOT_REPLICATED: Final = {
    httpx.codes.BAD_REQUEST: "The appId '.+' of the service principal does not reference a valid application object",
    httpx.codes.FORBIDDEN: "When using this permission, the backing application of the service principal being created",
}


class ServicePrincipalResource(GraphResource):
    """The service principal of an application. Its id is `/servicePrincipals/<object id>`."""

    arguments_type = pulumi_azuread.ServicePrincipalArgs
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

    def created(self, inputs: Props) -> tuple[str, Props]:
        session = self.session()
        client_id = self.schema.value(inputs, "clientId")
        current = session.graph.matching("/servicePrincipals", f"appId eq '{client_id}'")
        if current and self.schema.value(inputs, "useExisting"):
            path = f"{PREFIX}{current[0]['id']}"
            return path, self.changed(path, inputs, inputs)
        if current:
            raise exists_already("azuread_service_principal", current[0]["id"])
        owners = self.schema.value(inputs, "owners") or []
        others = [owner for owner in owners if owner != session.object_id]
        body = {
            "tags": [],
            **self.schema.graph_body(inputs),
            "description": f"TERRAFORM_UPDATE_{uuid.uuid4()}",
            "owners@odata.bind": [session.graph.reference(owner) for owner in (session.object_id, *others)],
        }
        try:
            principal = session.graph.post("/servicePrincipals", body, retry_if=_not_replicated)
        except RefusalError as error:
            raise failed("Could not create service principal", error) from None
        path = f"{PREFIX}{principal['id']}"
        try:
            session.graph.patch(path, {"description": self.schema.graph_body(inputs)["description"]})
        except RefusalError as error:
            raise failed("Failed to patch service principal after creating", error) from None
        if session.object_id not in owners:
            session.graph.remove_owner(path, session.object_id)
        return path, self.existing(path, inputs)

    def live(self, id: str, state: Props) -> Props | None:
        session = self.session()
        principal = session.graph.find(checked_id(id, PREFIX))
        if principal is None:
            return None
        return {
            **principal_state(principal),
            "owners": session.graph.owner_ids(id),
            "useExisting": self.schema.value(state, "useExisting"),
        }

    def changed(self, id: str, state: Props, inputs: Props) -> Props:
        session = self.session()
        body = {name: value for name, value in self.schema.graph_body(inputs).items() if name != "appId"}
        try:
            session.graph.patch(id, body)
        except RefusalError as error:
            raise failed(f"Updating {_printed(id)}", error) from None
        if "owners" in self.schema.changes(state, inputs):
            session.graph.change_owners(id, self.schema.value(inputs, "owners") or [])
        return self.existing(id, inputs)

    def delete(self, urn: str, id: str, inputs: Props, state: Props) -> None:
        graph = self.session().graph
        try:
            graph.delete(id)
        except RefusalError as error:
            if self.schema.value(state, "useExisting"):
                return
            raise failed(f"Deleting {_printed(id)}", error) from None
        graph.wait(f"deletion of {id}", lambda: graph.find(id) is None)


def principal_state(principal: dict[str, Any]) -> Props:
    """The provider's state of a service principal, from Graph's JSON: null becomes the empty string."""
    return {
        "clientId": principal["appId"],
        "objectId": principal["id"],
        "displayName": principal["displayName"],
        "accountEnabled": bool(principal.get("accountEnabled")),
        "appRoleAssignmentRequired": bool(principal.get("appRoleAssignmentRequired")),
        "applicationTenantId": principal.get("appOwnerOrganizationId") or "",
        "description": principal.get("description") or "",
        "notes": principal.get("notes") or "",
        # The application's own id is left out, as the provider does.
        "servicePrincipalNames": [
            name for name in principal.get("servicePrincipalNames") or [] if name != principal["appId"]
        ],
        "signInAudience": principal.get("signInAudience") or "",
        "tags": principal.get("tags") or [],
        "type": principal.get("servicePrincipalType") or "",
        **{name: {} for name in NAMED_IDS},
    }


def _printed(id: str) -> str:
    """The id as go-azure-sdk prints it in errors."""
    return f'Service Principal (Service Principal: "{id.removeprefix(PREFIX)}")'


def _not_replicated(response: httpx.Response) -> bool:
    words = _NOT_REPLICATED.get(httpx.codes(response.status_code))
    return words is not None and re.search(words, error_of(response)[1]) is not None
