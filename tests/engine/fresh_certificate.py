"""A certificate that Entra ID has only just been given, and who signs in with it."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Final

from azure.core.exceptions import ClientAuthenticationError

from identity.clouds import LocalEnvironment
from identity.credentials.certificate import IssuedCertificate, issue
from identity.credentials.probe.prober import Prober
from identity.credentials.sign_in import refusal, sign_in
from provider import keys
from provider.sign_in_gate import SignInGateResource

LAG: Final = 6.0
"""Seconds that the slow replicas of Entra ID lag behind."""

TIMEOUT: Final = 60
"""Seconds until a missing event is a failure."""


def fresh_certificate() -> IssuedCertificate:
    """One that is valid, and that nobody knows yet."""
    return issue("truth", not_before=datetime.now(UTC) - timedelta(minutes=5), lifetime=timedelta(days=1))


def gate(local: LocalEnvironment, client_id: str, issued: IssuedCertificate) -> None:
    """What the program does between registration and secret."""
    keys.remember(issued)
    inputs = {
        "authorityHost": local.authority_host,
        "tenantId": local.tenant_id,
        "clientId": client_id,
        "thumbprint": issued.thumbprint,
        "registration": "1",
        "scope": "https://management.azure.com/.default",
        "successes": 5,
        "settleSeconds": int(LAG) + 1,
        "timeoutSeconds": TIMEOUT,
    }
    SignInGateResource().create("urn:pulumi:local::idstack::idstack:index:SignInGate::gate", inputs, preview=False)


def sign_ins(local: LocalEnvironment, client_id: str, issued: IssuedCertificate) -> list[str | None]:
    """Ten sign-ins: the AADSTS code of each refused one."""
    return [_sign_in(local, client_id, issued) for _ in range(10)]


def _sign_in(local: LocalEnvironment, client_id: str, issued: IssuedCertificate) -> str | None:
    bundle = (issued.private_key_pem + issued.certificate_pem).encode()
    scope = "https://management.azure.com/.default"
    try:
        sign_in(local.authority_host, local.tenant_id, client_id, bundle, scope)
    except ClientAuthenticationError as error:
        return refusal(error).code
    return None


def await_ready(prober: Prober) -> None:
    """Return as soon as the probe is ready."""
    deadline = datetime.now(UTC) + timedelta(seconds=TIMEOUT)
    while not prober.report.is_ready:
        assert datetime.now(UTC) < deadline, prober.report
        threading.Event().wait(0.1)
