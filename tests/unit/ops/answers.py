"""Answers of ARM with all that every one of their kind has, and an ARM that gives them."""

from __future__ import annotations

from typing import Any

from identity.azure.errors import AzureRefusedError


class FakeArm:
    """ARM with these resources by id, None for a deleted one; `refuses` begins the ids that it does not show."""

    def __init__(self, *resources: dict[str, Any]) -> None:
        self.by_id: dict[str, dict[str, Any] | None] = {resource["id"]: resource for resource in resources}
        self.refuses: str | None = None

    def resource(self, resource_id: str, api_version: str) -> dict[str, Any] | None:
        if self.refuses is not None and resource_id.startswith(self.refuses):
            raise AzureRefusedError("reading it: 403", 403)
        return self.by_id.get(resource_id)

    def resources(self, collection: str, api_version: str, condition: str | None = None) -> list[dict[str, Any]]:
        """The resources directly below a collection."""
        return [resource for id, resource in self.by_id.items() if resource and id.rpartition("/")[0] == collection]


def secret(id: str, version: str, thumbprint: str | None = None, **attributes: Any) -> dict[str, Any]:
    """A secret in a vault."""
    uri = f"https://kv.vault.azure.net/secrets/{id.rpartition('/')[2]}"
    properties = {
        "attributes": {"enabled": True, "created": 1795408233, **attributes},
        "secretUri": uri,
        "secretUriWithVersion": f"{uri}/{version}",
    }
    return {
        "id": id,
        "name": id.rpartition("/")[2],
        "properties": properties,
        "tags": {} if thumbprint is None else {"thumbprint": thumbprint},
    }


def role_assignment(id: str, principal: str, definition: str) -> dict[str, Any]:
    """A role assignment; its scope is before the provider in its id."""
    properties = {
        "scope": id.partition("/providers/Microsoft.Authorization/")[0],
        "principalId": principal,
        "principalType": "ServicePrincipal",
        "roleDefinitionId": definition,
    }
    return {"id": id, "name": id.rpartition("/")[2], "properties": properties}


def managed_identity(id: str, client_id: str) -> dict[str, Any]:
    """A managed identity."""
    properties = {"clientId": client_id, "principalId": f"principal of {client_id}"}
    return {"id": id, "name": id.rpartition("/")[2], "location": "eastus", "properties": properties}


def federated_credential(id: str, subject: str, **changes: Any) -> dict[str, Any]:
    """A federated credential of a managed identity."""
    properties = {"issuer": "https://issuer.example.com", "subject": subject, "audiences": ["openshift"], **changes}
    return {"id": id, "name": id.rpartition("/")[2], "properties": properties}
