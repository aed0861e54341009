"""The identity that runs the stack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self

# Public clients by which a person signs in: the Azure CLI and Azure PowerShell (learn.microsoft.com/troubleshoot/entra,
# "Verify first-party Microsoft applications"). A token that a service principal gets through them names itself.
_USER_CLIENT_IDS: Final = frozenset({"04b07795-8ddb-461a-bbee-02f9e1bf7b46", "1950a258-227b-4e31-a9cf-717495945fc2"})


@dataclass(frozen=True, kw_only=True)
class Deployer:
    """The identity that runs the stack: its tenant, its object id, and whether it is an application."""

    tenant_id: str
    object_id: str
    is_service_principal: bool

    @classmethod
    def of(cls, client_config: dict[str, Any]) -> Self:
        """From azure-native's `getClientConfig`, whose `clientId` is the client that the token was issued to."""
        return cls(
            tenant_id=client_config["tenantId"].lower(),
            object_id=client_config["objectId"],
            is_service_principal=client_config["clientId"].lower() not in _USER_CLIENT_IDS,
        )
