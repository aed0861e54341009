"""The mounted credential for the `aio` clients of the Azure SDK."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from types import TracebackType
from typing import Any, Self, TypeVar

from azure.core.credentials import AccessToken, AccessTokenInfo, TokenRequestOptions

from identity.credentials.token_credential import MountedCredential

_Token = TypeVar("_Token")


class AsyncMountedCredential:
    """`credential`, asked in a thread of its own, which closes with this. Tasks, and event loops, may share it.

    Not azure-identity's `aio.CertificateCredential`: it does not send the certificate chain (x5c), which the upstream
    loader does and subject-name/issuer sign-in needs. Not `asyncio.to_thread`: everybody who waits for one slow token
    request would hold a thread of the loop's executor, where names are looked up, too. With one thread the requests
    queue up without that, and a task that is cancelled leaves the queue.
    """

    def __init__(self, credential: MountedCredential) -> None:
        self._credential = credential
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"tokens {credential.path.name}")

    async def get_token(
        self,
        *scopes: str,
        claims: str | None = None,
        tenant_id: str | None = None,
        enable_cae: bool = False,
        **kwargs: Any,
    ) -> AccessToken:
        """As `MountedCredential.get_token`."""
        return await self._ask(
            lambda: self._credential.get_token(*scopes, claims=claims, tenant_id=tenant_id, enable_cae=enable_cae)
        )

    async def get_token_info(self, *scopes: str, options: TokenRequestOptions | None = None) -> AccessTokenInfo:
        """As `MountedCredential.get_token_info`."""
        return await self._ask(lambda: self._credential.get_token_info(*scopes, options=options))

    async def close(self) -> None:
        """Close `credential` and end the thread, after the requests in the queue."""
        await asyncio.to_thread(self._close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        await self.close()

    async def _ask(self, get: Callable[[], _Token]) -> _Token:
        # The context carries the tracing span, and that a chain of credentials is at work.
        return await asyncio.get_running_loop().run_in_executor(self._thread, copy_context().run, get)

    def _close(self) -> None:
        self._thread.shutdown()
        self._credential.close()
