"""Inputs of a vault as the program gives them."""

from __future__ import annotations

from typing import Any

from localcloud.core.clouds import LOCAL_TENANT_ID
from plugin import Props


def vault_inputs(name: str, **properties: Any) -> Props:
    wanted = {
        "tenantId": LOCAL_TENANT_ID,
        "sku": {"family": "A", "name": "standard"},
        "enableRbacAuthorization": True,
        **properties,
    }
    return {"resourceGroupName": "identity-local", "vaultName": name, "location": "eastus", "properties": wanted}
