"""The leftovers that a sweep finds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

# Between an application and a key id in azuread's ids.
CERTIFICATE: Final = "/certificate/"


class Swept(StrEnum):
    """The kinds of leftovers, in the order of deletion: assignments before their identities."""

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
    """A leftover: its id (of ARM, or a path in Graph), its name, and why it is listed.

    `not_ours` says why it is not this program's; None if it is. `too_soon` says until when it must stay; None if it may
    be deleted.
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
        """The leftover in the JSON document."""
        return {**asdict(self), "ours": self.not_ours is None}
