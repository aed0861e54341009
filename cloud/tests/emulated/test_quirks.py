"""Azure's quirks at the local ARM: each fails a client that ignores it, and a client that knows it succeeds."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from emulated.azure_native.provider import RETRY, ArmClient
from emulated.client import RefusalError, RestClient, Retry
from localcloud.azure.arm import managedidentity
from localcloud.azure.shared import faults
from localcloud.azure.shared.faults import Faults
from localcloud.core import clock
from localcloud.testing.arm import GROUP, SUBSCRIPTION, VAULT, ArmWorld
from localcloud.testing.hosts import Certificates, Serve

_IDENTITY: Final = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/hc1-disk"
_READER: Final = (
    f"{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/acdd72a7-3385-48ef-bd42-f606fba81ae7"
)
_MSI: Final = "2023-01-31"
_TIMEOUT: Final = 30  # seconds until a missing event is a failure
_NEVER: Final = Retry(statuses=frozenset(), delay=lambda _: 0.0, limit=0)


class DeployerTokens:
    """Signs in as the world's deployer."""

    def __init__(self, world: ArmWorld) -> None:
        self._world = world

    def token(self, scope: str) -> str:
        """A token for ARM."""
        return self._world.cloud.tokens.issue(self._world.deployer, "https://management.azure.com")


@pytest.fixture
def limited_azure(tmp_path: Path) -> Iterator[ArmWorld]:
    """An Azure with default settings, except for a request limit that a test can reach."""
    built = ArmWorld(
        tmp_path, Faults(arm_requests={"read": (2, 1)}, federated_credential_write=0.3, principal_delay=60)
    )
    yield built
    built.store.close()


class ArmClients:
    """ARM as azure-native calls it, and as a client without retries does.

    `waits` are the seconds that the client with retries waited; each wait moves the clock on and calls `meanwhile`.
    """

    def __init__(self, world: ArmWorld, base_url: str, ca_file: Path, stack: ExitStack) -> None:
        self.waits: list[float] = []
        self.meanwhile: Callable[[], object] = lambda: None

        def wait(seconds: float) -> None:
            self.waits.append(seconds)
            stack.enter_context(clock.moved_ahead(timedelta(seconds=seconds)))
            self.meanwhile()

        def client(retry: Retry) -> ArmClient:
            signed_in: Any = DeployerTokens(world)
            return ArmClient(RestClient(base_url, "arm", signed_in, ca_file=str(ca_file), retry=retry, sleep=wait))

        self.retrying, self.single_try = client(RETRY), client(_NEVER)


@pytest.fixture
def clients(limited_azure: ArmWorld, serve: Serve, certificates: Certificates) -> Iterator[ArmClients]:
    with ExitStack() as stack:
        yield ArmClients(limited_azure, serve(limited_azure.arm), certificates.ca_file, stack)


def _trust(client: ArmClient, number: int) -> None:
    properties = {"issuer": "https://issuer.example.com", "subject": str(number), "audiences": ["openshift"]}
    client.put(f"{_IDENTITY}/federatedIdentityCredentials/fed-{number}", _MSI, {"properties": properties})


def test_concurrent_federated_credentials_wait_and_sequential_ones_do_not(
    clients: ArmClients, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients.retrying.put(_IDENTITY, _MSI, {"location": "eastus"})
    waits, written = threading.Event(), threading.Event()
    paused: set[float] = set()

    def meanwhile() -> None:
        waits.set()
        assert written.wait(_TIMEOUT)

    async def until_the_other_waits(seconds: float) -> None:
        paused.add(seconds)
        assert await asyncio.to_thread(waits.wait, _TIMEOUT)

    def at_once(number: int) -> None:
        _trust(clients.retrying, number)
        written.set()

    clients.meanwhile = meanwhile
    monkeypatch.setattr(managedidentity, "asyncio", SimpleNamespace(sleep=until_the_other_waits))
    with caplog.at_level("INFO", "localcloud.azure.shared.http"), ThreadPoolExecutor() as pool:
        list(pool.map(at_once, (1, 2)))
    [refused] = caplog.messages
    assert refused.endswith(": 409 ConcurrentFederatedIdentityCredentialsWritesForSingleManagedIdentity")
    assert (clients.waits, paused) == ([20.0], {0.3})

    clients.waits.clear()
    for number in (3, 4):
        _trust(clients.retrying, number)
    assert clients.waits == []


def test_fast_reads_are_throttled_and_a_retry_after_the_wait_succeeds(
    clients: ArmClients, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = clock.now()
    monkeypatch.setattr(faults, "now", lambda: begin + timedelta(seconds=sum(clients.waits)))

    def read(client: ArmClient) -> str:
        return str(client.get(GROUP, "2024-03-01")["id"])

    assert [read(clients.single_try), read(clients.single_try)] == [GROUP, GROUP]
    with pytest.raises(RefusalError, match='Status=429 Code="SubscriptionRequestsThrottled"'):
        read(clients.single_try)
    assert read(clients.retrying) == GROUP
    assert clients.waits == [1.0]


@pytest.mark.parametrize(
    ("sent", "refusal"),
    [
        ({}, "PrincipalNotFound"),
        # What the SDK of azure-native sends for a program that sets nothing.
        ({"principalType": "User"}, "UnmatchedPrincipalType"),
        ({"principalType": "ServicePrincipal"}, None),
    ],
    ids=["nothing", "the SDK's default", "the principal type"],
)
def test_a_new_principal_is_found_only_with_its_principal_type(
    clients: ArmClients, sent: dict[str, str], refusal: str | None
) -> None:
    _refused(lambda: _assign(clients, str(uuid.uuid4()), _principal(clients), sent), refusal)


def test_an_assignment_without_its_principal_blocks_its_name(clients: ArmClients) -> None:
    name, sent = str(uuid.uuid4()), {"principalType": "ServicePrincipal"}
    _assign(clients, name, _principal(clients), sent)
    clients.single_try.delete(_IDENTITY, _MSI)
    successor = _principal(clients)

    _refused(lambda: _assign(clients, name, successor, sent), "RoleAssignmentUpdateNotPermitted")
    clients.single_try.delete(_assignment(name), "2022-04-01")
    _assign(clients, name, successor, sent)


def test_arm_cannot_delete_a_secret_that_it_created(limited_azure: ArmWorld, clients: ArmClients) -> None:
    limited_azure.create_vault()
    clients.single_try.put(f"{VAULT}/secrets/one", "2024-11-01", {"properties": {"value": "v"}})

    _refused(lambda: clients.single_try.delete(f"{VAULT}/secrets/one", "2024-11-01"), "MethodNotAllowed")
    assert limited_azure.vault("DELETE", "/secrets/one").status_code == 200


def _principal(clients: ArmClients) -> str:
    """Object id of a managed identity that was not there a moment ago."""
    return str(clients.single_try.put(_IDENTITY, _MSI, {"location": "eastus"})["properties"]["principalId"])


def _assignment(name: str) -> str:
    return f"{GROUP}/providers/Microsoft.Authorization/roleAssignments/{name}"


def _assign(clients: ArmClients, name: str, principal: str, sent: dict[str, str]) -> None:
    properties = {"principalId": principal, "roleDefinitionId": _READER, **sent}
    clients.single_try.put(_assignment(name), "2022-04-01", {"properties": properties})


def _refused(attempt: Callable[[], None], code: str | None) -> None:
    if code is None:
        attempt()
        return
    with pytest.raises(RefusalError) as refused:
        attempt()
    assert refused.value.code == code
