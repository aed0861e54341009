"""Puts the local Azure together over a store."""

from __future__ import annotations

from identity.clouds import LOCAL_SUBSCRIPTION_ID, LOCAL_TENANT_ID
from localcloud.azure import LocalAzure
from localcloud.azure.authorization import Authorization
from localcloud.azure.entra.directory import Directory
from localcloud.azure.entra.people import People
from localcloud.azure.entra.tokens import Tokens
from localcloud.azure.faults import Faults
from localcloud.state import Store


def assemble(store: Store, faults: Faults, *, authority_host: str) -> LocalAzure:
    """The one tenant and subscription of this machine, as every service sees them."""
    people = People(store)
    return LocalAzure(
        store=store,
        faults=faults,
        directory=Directory(store, faults),
        people=people,
        tokens=Tokens(store, faults, LOCAL_TENANT_ID, people),
        authorization=Authorization(store, faults),
        tenant_id=LOCAL_TENANT_ID,
        subscription_id=LOCAL_SUBSCRIPTION_ID,
        authority_host=authority_host,
    )
