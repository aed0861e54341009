"""The device code flow (RFC 8628) and its session: a person signs in once, refresh tokens renew the sign-in.

`azure.identity.DeviceCodeCredential` has the flow as well, but keeps its session where no other process finds it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from identity.aks.login import AKS_CLIENT_APP_ID, Login
from identity.aks.sign_in import explained
from identity.aks.token_cache import Token, TokenCache
from identity.azure.errors import PersonNeededError, SignInRefusedError
from identity.credentials.clock import Clock

GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
_SLOWER: Final = timedelta(seconds=5)  # RFC 8628, section 3.5
_DEFAULT_INTERVAL: Final = 5
_HTTP_TIMEOUT: Final = 15.0
_AGAIN: Final = "run the same command again for a new code"
_FINAL: Final[Mapping[str, str]] = {
    "authorization_declined": "the sign-in was declined in the browser; " + _AGAIN,
    "access_denied": "the sign-in was declined in the browser; " + _AGAIN,
    "bad_verification_code": "Entra ID does not know the device code; " + _AGAIN,
    "expired_token": "nobody entered the code in time; " + _AGAIN,
}


class Post(Protocol):
    """Sends a form and returns status and JSON body; raises SignInRefusedError without an answer."""

    def __call__(self, url: str, form: Mapping[str, str]) -> tuple[int, Mapping[str, Any]]: ...


@dataclass(frozen=True)
class Challenge:
    """The `message` for the person, in Entra's words, and what the program polls with meanwhile."""

    message: str
    device_code: str = field(repr=False)
    interval: timedelta
    expires: datetime


@dataclass(frozen=True)
class Grant:
    """A token and what renews it."""

    token: Token
    refresh_token: str | None = field(repr=False)


class SessionOverError(Exception):
    """`invalid_grant`: the refresh token is no longer valid; the message is Entra's reason."""


class DeviceCode:
    """One login's conversation with Entra ID. `sleep` waits for seconds."""

    def __init__(self, login: Login, post: Post, clock: Clock, sleep: Callable[[float], object] = time.sleep) -> None:
        self._login = login
        self._post = post
        self._clock = clock
        self._sleep = sleep

    def challenge(self) -> Challenge:
        """Ask for a code; raises SignInRefusedError."""
        begun = self._clock()
        status, body = self._post(self._url("devicecode"), {"client_id": self._client_id, "scope": self._scope})
        if status != 200:
            raise _refused(body)
        return Challenge(
            message=body["message"],
            device_code=body["device_code"],
            interval=timedelta(seconds=body.get("interval", _DEFAULT_INTERVAL)),
            expires=begun + timedelta(seconds=body["expires_in"]),
        )

    def poll(self, challenge: Challenge) -> Grant:
        """Wait until the person has signed in; raises SignInRefusedError if that fails or takes too long."""
        interval = challenge.interval
        form = {"grant_type": GRANT, "client_id": self._client_id, "device_code": challenge.device_code}
        while True:
            self._sleep(interval.total_seconds())
            if self._clock() >= challenge.expires:
                raise SignInRefusedError(f"device code sign-in: {_FINAL['expired_token']}")
            status, body = self._post(self._url("token"), form)
            if status == 200:
                return self._grant(body)
            match body.get("error"):
                case "authorization_pending":
                    pass
                case "slow_down":
                    interval += _SLOWER
                case str(error) if error in _FINAL:
                    raise SignInRefusedError(f"device code sign-in: {_FINAL[error]}")
                case _:
                    raise _refused(body)

    def renew(self, refresh_token: str) -> Grant:
        """A token without a person; raises SessionOverError, or SignInRefusedError for any other reason."""
        form = {
            "grant_type": "refresh_token",
            "client_id": self._client_id,
            "scope": self._scope,
            "refresh_token": refresh_token,
        }
        status, body = self._post(self._url("token"), form)
        if status == 200:
            return self._grant(body)
        if body.get("error") == "invalid_grant":
            raise SessionOverError(_reason(body))
        raise _refused(body)

    def _grant(self, body: Mapping[str, Any]) -> Grant:
        now = self._clock()
        expires_on = int(now.timestamp()) + int(body["expires_in"])
        return Grant(Token.issued(body["access_token"], now=now, expires_on=expires_on), body.get("refresh_token"))

    @property
    def _client_id(self) -> str:
        return self._login.client_id or AKS_CLIENT_APP_ID

    @property
    def _scope(self) -> str:
        return f"{self._login.scope} openid offline_access profile"

    def _url(self, endpoint: str) -> str:
        return f"{self._login.authority_host.rstrip('/')}/{self._login.tenant_id}/oauth2/v2.0/{endpoint}"


def session_token(
    flow: DeviceCode, cache: TokenCache, key: str, *, show: Callable[[str], object] | None, clock: Clock
) -> Token:
    """The session's token: cached, renewed, or from a sign-in of the person, who gets the code through `show`.

    Raises PersonNeededError if a person is needed and `show` is None, and SignInRefusedError if Entra ID refuses.
    """
    session = f"{key}.session"

    def request() -> Token:
        refresh_token = _refresh_token(cache.read(session))
        reason = "nobody signed in yet"
        if refresh_token is not None:
            try:
                return keep(flow.renew(refresh_token))
            except SessionOverError as over:
                cache.forget(session)
                reason = f"the session is over ({over})"
        if show is None:
            raise PersonNeededError(
                f"{reason}, and there is no terminal to ask somebody at. Run `idstack token --device-code` with the "
                "same options once at a terminal, or let a pipeline sign in by itself: --login certificate, "
                "workload-identity, github, managed-identity or arm"
            )
        challenge = flow.challenge()
        show(challenge.message)
        return keep(flow.poll(challenge))

    def keep(grant: Grant) -> Token:
        # Each renewal returns a new refresh token, which replaces the previous one.
        if grant.refresh_token is not None:
            cache.write(session, json.dumps({"refreshToken": grant.refresh_token}))
        return grant.token

    return cache.token(key, clock, request)


def http_post(url: str, form: Mapping[str, str]) -> tuple[int, Mapping[str, Any]]:
    """`Post` over the network, with the CA bundle of the environment."""
    import ssl

    import httpx  # a tenth of a second that no other login spends

    from identity.credentials.sign_in import ca_bundle

    verify = ca_bundle()
    try:
        response = httpx.post(
            url,
            data=dict(form),
            timeout=_HTTP_TIMEOUT,
            verify=ssl.create_default_context(cafile=verify if isinstance(verify, str) else None),
        )
        body = response.json()
    except (httpx.HTTPError, ValueError) as error:
        raise SignInRefusedError(f"device code sign-in: {url} does not answer as Entra ID does ({error})") from None
    return response.status_code, body if isinstance(body, dict) else {}


def _refresh_token(text: str | None) -> str | None:
    try:
        return str(json.loads(text)["refreshToken"]) if text else None
    except (ValueError, TypeError, KeyError):
        return None


def _refused(body: Mapping[str, Any]) -> SignInRefusedError:
    return SignInRefusedError(f"device code sign-in: {explained(ValueError(_reason(body)))}")


def _reason(body: Mapping[str, Any]) -> str:
    text = str(body.get("error_description") or body.get("error") or "no reason given")
    return text.partition(" Trace ID:")[0].partition("\r\n")[0]
