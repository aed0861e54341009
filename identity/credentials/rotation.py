"""Which credential is served. A later one replaces it only after it got a token itself.

Entra ID is replicated and slow to learn of a certificate. A credential that was mounted too early is a candidate: the
served one stays, the candidate is tried again after growing pauses, and the file may bring another candidate or
withdraw it. The client that proved a candidate serves from then on, so its token is in the cache already.
"""

from __future__ import annotations

import copy
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypeAlias

from azure.core.credentials import AccessTokenInfo, TokenRequestOptions
from azure.core.exceptions import AzureError
from azure.identity import CertificateCredential, CredentialUnavailableError

from identity.credentials import events
from identity.credentials.backoff import Backoff
from identity.credentials.document import Credential, InvalidCredentialError
from identity.credentials.events import Event, EventKind
from identity.credentials.mounted_file import MountedFile, check_expiry
from identity.credentials.rfc3339 import Clock
from identity.credentials.sign_in import refusal

_CLIENT_LOG: Final = logging.getLogger(__name__)

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
        _CLIENT_LOG.error("a client of Entra ID was not closed: %s", events.unforeseen(error))


def _again(error: Exception) -> Exception:
    """The same failure for another thread: an exception that is raised twice collects the traces of both."""
    try:
        return copy.copy(error)
    except Exception:  # it is made of other arguments than it keeps
        return error


_LOG: Final = logging.getLogger(__name__)

# Pauses between the attempts of a candidate, in seconds. The short limit holds while the served credential cannot sign
# in itself.
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 60.0
_LONGEST_PAUSE_IN_NEED: Final = timedelta(seconds=5)


@dataclass
class _Candidate:
    credential: Credential
    since: datetime
    """When it was read or last tried; it is due a `pause` later."""
    pause: timedelta = timedelta(0)
    backoff: Backoff = field(default_factory=lambda: Backoff(_FIRST_PAUSE, _LONGEST_PAUSE))
    reported: tuple[EventKind, str | None] | None = None
    """How its last attempt ended: the event, and the code of a refusal."""


class Rotation:
    """The served credential of `file` with its client, and a candidate while there is one.

    `connect` makes a client. A candidate is tried with `scope` until a token was requested. `on_event` must not call
    `look` or `reload`; its exceptions are logged. The first credential is served untried; reading it raises as
    `MountedFile.read` does.
    """

    def __init__(
        self,
        file: MountedFile,
        connect: Callable[[Credential], CertificateCredential],
        *,
        scope: str,
        clock: Clock,
        on_event: Callable[[Event], object],
    ) -> None:
        self._file = file
        self._connect = connect
        self._clock = clock
        self._on_event = on_event
        self._looking = threading.Lock()
        self._last_request = TokenRequest((scope,))
        self._is_failing = False
        self._candidate: _Candidate | None = None
        self._problem: str | None = None
        self._served = file.read()
        self._client = SharedClient(connect(self._served), clock)
        self._emit(EventKind.ACCEPTED, self._served)
        self._emit(EventKind.SERVED, self._served)

    @property
    def served(self) -> Credential:
        """The credential that tokens are asked with."""
        return self._served

    @property
    def has_candidate(self) -> bool:
        """Whether a later credential waits to be tried again."""
        return self._candidate is not None

    def token(self, request: TokenRequest) -> AccessTokenInfo:
        """A token from the served credential's cache or from Entra ID; raises ClientAuthenticationError."""
        while True:
            client = self._client
            try:
                token = client.token(request)
            except AzureError:
                if client is self._client:
                    self._is_failing = True
                raise
            if token is not None:  # else a later credential took its place this moment
                self._is_failing = False
                # Only what was granted: a scope that nobody grants would keep every candidate out.
                self._last_request = request
                return token

    def poll(self) -> None:
        """Read the file if it is due, try the candidate if its pause is over; failures are reported, not raised."""
        with self._looking:
            try:
                if self._file.is_due:
                    self._read()
                if self._candidate and self._clock() >= self._candidate.since + self._pause(self._candidate):
                    self._try(self._candidate)
            except Exception as error:
                self._refuse(_unforeseen(error))

    def reload(self) -> bool:
        """Read the file and try the candidate now; returns whether another credential is served from then on."""
        with self._looking:
            before = self._served
            self._read()
            if self._candidate:
                self._try(self._candidate)
            return self._served is not before

    def close(self) -> None:
        """Close the connections to Entra ID, after the requests in progress."""
        with self._looking:
            self._client.close()

    def _read(self) -> None:
        try:
            credential = self._file.read()
        except (CredentialUnavailableError, InvalidCredentialError) as error:
            self._refuse(str(error))
            return
        except Exception as error:
            self._refuse(_unforeseen(error))
            return
        self._problem = None
        if credential.not_before <= self._served.not_before:
            self._candidate = None
            self._emit(EventKind.UNCHANGED, credential)
        else:
            self._candidate = _Candidate(credential, self._clock())
            self._emit(EventKind.ACCEPTED, credential)

    def _try(self, candidate: _Candidate) -> None:
        try:
            check_expiry(candidate.credential, self._clock())
        except InvalidCredentialError as error:
            self._candidate = None
            self._refuse(str(error))
            return
        # A client for each attempt: MSAL remembers some of Entra's refusals for a minute.
        request = self._last_request.without_claims()
        client: CertificateCredential | None = None
        try:
            client = self._connect(candidate.credential)
            client.get_token_info(*request.scopes, options=request.options)
        except Exception as error:
            if client is not None:
                close(client)
            if isinstance(error, AzureError):
                reason = refusal(error)
                # Compared by its code, because the network's messages differ each time.
                self._retry_later(candidate, EventKind.UNPROVEN, reason.code, str(reason))
            else:
                self._retry_later(candidate, EventKind.REFUSED, type(error).__name__, _unforeseen(error))
        else:
            self._serve(candidate.credential, SharedClient(client, self._clock))

    def _serve(self, credential: Credential, client: SharedClient) -> None:
        before, self._client = self._client, client
        self._served = credential
        self._is_failing = False
        self._candidate = None
        before.retire()
        self._emit(EventKind.SERVED, credential)

    def _retry_later(self, candidate: _Candidate, kind: EventKind, code: str | None, problem: str) -> None:
        is_news, candidate.reported = candidate.reported != (kind, code), (kind, code)
        candidate.since = self._clock()
        candidate.pause = timedelta(seconds=candidate.backoff.next())
        self._emit(kind, candidate.credential, problem, is_news=is_news)

    def _pause(self, candidate: _Candidate) -> timedelta:
        is_in_need = self._is_failing or self._served.expires <= self._clock()
        return min(candidate.pause, _LONGEST_PAUSE_IN_NEED) if is_in_need else candidate.pause

    def _refuse(self, problem: str) -> None:
        is_news, self._problem = problem != self._problem, problem
        self._emit(EventKind.REFUSED, None, problem, is_news=is_news)

    def _emit(
        self, kind: EventKind, credential: Credential | None, problem: str | None = None, *, is_news: bool = True
    ) -> None:
        """Report an event, then log it unless it is the same problem again."""
        event = Event(kind, credential, problem, is_pending=self._candidate is not None)
        try:
            self._on_event(event)
        except Exception as error:
            _LOG.error("on_event failed for %s: %s", kind.value, events.unforeseen(error))
        if is_news:
            events.log(event, self._file.path, self._served)


def _unforeseen(error: Exception) -> str:
    return (
        f"found something that this version of the loader did not foresee ({events.unforeseen(error)}); "
        "accepted: a credential document as in docs/reference/loader.md; the credential that is served goes on: "
        "report this as a defect, and issue the credential again"
    )
