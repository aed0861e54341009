"""Answers of ARM with all that every one of their kind has."""

from __future__ import annotations

from typing import Any


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
