"""The parts of every service of the local Azure, and their assembly over a store."""

from __future__ import annotations

from dataclasses import dataclass

from localcloud.azure.authorization import Authorization
from localcloud.azure.shared.faults import Faults
from localcloud.azure.shared.held import FaultHolder
from localcloud.azure.tenant.directory import Directory
from localcloud.azure.tenant.objects import People
from localcloud.azure.tenant.tokens import Tokens
from localcloud.core.clouds import LOCAL_SUBSCRIPTION_ID, LOCAL_TENANT_ID
from localcloud.core.store import Store


@dataclass(frozen=True)
class LocalAzure:
    """The one tenant and subscription of this machine: the argument of each service's `app`."""

    store: Store
    faults: Faults
    holder: FaultHolder
    directory: Directory
    people: People
    tokens: Tokens
    authorization: Authorization
    tenant_id: str
    subscription_id: str
    authority_host: str
    """Base address of Entra with a trailing slash, as announced in challenges and credential documents."""


def assemble(
    store: Store,
    faults: Faults,
    *,
    authority_host: str,
    holder: FaultHolder | None = None,
    tenant_id: str = LOCAL_TENANT_ID,
    subscription_id: str = LOCAL_SUBSCRIPTION_ID,
) -> LocalAzure:
    """The local Azure over `store`; the other arguments are the fields of those names."""
    people, holding = People(store), holder or FaultHolder()
    return LocalAzure(
        store=store,
        faults=faults,
        holder=holding,
        directory=Directory(store, faults),
        people=people,
        tokens=Tokens(store, faults, tenant_id, people, holding),
        authorization=Authorization(store, faults),
        tenant_id=tenant_id,
        subscription_id=subscription_id,
        authority_host=authority_host,
    )
