"""Azure's truths at the local ARM: what bites a client that does not know them, and that those who do get through."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from localcloud.azure.shared.faults import Faults
from localcloud.core import clock
from localcloud.providers.azure_native.arm import RETRY, ArmClient
from localcloud.providers.client import RefusalError, RestClient, Retry
from tests.unit.hosts import Certificates, Serve
from tests.unit.localcloud.arm_world import GROUP, SUBSCRIPTION, VAULT, ArmWorld

_IDENTITY: Final = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/hc1-disk"
_READER: Final = (
    f"{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/acdd72a7-3385-48ef-bd42-f606fba81ae7"
)
_MSI: Final = "2023-01-31"
_TIMEOUT: Final = 30  # seconds until a missing event is a failure
_NEVER: Final = Retry(statuses=frozenset(), delay=lambda _: 0.0, limit=0)


class Deployer:
    """Signs in as the world's deployer."""

    def __init__(self, world: ArmWorld) -> None:
        self._world = world

    def token(self, scope: str) -> str:
        """A token for ARM."""
        return self._world.cloud.tokens.issue(self._world.deployer, "https://management.azure.com")


@pytest.fixture
def awkward(tmp_path: Path) -> Iterator[ArmWorld]:
    """An Azure with its defaults, but for a limit that a test can reach."""
    built = ArmWorld(
        tmp_path, Faults(arm_requests={"read": (2, 1)}, federated_credential_write=0.3, principal_delay=60)
    )
    yield built
    built.store.close()


class Clients:
    """ARM as azure-native speaks to it, and as a client does that never tries again.

    `waits` are the seconds that the patient one was told to wait; the clock then is that much later, and `meanwhile`
    has happened.
    """

    def __init__(self, world: ArmWorld, base_url: str, ca_file: Path, stack: ExitStack) -> None:
        self.waits: list[float] = []
        self.meanwhile: Callable[[], object] = lambda: None

        def wait(seconds: float) -> None:
            self.waits.append(seconds)
            stack.enter_context(clock.moved_ahead(timedelta(seconds=seconds)))
            self.meanwhile()

        def client(retry: Retry) -> ArmClient:
            signed_in: Any = Deployer(world)
            return ArmClient(RestClient(base_url, "arm", signed_in, ca_file=str(ca_file), retry=retry, sleep=wait))

        self.patient, self.hasty = client(RETRY), client(_NEVER)


@pytest.fixture
def clients(awkward: ArmWorld, serve: Serve, certificates: Certificates) -> Iterator[Clients]:
    with ExitStack() as stack:
        yield Clients(awkward, serve(awkward.arm), certificates.ca_file, stack)


def _trust(client: ArmClient, number: int) -> None:
    properties = {"issuer": "https://issuer.example.com", "subject": str(number), "audiences": ["openshift"]}
    client.put(f"{_IDENTITY}/federatedIdentityCredentials/fed-{number}", _MSI, {"properties": properties})


def test_federated_credentials_side_by_side_cost_twenty_seconds_and_one_after_another_nothing(
    clients: Clients, caplog: pytest.LogCaptureFixture
) -> None:
    clients.patient.put(_IDENTITY, _MSI, {"location": "eastus"})
    together, written = threading.Barrier(2), threading.Event()
    clients.meanwhile = lambda: written.wait(_TIMEOUT)

    def at_once(number: int) -> None:
        together.wait()
        _trust(clients.patient, number)
        written.set()

    with caplog.at_level("INFO", "localcloud.azure.shared.http"), ThreadPoolExecutor() as pool:
        list(pool.map(at_once, (1, 2)))
    [refused] = caplog.messages
    assert refused.endswith(": 409 ConcurrentFederatedIdentityCredentialsWritesForSingleManagedIdentity")
    assert clients.waits == [20.0]

    clients.waits.clear()
    for number in (3, 4):
        _trust(clients.patient, number)
    assert clients.waits == []


def test_reading_fast_is_throttled_and_whoever_waits_as_told_gets_the_answer(clients: Clients) -> None:
    def read(client: ArmClient) -> str:
        return str(client.get(GROUP, "2024-03-01")["id"])

    assert [read(clients.hasty), read(clients.hasty)] == [GROUP, GROUP]
    with pytest.raises(RefusalError, match='Status=429 Code="SubscriptionRequestsThrottled"'):
        read(clients.hasty)
    assert read(clients.patient) == GROUP
    assert clients.waits == [1.0]


@pytest.mark.parametrize(
    ("said", "refusal"),
    [
        ({}, "PrincipalNotFound"),
        # What the SDK of azure-native sends for a program that says nothing.
        ({"principalType": "User"}, "UnmatchedPrincipalType"),
        ({"principalType": "ServicePrincipal"}, None),
    ],
    ids=["nothing", "the SDK's default", "the truth"],
)
def test_a_fresh_principal_is_found_only_by_those_who_say_what_it_is(
    clients: Clients, said: dict[str, str], refusal: str | None
) -> None:
    _refused(lambda: _assign(clients, str(uuid.uuid4()), _principal(clients), said), refusal)


def test_an_assignment_that_outlived_its_principal_blocks_its_name_unless_it_went_first(clients: Clients) -> None:
    name, said = str(uuid.uuid4()), {"principalType": "ServicePrincipal"}
    _assign(clients, name, _principal(clients), said)
    clients.hasty.delete(_IDENTITY, _MSI)
    successor = _principal(clients)

    _refused(lambda: _assign(clients, name, successor, said), "RoleAssignmentUpdateNotPermitted")
    clients.hasty.delete(_assignment(name), "2022-04-01")
    _assign(clients, name, successor, said)


def test_a_secret_that_arm_made_is_not_arms_to_delete(awkward: ArmWorld, clients: Clients) -> None:
    awkward.create_vault()
    clients.hasty.put(f"{VAULT}/secrets/one", "2024-11-01", {"properties": {"value": "v"}})

    _refused(lambda: clients.hasty.delete(f"{VAULT}/secrets/one", "2024-11-01"), "MethodNotAllowed")
    assert awkward.vault("DELETE", "/secrets/one").status_code == 200


def _principal(clients: Clients) -> str:
    """Object id of a managed identity that was not there a moment ago."""
    return str(clients.hasty.put(_IDENTITY, _MSI, {"location": "eastus"})["properties"]["principalId"])


def _assignment(name: str) -> str:
    return f"{GROUP}/providers/Microsoft.Authorization/roleAssignments/{name}"


def _assign(clients: Clients, name: str, principal: str, said: dict[str, str]) -> None:
    properties = {"principalId": principal, "roleDefinitionId": _READER, **said}
    clients.hasty.put(_assignment(name), "2022-04-01", {"properties": properties})


def _refused(attempt: Callable[[], None], code: str | None) -> None:
    if code is None:
        attempt()
        return
    with pytest.raises(RefusalError) as refused:
        attempt()
    assert refused.value.code == code
