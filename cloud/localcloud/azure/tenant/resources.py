"""The services of the tenant for which a token can be requested.

Sources: the first-party application ids that Microsoft publishes for sign-in reports; audiences as seen in v1 tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from localcloud.core.clouds import AKS_CLIENT_APP_ID, AKS_SERVER_APP_ID, CLOUDS, DEFAULT_CLOUD, Cloud

GRAPH_APP_ID: Final = "00000003-0000-0000-c000-000000000000"
_ARM_APP_ID: Final = "797f4846-ba00-4fd7-ba43-dac1f8f63013"
_VAULT_APP_ID: Final = "cfa8b339-82a2-471a-a3c9-0fc0be7a4093"
_STORAGE_APP_ID: Final = "e406a681-f3d4-42a8-90b6-c2b029497af1"


@dataclass(frozen=True)
class Audiences:
    """What the `aud` of a token for each service of one cloud may be; each tuple begins with the usual one."""

    arm: tuple[str, ...]
    vault: tuple[str, ...]
    graph: tuple[str, ...]
    storage: tuple[str, ...]


def audiences(cloud: Cloud) -> Audiences:
    """The audiences of a cloud's services."""
    return Audiences(
        arm=_with_and_without_slash(cloud.arm_scope.removesuffix("//.default"), cloud.arm_endpoint),
        vault=_with_and_without_slash(cloud.vault_scope.removesuffix("/.default")),
        graph=_with_and_without_slash(cloud.graph_endpoint),
        storage=_with_and_without_slash(cloud.storage_scope.removesuffix("/.default")),
    )


def first_party_audiences() -> Iterator[str]:
    """Everything that names a first-party service in a scope: its application id and its identifier URIs."""
    yield from (_ARM_APP_ID, _VAULT_APP_ID, GRAPH_APP_ID, _STORAGE_APP_ID, AKS_SERVER_APP_ID)
    for cloud in CLOUDS.values():
        accepted = audiences(cloud)
        yield from (*accepted.arm, *accepted.vault, *accepted.graph, *accepted.storage)


EXCHANGE: Final = "api://AzureADTokenExchange"
"""The resource whose tokens a managed identity shows to Entra as assertions of an application."""


def exchange_issuer(cloud: Cloud, tenant: str) -> str:
    """The issuer of a managed identity's token for `EXCHANGE`, as a federated credential names it."""
    return f"{cloud.authority_host.rstrip('/')}/{tenant}/v2.0"


def is_graph(resource: str) -> bool:
    """Whether this is the Graph of any cloud, as tokens name it."""
    return resource == GRAPH_APP_ID or any(resource in audiences(cloud).graph for cloud in CLOUDS.values())


def _with_and_without_slash(*addresses: str) -> tuple[str, ...]:
    return tuple(f"{address}{end}" for address in addresses for end in ("", "/"))


PUBLIC_AUDIENCES: Final = audiences(CLOUDS[DEFAULT_CLOUD])
"""Those of the public cloud, whose names the local addresses have."""

PUBLIC_CLIENTS: Final = frozenset({AKS_CLIENT_APP_ID})
"""Application ids of the first-party clients with which a person signs in; they have no secret."""
