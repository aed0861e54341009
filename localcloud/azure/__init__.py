"""The local Azure: Entra, Graph, ARM, Key Vault and IMDS over one store, one directory and one authorization check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from localcloud.azure.authorization import Authorization
    from localcloud.azure.entra.directory import Directory
    from localcloud.azure.entra.people import People
    from localcloud.azure.entra.tokens import Tokens
    from localcloud.azure.faults import Faults
    from localcloud.state import Store


@dataclass(frozen=True)
class LocalAzure:
    """What every service of the local Azure is built from: `app(cloud: LocalAzure) -> Starlette`."""

    store: Store
    faults: Faults
    directory: Directory
    people: People
    tokens: Tokens
    authorization: Authorization
    tenant_id: str
    subscription_id: str
    authority_host: str
    """Base address of Entra with a trailing slash, as announced in challenges and credential documents."""
