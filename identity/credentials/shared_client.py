"""A client of Entra ID that threads share: one request for each token, and one failure for all callers that want it.

azure-identity sends a request for each caller. Without Entra ID each of them would wait for its own timeout.
"""

from __future__ import annotations

import copy
import logging
import threading
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypeAlias

from azure.core.credentials import AccessTokenInfo, TokenRequestOptions
from azure.core.exceptions import AzureError
from azure.identity import CertificateCredential

from identity.credentials import events
from identity.credentials.rfc3339 import Clock
from identity.credentials.sign_in import refusal

_LOG: Final = logging.getLogger(__name__)

# How long a missing answer of Entra ID is remembered: long enough for callers that queued up meanwhile, too short to
# matter to one that tries again.
REMEMBERED: Final = timedelta(seconds=1)


class TokenRequest(NamedTuple):
    """What a caller requests, with azure-core's options. Equal requests share one token.

    It is a tuple, because one is made for every token.
    """

    scopes: tuple[str, ...]
    claims: str | None = None
    tenant_id: str | None = None
    enable_cae: bool = False

    @classmethod
    def with_options(cls, scopes: tuple[str, ...], options: TokenRequestOptions | None) -> TokenRequest:
        """The request in the arguments of azure-core's `get_token_info`; options of another name have no effect."""
        known = options or {}
        return cls(scopes, known.get("claims"), known.get("tenant_id"), known.get("enable_cae", False))

    @property
    def options(self) -> TokenRequestOptions:
        """The options, as azure-core's `get_token_info` takes them."""
        _, claims, tenant_id, enable_cae = self
        options: TokenRequestOptions = {"enable_cae": enable_cae}
        if claims:
            options["claims"] = claims
        if tenant_id:
            options["tenant_id"] = tenant_id
        return options

    def without_claims(self) -> TokenRequest:
        """The request without the claims, which answer one challenge of one service."""
        return self._replace(claims=None)


# A request in progress: empty until it has its token or its error. It stays empty if its thread was interrupted.
_Flight: TypeAlias = list[AccessTokenInfo | Exception]


class SharedClient:
    """`client`, closed by `close` or, after the last request in progress, by `retire`.

    Requests for different tokens run in parallel: azure-identity keeps the state of a request in its thread, and MSAL
    locks its token cache (docs/decisions/0024-failures-are-shared.md).
    """

    def __init__(self, client: CertificateCredential, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        # Changed without a lock, because every token passes here: each step is atomic, and a thread that waits or
        # closes announces it first and checks afterwards.
        self._flights: dict[TokenRequest, _Flight] = {}
        self._landed = threading.Condition()
        self._waiting = 0
        self._failures: dict[TokenRequest, tuple[datetime, Exception]] = {}
        self._is_retired = False

    def token(self, request: TokenRequest) -> AccessTokenInfo | None:
        """A token from the cache or from Entra ID; None if the client was retired before. Raises AzureError.

        A caller that requests the same while a request is in progress shares its token or its failure. A caller within
        `REMEMBERED` after Entra ID gave no answer gets that failure, too.
        """
        mine: _Flight = []
        while (flight := self._flights.setdefault(request, mine)) is not mine:
            self._wait(request, flight)
            if flight:
                return _outcome(flight[0])
        try:
            if self._is_retired:
                return None
            if self._failures:
                self._raise_remembered(request)
            token = self._client.get_token_info(*request.scopes, options=request.options)
            mine.append(token)
            return token
        except Exception as error:
            mine.append(error)
            self._remember(request, error)
            raise
        finally:
            del self._flights[request]
            if self._waiting:
                with self._landed:
                    self._landed.notify_all()
            if self._is_retired and not self._flights:
                close(self._client)

    def retire(self) -> None:
        """Take no more requests, and close the client once none is in progress."""
        self._is_retired = True
        if not self._flights:
            close(self._client)

    def close(self) -> None:
        """Close the client after the requests in progress."""
        for request, flight in list(self._flights.items()):
            self._wait(request, flight)
        close(self._client)

    def _wait(self, request: TokenRequest, flight: _Flight) -> None:
        """Wait until `flight` has ended."""
        with self._landed:
            self._waiting += 1
            try:
                self._landed.wait_for(lambda: self._flights.get(request) is not flight)
            finally:
                self._waiting -= 1

    def _remember(self, request: TokenRequest, error: Exception) -> None:
        # An answer is not remembered: the next replica of Entra ID may give another one.
        if isinstance(error, AzureError) and request not in self._failures and refusal(error).code is None:
            self._failures[request] = self._clock(), error

    def _raise_remembered(self, request: TokenRequest) -> None:
        now = self._clock()
        for known, (at, _) in list(self._failures.items()):
            # The clock may have been set back.
            if not timedelta(0) <= now - at < REMEMBERED:
                self._failures.pop(known, None)
        if failure := self._failures.get(request):
            _outcome(failure[1])


def _outcome(landed: AccessTokenInfo | Exception) -> AccessTokenInfo:
    """The token of another thread's request; raises its error."""
    if isinstance(landed, Exception):
        raise _again(landed) from landed
    return landed


def close(client: CertificateCredential) -> None:
    """Close the connections of an unused client. A failure is only logged."""
    try:
        client.close()
    except Exception as error:
        _LOG.error("a client of Entra ID was not closed: %s", events.unforeseen(error))


def _again(error: Exception) -> Exception:
    """The same failure for another thread: an exception that is raised twice collects the traces of both."""
    try:
        return copy.copy(error)
    except Exception:  # it is made of other arguments than it keeps
        return error
