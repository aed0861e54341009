"""The services of the tenant that a token can be asked for.

Sources: the first-party application ids that Microsoft publishes for sign-in reports; audiences as seen in v1 tokens.
"""

from __future__ import annotations

from collections.abc import Iterator

from identity.access.login import AKS_CLIENT_APP_ID, AKS_SERVER_APP_ID

ARM_AUDIENCES = (
    "https://management.core.windows.net/",
    "https://management.core.windows.net",
    "https://management.azure.com/",
    "https://management.azure.com",
)
VAULT_AUDIENCES = ("https://vault.azure.net", "https://vault.azure.net/")
GRAPH_AUDIENCES = ("https://graph.microsoft.com", "https://graph.microsoft.com/")
STORAGE_AUDIENCES = ("https://storage.azure.com", "https://storage.azure.com/")

GRAPH_APP_ID = "00000003-0000-0000-c000-000000000000"

FIRST_PARTY_APP_IDS = {
    "797f4846-ba00-4fd7-ba43-dac1f8f63013": ARM_AUDIENCES,
    "cfa8b339-82a2-471a-a3c9-0fc0be7a4093": VAULT_AUDIENCES,
    GRAPH_APP_ID: GRAPH_AUDIENCES,
    "e406a681-f3d4-42a8-90b6-c2b029497af1": STORAGE_AUDIENCES,
    AKS_SERVER_APP_ID: (),
}
"""Application id of each first-party service: the identifier URIs it is also known by."""

PUBLIC_CLIENTS = frozenset({AKS_CLIENT_APP_ID})
"""Application ids of the first-party clients with which a person signs in; they have no secret."""


def first_party_audiences() -> Iterator[str]:
    """Everything that names a first-party service in a scope: its application id and its identifier URIs."""
    for app_id, uris in FIRST_PARTY_APP_IDS.items():
        yield app_id
        yield from uris
