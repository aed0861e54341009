"""A login's token: from the cache, from a credential, or from a person.

A person signs in once, by MSAL's device code flow; refresh tokens renew the sign-in. `azure.identity` has the flow as
well (`DeviceCodeCredential`), but keeps its session where no other process finds it.
MSAL's cache is a file of the token cache. MSAL is imported when it signs in: a kept token does not need it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, Final

from identity.aks.login import AKS_CLIENT_APP_ID, Login
from identity.aks.sign_in import explained, token_source
from identity.aks.token_cache import Token, TokenCache, key_of
from identity.azure.errors import PersonNeededError, SignInRefusedError
from identity.credentials.rfc3339 import Clock, utc_now
from identity.login_kinds import LoginKind

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
