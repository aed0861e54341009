"""Signs in to Entra ID with a client certificate, and proves that a new one is known everywhere before it is used."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from azure.core.credentials import AccessToken
from azure.core.exceptions import AzureError
from azure.identity import CertificateCredential
from cryptography import x509

from identity.credentials.backoff import Backoff
from identity.credentials.certificate import thumbprint
from identity.credentials.rfc3339 import Clock, utc_now
from identity.credentials.transport import EnvironmentTransport, ca_bundle

# Seconds between the sign-ins after a failed one.
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 5.0

# Answers that waiting does not change: the tenant does not exist, its id is malformed.
_FINAL_CODES: Final = frozenset({"AADSTS90002", "AADSTS900023"})

_AADSTS: Final = re.compile(r"(?P<code>AADSTS[0-9]+): ?(?P<text>.*?)(?: Trace ID:|\\r|\\n|[\r\n\"]|$)")


@dataclass(frozen=True)
class Refusal:
    """Why a sign-in failed: Entra's code (None when Entra was not reached) and its description in one line."""

    code: str | None
    text: str

    def __str__(self) -> str:
        return f"{self.code}: {self.text}" if self.code else self.text


class SignInFailedError(Exception):
    """The sign-ins did not succeed in a row in time."""


def client(
    authority_host: str, tenant_id: str, client_id: str, pem_bundle: bytes, **options: Any
) -> CertificateCredential:
    """azure-identity's credential, set up as the upstream loader does: chain sent (x5c), no instance discovery.

    `authority_host` is an https URL; `pem_bundle` holds the key (PKCS#8) and its certificate first. `options` go to
    azure-core's pipeline. Raises ValueError for another scheme, a malformed tenant or key material it cannot use.
    """
    return CertificateCredential(
        tenant_id,
        client_id,
        certificate_data=pem_bundle,
        authority=authority_host,
        send_certificate_chain=True,
        disable_instance_discovery=True,
        **{"transport": EnvironmentTransport(**options), **options},
    )


def sign_in(
    authority_host: str,
    tenant_id: str,
    client_id: str,
    pem_bundle: bytes,
    scope: str,
    *,
    timeout_seconds: int = 15,
    ca_file: str | None = None,
) -> AccessToken:
    """One sign-in with a client of its own: past every cache, over its own connection, without retries.

    Each loads the key, 40 ms for 2048 bits, nearly all that a sign-in costs. `ca_file` has the trusted authorities, by
    default `ca_bundle`. Raises ClientAuthenticationError, also if Entra is not reached in time (`refusal` has the
    reason), and ValueError as `client`.
    """
    with client(
        authority_host,
        tenant_id,
        client_id,
        pem_bundle,
        retry_total=0,
        connection_timeout=timeout_seconds,
        read_timeout=timeout_seconds,
        base_headers={"Connection": "close"},
        connection_verify=ca_file or ca_bundle(),
    ) as fresh:
        return fresh.get_token(scope)


def refusal(error: BaseException) -> Refusal:
    """The reason inside an exception of azure-identity.

    MSAL hides Entra's answer to the discovery request in the exception's context, so the whole chain is searched.
    """
    seen: BaseException | None = error
    while seen is not None:
        if match := _AADSTS.search(str(seen)):
            return Refusal(match["code"], match["text"].strip())
        seen = seen.__cause__ or seen.__context__
    return Refusal(None, " ".join(str(error).split()))


def prove(
    authority_host: str,
    tenant_id: str,
    client_id: str,
    certificate_pem: str,
    private_key_pem: str,
    scope: str,
    *,
    successes: int,
    settle: timedelta,
    timeout: timedelta,
    clock: Clock = utc_now,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> datetime:
    """Sign in until `successes` sign-ins in a row, spread evenly over `settle`, all worked; returns when the last did.

    Entra is replicated: one success proves one replica. So every sign-in uses a fresh client, and a failure starts the
    streak again, after a pause that grows from 0.5 to 5 s. Raises `SignInFailedError` when `timeout` passes first, at
    once for a tenant that does not exist; ValueError for arguments that cannot succeed.

    `clock` dates the last sign-in. `monotonic`, in seconds, measures the time that passes: nobody sets that clock.
    """
    if successes < 1 or settle > timeout:
        raise ValueError(f"{successes} successes over {settle} within {timeout}: at least one, and settle <= timeout")
    bundle = f"{private_key_pem.rstrip()}\n{certificate_pem.rstrip()}\n".encode("ascii")
    backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE)
    streak = best = attempts = 0
    last = "no failure, but too few in time"
    deadline = monotonic() + timeout.total_seconds()
    while True:
        attempts += 1
        is_final = False
        try:
            sign_in(authority_host, tenant_id, client_id, bundle, scope)
        except AzureError as error:
            refused = refusal(error)
            streak, last, is_final = 0, f"last failure {refused}", refused.code in _FINAL_CODES
            pause = backoff.next()
        else:
            streak += 1
            best = max(best, streak)
            if streak == successes:
                return clock()
            backoff.reset()
            pause = (settle / (successes - 1)).total_seconds()
        if is_final or monotonic() + pause > deadline:
            name = thumbprint(x509.load_pem_x509_certificate(certificate_pem.encode("ascii")))
            raise SignInFailedError(
                f"client {client_id} cannot sign in to tenant {tenant_id} at {authority_host} with certificate {name}: "
                f"found {attempts} attempts, at best {best} in a row, {last}; accepted: {successes} sign-ins in a row "
                f"over {settle.total_seconds():g} s within {timeout.total_seconds():g} s; "
                "check that the certificate is registered on the application, "
                "or allow more time (credentials.propagation.timeoutSeconds)"
            )
        sleep(pause)
