"""The mounted credential for the `aio` clients of the Azure SDK."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

from azure.core.credentials import AccessToken, AccessTokenInfo, TokenRequestOptions

from identity.credentials.shared_client import TokenRequest
from identity.credentials.token_credential import MountedCredential

# One for each token that is requested at the same time; tasks that want the same token share it.
_THREADS: Final = 8


class _Shared:
    """A request that is queued or in progress, and how many tasks wait for it."""

    def __init__(self, future: Future[AccessTokenInfo]) -> None:
        self.future = future
        self.waiting = 0


class AsyncMountedCredential:
    """Requests tokens from `credential` in its own threads, which close with it. Tasks and event loops may share it.

    azure-identity's `aio.CertificateCredential` does not send the certificate chain (x5c), which the upstream loader
    does and subject-name/issuer sign-in needs. With `asyncio.to_thread` every task that waits for one slow request
    would hold a thread of the loop's executor, which also resolves names. Here the tasks that want the same token share
    one thread, and a cancelled task leaves the queue.
    """

    def __init__(self, credential: MountedCredential) -> None:
        self._credential = credential
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix=f"tokens {credential.path.name}")
        self._shared: dict[TokenRequest, _Shared] = {}
        # Event loops run in several threads; `submit` may call back in this one.
        self._sharing = threading.RLock()

    async def get_token(
        self,
        *scopes: str,
        claims: str | None = None,
        tenant_id: str | None = None,
        enable_cae: bool = False,
        **kwargs: Any,
    ) -> AccessToken:
        """As `MountedCredential.get_token`."""
        token = await self._ask(TokenRequest(scopes, claims, tenant_id, enable_cae))
        return AccessToken(token.token, token.expires_on)

    async def get_token_info(self, *scopes: str, options: TokenRequestOptions | None = None) -> AccessTokenInfo:
        """As `MountedCredential.get_token_info`."""
        return await self._ask(TokenRequest.with_options(scopes, options))

    async def close(self) -> None:
        """Close `credential` and end the threads, after the requests in the queue."""
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

    async def _ask(self, request: TokenRequest) -> AccessTokenInfo:
        shared = self._join(request)
        try:
            # Shielded, so that a task that is cancelled does not take the request from the others.
            return await asyncio.shield(asyncio.wrap_future(shared.future))
        finally:
            with self._sharing:
                shared.waiting -= 1
                if shared.waiting == 0:
                    shared.future.cancel()  # works only while it is queued

    def _join(self, request: TokenRequest) -> _Shared:
        """The request for that token, submitted unless there is one."""
        with self._sharing:
            shared = self._shared.get(request)
            if shared is None or shared.future.done():
                # The context carries the tracing span, and that a chain of credentials is at work.
                ask = partial(self._credential.get_token_info, *request.scopes, options=request.options)
                shared = self._shared[request] = _Shared(self._threads.submit(copy_context().run, ask))
                shared.future.add_done_callback(partial(self._forget, request))
            shared.waiting += 1
            return shared

    def _forget(self, request: TokenRequest, future: Future[AccessTokenInfo]) -> None:
        with self._sharing:
            shared = self._shared.get(request)
            if shared is not None and shared.future is future:
                del self._shared[request]

    def _close(self) -> None:
        self._threads.shutdown()
        self._credential.close()
