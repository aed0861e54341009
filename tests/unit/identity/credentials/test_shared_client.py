"""Threads that want the same token share one request and its failure; those that want another one do not wait."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from azure.core.credentials import AccessTokenInfo
from azure.core.exceptions import ClientAuthenticationError, ServiceRequestError
from azure.identity import CertificateCredential

from identity.credentials.events import EventKind
from identity.credentials.mounted_file import MountedFile
from identity.credentials.rotation import REMEMBERED, Rotation, SharedClient, TokenRequest
from identity.credentials.sign_in import refusal
from tests.unit.identity.credentials.watching import ARM, PATIENCE, FakeClock, Scene, connect
from tests.unit.identity.credentials.world import ARM_SCOPE

OTHERS = {
    "scope": TokenRequest(("https://vault.azure.net/.default",)),
    "tenant": TokenRequest(ARM.scopes, tenant_id="6f2c1e7a-0000-4000-8000-00000000cccc"),
    "claims": TokenRequest(ARM.scopes, claims='{"access_token": {"nbf": {"value": "1"}}}'),
    "CAE": TokenRequest(ARM.scopes, enable_cae=True),
}
TOKEN = AccessTokenInfo("token", 0)


class HeldClient(CertificateCredential):
    """Answers each request when the test does: `answers` are taken in order, `asked` counts."""

    def __init__(self) -> None:
        self.asked: list[tuple[tuple[str, ...], Any]] = []
        self.reached = threading.Semaphore(0)
        self.answers: list[Future[AccessTokenInfo]] = []
        self.closed = 0

    def get_token_info(self, *scopes: str, options: Any = None) -> AccessTokenInfo:
        answer = Future[AccessTokenInfo]()
        self.asked.append((scopes, options))
        self.answers.append(answer)
        self.reached.release()
        return answer.result(PATIENCE)

    def close(self) -> None:
        self.closed += 1

    def wait(self) -> None:
        """Until one more request has reached it."""
        assert self.reached.acquire(timeout=PATIENCE)


@pytest.fixture
def held() -> HeldClient:
    return HeldClient()


@pytest.fixture
def shared(held: HeldClient, clock: FakeClock) -> SharedClient:
    return SharedClient(held, clock)


def asking(pool: ThreadPoolExecutor, client: SharedClient, request: TokenRequest = ARM) -> Future[Any]:
    return pool.submit(client.token, request)


def in_line(client: SharedClient, count: int) -> None:
    """Return once so many threads wait for another one's request."""
    while True:
        with client._landed:
            if client._waiting >= count:
                return


@pytest.mark.parametrize("fails", [True, False])
def test_eight_threads_share_one_request_with_its_failure_or_token(
    held: HeldClient, shared: SharedClient, fails: bool
) -> None:
    with ThreadPoolExecutor(8) as pool:
        first = asking(pool, shared)
        held.wait()
        others = [asking(pool, shared) for _ in range(7)]
        in_line(shared, 7)
        assert len(held.asked) == 1
        if not fails:
            held.answers[0].set_result(TOKEN)
            assert [future.result(PATIENCE) for future in (first, *others)] == [TOKEN] * 8
            return
        held.answers[0].set_exception(ClientAuthenticationError("nothing answers"))
        failures = [future.exception(PATIENCE) for future in (first, *others)]
    assert [str(failure) for failure in failures] == ["nothing answers"] * 8
    assert len({id(failure) for failure in failures}) == 8, "each thread has an exception of its own"
    assert all(isinstance(failure, ClientAuthenticationError) for failure in failures)


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_another_token_is_asked_for_meanwhile(held: HeldClient, shared: SharedClient, other: TokenRequest) -> None:
    with ThreadPoolExecutor(2) as pool:
        first = asking(pool, shared)
        held.wait()
        second = asking(pool, shared, other)
        held.wait()
        held.answers[1].set_result(TOKEN)
        assert second.result(PATIENCE) is TOKEN
        held.answers[0].set_exception(ServiceRequestError("nothing answers"))
        assert isinstance(first.exception(PATIENCE), ServiceRequestError)
    assert [options for _, options in held.asked] == [ARM.options, other.options]


class Refusing(HeldClient):
    """Fails at once, with `error`."""

    error: Exception

    def get_token_info(self, *scopes: str, options: Any = None) -> AccessTokenInfo:
        self.asked.append((scopes, options))
        raise self.error


@pytest.fixture
def refusing() -> Refusing:
    client = Refusing()
    client.error = ClientAuthenticationError("Authentication failed: nothing answers")
    return client


def test_that_nothing_answered_is_remembered_for_a_second(refusing: Refusing, clock: FakeClock) -> None:
    shared = SharedClient(refusing, clock)
    for _ in range(5):
        with pytest.raises(ClientAuthenticationError, match="nothing answers"):
            shared.token(ARM)
    assert len(refusing.asked) == 1
    for moved, asked in ((REMEMBERED, 2), (-3600 * REMEMBERED, 3)):
        clock.now += moved
        with pytest.raises(ClientAuthenticationError):
            shared.token(ARM)
        assert len(refusing.asked) == asked, "a clock that is set back does not prolong that"


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_only_for_the_same_request(refusing: Refusing, clock: FakeClock, other: TokenRequest) -> None:
    shared = SharedClient(refusing, clock)
    for request in (ARM, other, ARM, other):
        with pytest.raises(ClientAuthenticationError):
            shared.token(request)
    assert len(refusing.asked) == 2


@pytest.mark.parametrize("error", [ClientAuthenticationError("AADSTS700027: unknown."), ValueError("no scope")])
def test_an_answer_is_not_remembered(refusing: Refusing, clock: FakeClock, error: Exception) -> None:
    shared, refusing.error = SharedClient(refusing, clock), error
    for _ in range(3):
        with pytest.raises(type(error)):
            shared.token(ARM)
    assert len(refusing.asked) == 3


def test_what_is_remembered_has_the_reason_and_no_growing_trace(refusing: Refusing, clock: FakeClock) -> None:
    shared = SharedClient(refusing, clock)
    refusing.error.__cause__ = OSError("no route")
    depths = set()
    for _ in range(5):
        with pytest.raises(ClientAuthenticationError) as caught:
            shared.token(ARM)
        assert "nothing answers" in str(refusal(caught.value))
        depths.add(len(caught.traceback))
    assert len(depths) <= 2, "the first one, and those after it"


def test_an_interrupted_request_is_made_again_by_one_who_waits(held: HeldClient, shared: SharedClient) -> None:
    with ThreadPoolExecutor(2) as pool:
        first = asking(pool, shared)
        held.wait()
        second = asking(pool, shared)
        in_line(shared, 1)
        held.answers[0].set_exception(KeyboardInterrupt())
        held.wait()
        held.answers[1].set_result(TOKEN)
        assert second.result(PATIENCE) is TOKEN
        assert isinstance(first.exception(PATIENCE), KeyboardInterrupt)


def test_a_retired_client_closes_after_its_last_request(held: HeldClient, shared: SharedClient) -> None:
    with ThreadPoolExecutor(1) as pool:
        first = asking(pool, shared)
        held.wait()
        shared.retire()
        assert held.closed == 0
        assert shared.token(OTHERS["scope"]) is None
        assert held.closed == 0
        held.answers[0].set_result(TOKEN)
        assert first.result(PATIENCE) is TOKEN
    assert held.closed == 1
    assert shared.token(ARM) is None


def test_close_waits_for_the_requests_under_way(held: HeldClient, shared: SharedClient) -> None:
    with ThreadPoolExecutor(2) as pool:
        first = asking(pool, shared)
        held.wait()
        closing = pool.submit(shared.close)
        in_line(shared, 1)
        assert held.closed == 0
        held.answers[0].set_result(TOKEN)
        closing.result(PATIENCE)
        first.result(PATIENCE)
    assert held.closed == 1


def test_a_later_credential_does_not_inherit_the_failure(rotation: Rotation, scene: Scene) -> None:
    scene.entra.drops = True
    with pytest.raises(ClientAuthenticationError):
        rotation.token(ARM)
    scene.entra.drops = False
    scene.renew()
    rotation.poll()
    assert rotation.token(ARM).token.startswith("token-")


def test_a_swap_is_not_held_up_by_a_request_that_gets_no_answer(scene: Scene) -> None:
    held = HeldClient()
    clients: list[Callable[[], CertificateCredential]] = [lambda: held]
    scene.deliver(scene.issued)
    rotation = Rotation(
        MountedFile(scene.mount.path, scene.clock),
        lambda credential: clients.pop()() if clients else connect(credential),
        scope=ARM_SCOPE,
        clock=scene.clock,
        on_event=scene.events,
    )
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(rotation.token, ARM)
        held.wait()
        scene.renew()
        rotation.poll()
        assert scene.events.rest()[-1] is EventKind.SERVED
        assert rotation.token(ARM).token.startswith("token-")
        assert held.closed == 0
        held.answers[0].set_exception(ServiceRequestError("nothing answers"))
        assert isinstance(waiting.exception(PATIENCE), ServiceRequestError)
    assert held.closed == 1
    rotation.close()
