"""A login's token: from the cache, from a credential, or from a person."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from identity.aks.device_code import session_token
from identity.aks.login import Login
from identity.aks.sign_in import token_source
from identity.aks.token_cache import Token, TokenCache, key_of
from identity.credentials.rfc3339 import Clock, utc_now
from identity.login_kinds import LoginKind


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
        return session_token(login, cache, key_of(login, ""), show=show, clock=clock)

    source = token_source(login, environ, clock)

    def request() -> Token:
        answer = source.request()
        return Token.issued(answer.token, now=clock(), expires_on=answer.expires_on)

    if source.fingerprint is None:
        with cache.locked(key_of(login, "")):
            return request()
    return cache.token(key_of(login, source.fingerprint), clock, request)


def kept(login: Login, cache: TokenCache, environ: Mapping[str, str]) -> Token | None:
    """The token that `token` would take from the cache, None if it would ask for one. Raises AccessError."""
    is_session = login.kind is LoginKind.DEVICE_CODE
    fingerprint = "" if is_session else token_source(login, environ, utc_now).fingerprint
    return None if fingerprint is None else cache.kept(key_of(login, fingerprint), utc_now)
