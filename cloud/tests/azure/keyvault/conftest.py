from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from azure.core.credentials import AccessToken
from azure.keyvault.keys import KeyClient
from azure.keyvault.secrets import SecretClient

from localcloud.azure.tenant.objects import ServicePrincipal
from localcloud.testing.arm import ArmWorld
from localcloud.testing.hosts import Certificates, Serve


@dataclass(frozen=True)
class PrincipalCredential:
    """A token credential for a principal, without the sign-in."""

    world: ArmWorld
    principal: ServicePrincipal

    def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        resource = scopes[0].removesuffix("/.default")
        return AccessToken(self.world.cloud.tokens.issue(self.principal, resource), int(time.time()) + 3600)


@dataclass(frozen=True)
class VaultClients:
    """Microsoft's own clients of the data plane that is served at `url`, to which loopback is the stack's own vault."""

    world: ArmWorld
    url: str
    ca_file: Path
    opened: ExitStack

    def secrets(self, principal: ServicePrincipal) -> SecretClient:
        client = SecretClient(self.url, PrincipalCredential(self.world, principal), **self._options())
        return self.opened.enter_context(client)

    def keys(self, principal: ServicePrincipal) -> KeyClient:
        client = KeyClient(self.url, PrincipalCredential(self.world, principal), **self._options())
        return self.opened.enter_context(client)

    def _options(self) -> dict[str, Any]:
        return {"verify_challenge_resource": False, "connection_verify": str(self.ca_file), "retry_total": 0}


@pytest.fixture
def clients(world: ArmWorld, serve: Serve, certificates: Certificates) -> Iterator[VaultClients]:
    """The data plane over TLS on loopback; the stack's vault exists."""
    url = serve(world.keyvault).replace("127.0.0.1", "localhost")
    world.create_vault()
    with ExitStack() as opened:
        yield VaultClients(world, url, certificates.ca_file, opened)
