"""What a sweep finds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

# Between an application and a key id, as azuread's ids have it.
CERTIFICATE: Final = "/certificate/"


class Swept(StrEnum):
    """What is left over, in the order of deletion: assignments before the identities that they name."""

    ROLE_ASSIGNMENT = "role assignment"
    REGISTRATION = "registered certificate"
    CLIENT_SECRET = "client secret"
    FEDERATED_CREDENTIAL = "federated credential"
    APPLICATION = "application"
    SECRET = "secret"
    STORAGE_ACCOUNT = "storage account"
    MANAGED_IDENTITY = "managed identity"
    MACHINE = "virtual machine"
    DISK = "disk"
    INTERFACE = "network interface"
    LOAD_BALANCER = "load balancer"
    PUBLIC_ADDRESS = "public IP address"


@dataclass(frozen=True)
class LeftOver:
    """One thing: its id (of ARM, or a path in Graph), a name for people, and why it is listed.

    `not_ours` says why it is not deleted; None if it is this program's. `too_soon` says until when it is not deleted;
    None if it may be.
    """

    kind: Swept
    id: str
    name: str
    reason: str
    not_ours: str | None = None
    too_soon: str | None = None

    @property
    def is_deleted(self) -> bool:
        """Whether `--yes` deletes it."""
        return self.not_ours is None and self.too_soon is None

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {**asdict(self), "ours": self.not_ours is None}
