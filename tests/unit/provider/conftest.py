"""A clock that the tests set, and a local Azure that the plugin's resources reach over real sockets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from identity.azure.client import AzureClient
from identity.clouds import LOCAL_TENANT_ID, Cloud
from identity.credentials import rfc3339
from localcloud.testing.arm import VAULT, ArmWorld, world
from localcloud.testing.azure import ServicePrincipal
from localcloud.testing.azure import blob_app as blob
from localcloud.testing.azure import keyvault_app as keyvault
from localcloud.testing.hosts import Certificates, Serve
from tests.unit import cases
from tests.unit.azure_world import IssuedTokens, cloud, deployer

__all__ = ["cloud", "deployer", "world"]

SetClock = Callable[[datetime], None]
SECRET: Final = "ingress-hc1-json"
# Where the credential is delivered, as the program writes it.
ADDRESS: Final[dict[str, Any]] = {
    "cloud": "local",
    "tenantId": LOCAL_TENANT_ID,
    "vaultId": VAULT,
    "secretName": SECRET,
    "objectEncoding": "utf-8",
}


@cache
def _key(number: int) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@pytest.fixture(autouse=True)
def _keys_from_a_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each certificate of a test has a key of its own, and the next test has the same: one takes 50 ms."""
    made, keys = rsa.generate_private_key, cycle([_key(number) for number in range(8)])

    def drawn(public_exponent: int, key_size: int) -> rsa.RSAPrivateKey:
        return next(keys) if key_size == 2048 else made(public_exponent, key_size)

    monkeypatch.setattr(rsa, "generate_private_key", drawn)


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    """Stops the clock of schedules at a moment."""
    return lambda moment: monkeypatch.setenv("IDSTACK_CLOCK", rfc3339.render(moment))


SignIn = Callable[[ServicePrincipal], None]


@pytest.fixture
def sign_in(
    world: ArmWorld, cloud: Cloud, certificates: Certificates, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SignIn]:
    """Makes somebody the caller of the plugin's requests."""
    endpoints = {"vault_endpoint": serve(keyvault(world.cloud)), "blob_endpoint": serve(blob(world.cloud))}
    reached = Cloud(**{**vars(cloud), **endpoints})
    opened: list[AzureClient] = []

    def become(principal: ServicePrincipal) -> None:
        client = AzureClient(reached, IssuedTokens(world, principal), str(certificates.ca_file))
        opened.append(client)
        monkeypatch.setattr("provider.cloud.client", lambda *_: client)

    yield become
    for client in opened:
        client.__exit__()


@pytest.fixture
def in_azure(sign_in: SignIn, world: ArmWorld, deployer: ServicePrincipal) -> ArmWorld:
    """A world with the stack's vault, in which the plugin is signed in as the deployer."""
    sign_in(deployer)
    world.create_vault()
    return world


def refused_inputs(resource: str) -> pytest.MarkDecorator:
    """A test for each input of a resource that Check refuses: `name`, `value`, and the `reason`."""
    table = cases.read(Path(__file__).with_name("refused-inputs.yaml"), {})[resource]
    rows = [(*told.split(": ", 1), value) for told, values in table.items() for value in values]
    return pytest.mark.parametrize(("name", "reason", "value"), rows)


def versions(world: ArmWorld, name: str = SECRET) -> list[dict[str, Any]]:
    """The versions of a secret, oldest first, as the vault lists them."""
    found = world.vault("GET", f"/secrets/{name}/versions").json()["value"]
    return sorted(found, key=lambda version: version["attributes"]["created"])
