"""A login's token: from the cache, from a credential, or from a person.

A person signs in once, by MSAL's device code flow; refresh tokens renew the sign-in. `azure.identity` has the flow as
well (`DeviceCodeCredential`), but keeps its session where no other process finds it. MSAL is imported when it signs in:
a kept token does not need it.

The cache allows one sign-in at a time for each login on this machine. Each login has a file, named by a digest of
everything that identifies it and its credential, so another certificate or secret never gets an earlier one's token.
Files are 0600 in a directory 0700; a lock file beside each makes processes that start together (kubectl, the engine's
plugins, Helm) wait for one request instead of sending one each. MSAL's own cache is a file there.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shlex
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

from identity.aks.login import AKS_CLIENT_APP_ID, Login
from identity.aks.sign_in import explained, token_source
from identity.azure.errors import LoginRefusedError, PersonNeededError, SignInRefusedError
from identity.credentials.rfc3339 import Clock, utc_now
from identity.login_kinds import LoginKind
from identity.private_files import write_private

CACHE_VARIABLE: Final = "IDSTACK_TOKEN_CACHE"
# A token near its end is useless for a long request. Clients ask again at the time that the answer names.
_MARGIN: Final = timedelta(minutes=5)


@dataclass(frozen=True)
class Token:
    """A bearer token and, in UTC, its last second and the time from which a new one is requested."""

    value: str = field(repr=False)
    expires: datetime
    renew_at: datetime

    @classmethod
    def issued(cls, value: str, *, now: datetime, expires_on: int) -> Token:
        """A new token; one with a short lifetime is renewed half-way."""
        expires = datetime.fromtimestamp(expires_on, UTC)
        return cls(value, expires, expires - min(_MARGIN, (expires - now) / 2))


def directory(environ: Mapping[str, str] = os.environ) -> Path:
    """Where tokens are kept unless a directory is given: IDSTACK_TOKEN_CACHE, or below XDG_CACHE_HOME or `~/.cache`."""
    if own := environ.get(CACHE_VARIABLE):
        return Path(own)
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "idstack" / "tokens"


def key_of(login: Login, fingerprint: str) -> str:
    """The name of a login's files. `fingerprint` identifies its credential."""
    document = json.dumps({**asdict(login), "fingerprint": fingerprint}, sort_keys=True, default=str)
    return hashlib.sha256(document.encode()).hexdigest()


class TokenCache:
    """Tokens in `root`, which is created when needed.

    Raises LoginRefusedError if that fails, and for a directory that others may use.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def token(self, key: str, now: Callable[[], datetime], request: Callable[[], Token]) -> Token:
        """The token under `key`, or a new one from `request` if there is no usable one."""
        with self.locked(key):
            token = self._good(key, now)
            if token is None:
                token = request()
                dates = {"expires": token.expires.isoformat(), "renewAt": token.renew_at.isoformat()}
                self.write(f"{key}.token", json.dumps({"token": token.value, **dates}))
            return token

    def read(self, name: str) -> str | None:
        """The content of a file, None if there is none; a symbolic link does not count."""
        try:
            descriptor = os.open(self._root / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ELOOP):
                return None
            raise
        with os.fdopen(descriptor, encoding="utf-8") as file:
            return file.read()

    def write(self, name: str, text: str) -> None:
        """Replace a file in one step, 0600."""
        write_private(self._root / name, text)

    def _good(self, key: str, now: Callable[[], datetime]) -> Token | None:
        try:
            document = json.loads(self.read(f"{key}.token") or "null")
            dates = (datetime.fromisoformat(document[name]) for name in ("expires", "renewAt"))
            token = Token(document["token"], *dates)
        except (ValueError, TypeError, KeyError):
            return None  # there is none, or a partial file, after a power failure
        return None if token.renew_at <= now() else token

    @contextmanager
    def locked(self, key: str) -> Iterator[None]:
        """Hold the key's lock, for one sign-in at a time."""
        try:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._require_private()
            lock = os.open(self._root / f"{key}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            reason = "a link stands there" if error.errno == errno.ELOOP else error.strerror
            raise LoginRefusedError(
                f'tokens cannot be kept in "{self._root}" ({reason}); name another directory with --cache-dir'
            ) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _require_private(self) -> None:
        """A user who may write into the directory could choose which token is used, and which file a lock opens."""
        status = self._root.stat()
        if status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
            raise LoginRefusedError(
                f'tokens are not kept in "{self._root}": it must be a directory of this user with mode 0700 '
                f"(found: user {status.st_uid}, mode {stat.S_IMODE(status.st_mode):04o}); `chmod 700 "
                f"{shlex.quote(str(self._root))}` if it is yours, or name another directory with --cache-dir"
            )


_HTTP_TIMEOUT: Final = 15.0
_NOT_SIGNED_IN: Final = "nobody signed in yet"
_AGAIN: Final = "run the same command again for a new code"
# RFC 8628, section 3.5, and Entra ID's own. MSAL returns the last answer once the code has ended.
_FINAL: Final[Mapping[str, str]] = {
    "authorization_declined": "the sign-in was declined in the browser; " + _AGAIN,
    "access_denied": "the sign-in was declined in the browser; " + _AGAIN,
    "bad_verification_code": "Entra ID does not know the device code; " + _AGAIN,
    "expired_token": "nobody entered the code in time; " + _AGAIN,
    "authorization_pending": "nobody entered the code in time; " + _AGAIN,
    "slow_down": "nobody entered the code in time; " + _AGAIN,
}


def token(
    login: Login,
    cache: TokenCache,
    environ: Mapping[str, str],
    *,
    show: Callable[[str], object] | None = None,
    clock: Clock = utc_now,
) -> Token:
    """A valid token; one sign-in at a time for each login on this machine.

    `show` displays to a person what to do; without it nobody is asked. Raises AccessError.
    """
    if login.kind is LoginKind.DEVICE_CODE:
        return _session_token(login, cache, key_of(login, ""), show=show, clock=clock)

    source = token_source(login, environ, clock)

    def request() -> Token:
        answer = source.request()
        return Token.issued(answer.token, now=clock(), expires_on=answer.expires_on)

    if source.fingerprint is None:
        with cache.locked(key_of(login, "")):
            return request()
    return cache.token(key_of(login, source.fingerprint), clock, request)


def _session_token(
    login: Login, cache: TokenCache, key: str, *, show: Callable[[str], object] | None, clock: Clock
) -> Token:
    """The session's token: cached, renewed, or from a sign-in of the person."""

    def request() -> Token:
        kept = cache.read(f"{key}.session")
        if kept is None and show is None:
            raise _person_needed(_NOT_SIGNED_IN)
        import msal

        session = msal.SerializableTokenCache()
        with suppress(ValueError):  # a partial file, after a power failure
            session.deserialize(kept)
        try:
            answer = _answer(_client(login, session), login.scope, show)
        except OSError as error:  # of requests
            reason = f"{login.authority_host} does not answer as Entra ID does ({error})"
            raise SignInRefusedError(f"device code sign-in: {reason}") from None
        except ValueError as error:  # MSAL's for a tenant that it does not find there
            raise _refused(error) from None
        if session.has_state_changed:
            cache.write(f"{key}.session", session.serialize())
        now = clock()
        expires_on = int((now + timedelta(seconds=answer["expires_in"])).timestamp())
        return Token.issued(answer["access_token"], now=now, expires_on=expires_on)

    return cache.token(key, clock, request)


def _client(login: Login, session: object) -> Any:  # MSAL has no types
    import msal
    import requests

    from identity.credentials.transport import ca_bundle, without_netrc

    http: Any = without_netrc(requests.Session())
    http.mount("https://", requests.adapters.HTTPAdapter(max_retries=1))
    # To requests, CURL_CA_BUNDLE is more than the `verify` of a session, and less than that of a request.
    http.request = partial(http.request, verify=ca_bundle(), timeout=_HTTP_TIMEOUT)
    return msal.PublicClientApplication(
        login.client_id or AKS_CLIENT_APP_ID,
        authority=f"{login.authority_host.rstrip('/')}/{login.tenant_id}",
        token_cache=session,
        instance_discovery=False,
        http_client=http,
    )


def _answer(client: Any, scope: str, show: Callable[[str], object] | None) -> Mapping[str, Any]:
    """Entra's answer with the token: of the session, else of the person."""
    answer: Mapping[str, Any] | None = None
    if accounts := client.get_accounts():
        answer = client.acquire_token_silent_with_error([scope], accounts[0], force_refresh=True)
    if answer is None or answer.get("error") == "invalid_grant":
        if show is None:
            raise _person_needed(f"the session is over ({_reason(answer)})" if answer else _NOT_SIGNED_IN)
        if accounts:
            client.remove_account(accounts[0])  # another person may answer
        answer = _asked(client, scope, show)
    if "access_token" not in answer:
        final = _FINAL.get(answer.get("error", ""))
        raise _refused(ValueError(final or _reason(answer)))
    return answer


def _asked(client: Any, scope: str, show: Callable[[str], object]) -> Mapping[str, Any]:
    """Entra's answer once the person has entered the code, has declined, or the code has ended."""
    flow: dict[str, Any] = client.initiate_device_flow([scope])
    if "device_code" not in flow:
        return flow
    show(flow["message"])
    return client.acquire_token_by_device_flow(flow)  # type: ignore[no-any-return]


def _person_needed(reason: str) -> PersonNeededError:
    return PersonNeededError(
        f"{reason}, and there is no terminal to ask somebody at. Run `.venv/bin/idstack token --device-code` with the "
        "same options once at a terminal, or let a pipeline sign in by itself: --login certificate, workload-identity, "
        "github, managed-identity or arm"
    )


def _refused(error: Exception) -> SignInRefusedError:
    return SignInRefusedError(f"device code sign-in: {explained(error)}")


def _reason(answer: Mapping[str, Any]) -> str:
    text = str(answer.get("error_description") or answer.get("error") or "no reason given")
    return text.partition(" Trace ID:")[0].partition("\r\n")[0]
