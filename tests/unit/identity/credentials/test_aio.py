"""The mounted credential for asynchronous clients."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from azure.core import AsyncPipelineClient
from azure.core.credentials_async import AsyncSupportsTokenInfo, AsyncTokenCredential
from azure.core.exceptions import ClientAuthenticationError
from azure.core.pipeline.policies import AsyncBearerTokenCredentialPolicy
from azure.core.rest import AsyncHttpResponse, HttpRequest
from azure.keyvault.secrets.aio import SecretClient

from identity.credentials import aio
from identity.credentials.aio import AsyncMountedCredential
from identity.credentials.certificate import IssuedCertificate
from identity.credentials.events import EventKind
from identity.credentials.token_credential import MountedCredential
from tests.unit.identity.credentials.watching import PATIENCE, Clients, Events, Renew, x5t
from tests.unit.identity.credentials.world import ARM_SCOPE, Entra

Use = Callable[[Callable[[AsyncMountedCredential], Coroutine[Any, Any, None]]], None]


@pytest.fixture
def use(served: MountedCredential) -> Use:
    """Runs a coroutine with the credential in an event loop of its own, and closes it."""

    def run(coroutine: Callable[[AsyncMountedCredential], Coroutine[Any, Any, None]]) -> None:
        async def within() -> None:
            async with AsyncMountedCredential(served) as credential:
                await coroutine(credential)

        asyncio.run(asyncio.wait_for(within(), PATIENCE))

    return run


async def asked(entra: Entra) -> None:
    """Wait until a token request has reached Entra."""
    assert await asyncio.to_thread(entra.asked.acquire, timeout=PATIENCE)


def test_it_is_what_azure_clients_ask_for(use: Use) -> None:
    async def check(credential: AsyncMountedCredential) -> None:
        assert isinstance(credential, AsyncTokenCredential)
        assert isinstance(credential, AsyncSupportsTokenInfo)

    use(check)


def test_the_pipeline_of_management_clients_takes_it(use: Use, entra: Entra) -> None:
    async def call(credential: AsyncMountedCredential) -> None:
        policy = AsyncBearerTokenCredentialPolicy(credential, ARM_SCOPE, enable_cae=True)
        client = AsyncPipelineClient[HttpRequest, AsyncHttpResponse](entra.url, policies=[policy])
        async with client:
            request = HttpRequest("GET", f"{entra.url}/subscriptions/s")
            answer = await client.send_request(request, connection_verify=str(entra.ca_file))
        assert answer.status_code == 200

    use(call)


def test_a_key_vault_client_takes_it(use: Use, entra: Entra) -> None:
    async def list_secrets(credential: AsyncMountedCredential) -> None:
        options: dict[str, Any] = {"connection_verify": str(entra.ca_file), "verify_challenge_resource": False}
        async with SecretClient(entra.url, credential, **options) as vault:
            assert [secret async for secret in vault.list_properties_of_secrets()] == []

    use(list_secrets)
    assert "https://vault.azure.net/.default" in entra.assertions[-1]["scope"].split()


def test_the_assertion_carries_the_certificate_chain(use: Use, entra: Entra, issued: IssuedCertificate) -> None:
    async def ask(credential: AsyncMountedCredential) -> None:
        await credential.get_token(ARM_SCOPE)

    use(ask)
    assert entra.assertions[0]["header"]["x5c"] == ["".join(issued.certificate_pem.splitlines()[1:-1])]


def test_many_tasks_ask_entra_once(use: Use, entra: Entra) -> None:
    async def ask(credential: AsyncMountedCredential) -> None:
        tokens = await asyncio.gather(*(credential.get_token(ARM_SCOPE) for _ in range(40)))
        info = await credential.get_token_info(ARM_SCOPE)
        assert {token.token for token in tokens} == {info.token}

    use(ask)
    assert entra.attempts == 1


def test_tasks_that_wait_for_a_token_leave_the_loops_own_threads_free(use: Use, entra: Entra) -> None:
    async def ask(credential: AsyncMountedCredential) -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(2))
        entra.answers.clear()
        waiting = [asyncio.create_task(credential.get_token(ARM_SCOPE)) for _ in range(10)]
        await asked(entra)
        assert await asyncio.to_thread(lambda: "free") == "free"
        entra.answers.set()
        await asyncio.gather(*waiting)

    use(ask)


def test_a_task_that_is_cancelled_leaves_the_queue(use: Use, entra: Entra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aio, "_THREADS", 1)

    async def ask(credential: AsyncMountedCredential) -> None:
        entra.answers.clear()
        first = asyncio.create_task(credential.get_token(ARM_SCOPE))
        await asked(entra)
        second = asyncio.create_task(credential.get_token("https://vault.azure.net/.default"))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        entra.answers.set()
        await first

    use(ask)
    assert entra.attempts == 1


def test_a_task_that_is_cancelled_leaves_the_request_to_the_others(use: Use, entra: Entra) -> None:
    async def ask(credential: AsyncMountedCredential) -> None:
        entra.answers.clear()
        first, second = (asyncio.create_task(credential.get_token(ARM_SCOPE)) for _ in range(2))
        await asked(entra)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        entra.answers.set()
        assert (await second).token.startswith("token-")

    use(ask)
    assert entra.attempts == 1


def test_tasks_share_the_failure_of_the_request_that_they_wait_for(use: Use, entra: Entra) -> None:
    async def ask(credential: AsyncMountedCredential) -> None:
        entra.drops = True
        entra.answers.clear()
        scopes = [ARM_SCOPE, "https://vault.azure.net/.default"] * 8
        waiting = [asyncio.create_task(credential.get_token(scope)) for scope in scopes]
        await asked(entra)
        await asked(entra)
        entra.answers.set()
        failures = await asyncio.gather(*waiting, return_exceptions=True)
        assert {type(failure) for failure in failures} == {ClientAuthenticationError}

    use(ask)
    assert entra.attempts == 2, "one for each scope, both at the same time"


def test_a_refusal_reaches_the_caller_and_later_ones_are_served(
    use: Use, entra: Entra, issued: IssuedCertificate
) -> None:
    async def ask(credential: AsyncMountedCredential) -> None:
        entra.registered.clear()
        with pytest.raises(ClientAuthenticationError, match="AADSTS700027"):
            await credential.get_token(ARM_SCOPE)
        entra.registered.append(issued.certificate_pem)
        assert (await credential.get_token(ARM_SCOPE)).token.startswith("token-")

    use(ask)


def test_a_swap_reaches_it(use: Use, entra: Entra, following: IssuedCertificate, events: Events, renew: Renew) -> None:
    async def swap(credential: AsyncMountedCredential) -> None:
        await credential.get_token(ARM_SCOPE)
        renew()
        await asyncio.to_thread(events.until, EventKind.SERVED)
        await credential.get_token(ARM_SCOPE)

    use(swap)
    assert entra.attempts == 2
    assert entra.assertions[-1]["header"]["x5t"] == x5t(following)


def test_event_loops_may_share_it(served: MountedCredential, entra: Entra) -> None:
    credential = AsyncMountedCredential(served)
    for _ in range(2):
        asyncio.run(credential.get_token(ARM_SCOPE))
    asyncio.run(credential.close())
    assert entra.attempts == 1


def test_close_ends_its_threads_and_the_clients(served: MountedCredential, clients: Clients) -> None:
    credential = AsyncMountedCredential(served)

    async def ask_and_close() -> None:
        await credential.get_token(ARM_SCOPE)
        assert threads() == 2
        await credential.close()
        await credential.close()

    asyncio.run(ask_and_close())
    assert threads() == 0
    assert clients.open == 0


def threads() -> int:
    """How many threads the credential holds."""
    return sum(thread.name.startswith(("watch ", "tokens ")) for thread in threading.enumerate())
