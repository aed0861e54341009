"""Entra's own form of a sign-in error, and the errors whose words depend on dates or on a certificate.

Trace id, correlation id and time stamp follow every message, as in Entra.
"""

from __future__ import annotations

import uuid
from datetime import datetime

from starlette.responses import JSONResponse, Response

from localcloud.azure.shared.refusals import ServiceError, refusal
from localcloud.azure.tenant.objects import KeyCredential
from localcloud.core import clock


def render(error: ServiceError) -> Response:
    """The response to an error; one with a number names it first."""
    number = f"AADSTS{error.inner}: " if error.inner else ""
    trace_id, correlation_id = str(uuid.uuid4()), str(uuid.uuid4())
    timestamp = clock.now().strftime("%Y-%m-%d %H:%M:%SZ")
    where = f"Trace ID: {trace_id} Correlation ID: {correlation_id} Timestamp: {timestamp}"
    body = {
        "error": error.code,
        "error_description": f"{number}{error.message} {where}",
        "error_codes": [int(error.inner)] if error.inner else [],
        "timestamp": timestamp,
        "trace_id": trace_id,
        "correlation_id": correlation_id,
    }
    return JSONResponse(body, status_code=error.status, headers=error.headers)


def malformed(problem: str) -> ServiceError:
    """50027 for an assertion."""
    return refusal("invalid_client malformed", problem=problem)


def out_of_time(now: datetime, valid_from: datetime, expires: datetime) -> ServiceError:
    """700024 for an assertion."""
    return refusal("invalid_client out of time", now=ticks(now), start=ticks(valid_from), end=ticks(expires))


def bad_certificate(
    fault: str | None, reason: str, client_id: str, thumbprint: str, key: KeyCredential | None = None
) -> ServiceError:
    """700027: what is wrong with the certificate, None for a signature of another key; `key` is what was found."""
    lead = "Client assertion contains an invalid signature."
    if fault is not None:
        lead = f"The certificate with identifier used to sign the client assertion is {fault}."
    found = f", Found key 'Start={_us_date(key.start)}, End={_us_date(key.end)}'" if key else ""
    words = {"lead": lead, "reason": reason, "thumbprint": thumbprint, "found": found, "client": client_id}
    return refusal("invalid_client certificate", **words)


def ticks(instant: datetime) -> str:
    """The date in a message."""
    return instant.strftime("%Y-%m-%dT%H:%M:%S.%f0Z")


def _us_date(instant: datetime) -> str:
    return instant.strftime("%m/%d/%Y %H:%M:%S")
