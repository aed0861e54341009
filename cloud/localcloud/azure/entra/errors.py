"""Entra's sign-in errors, each with its AADSTS code, OAuth error, HTTP status and Entra's message.

Sources: messages as users report them to the issue trackers of azure-sdk, MSAL and the Azure CLI; codes of Microsoft's
list of AADSTS error codes. Trace id, correlation id and time stamp follow every message, as in Entra.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from functools import partial
from typing import Final, Literal

from starlette.responses import JSONResponse, Response

from localcloud.azure.shared.http import ServiceError
from localcloud.azure.tenant.objects import KeyCredential
from localcloud.core import clock

_DOCS = "https://docs.microsoft.com/azure/active-directory/develop/active-directory-certificate-credentials"


class EntraError(ServiceError):
    """An error of the token endpoint; `number` is the AADSTS code, `code` the OAuth 2.0 error (RFC 6749 5.2)."""

    def __init__(self, number: int, code: str, text: str, status: int) -> None:
        super().__init__(status, code, f"AADSTS{number}: {text}")
        self.number = number


def render(error: ServiceError) -> Response:
    """The response to an error, in Entra's form."""
    trace_id, correlation_id = str(uuid.uuid4()), str(uuid.uuid4())
    timestamp = clock.now().strftime("%Y-%m-%d %H:%M:%SZ")
    body = {
        "error": error.code,
        "error_description": (
            f"{error.message} Trace ID: {trace_id} Correlation ID: {correlation_id} Timestamp: {timestamp}"
        ),
        "error_codes": [error.number] if isinstance(error, EntraError) else [],
        "timestamp": timestamp,
        "trace_id": trace_id,
        "correlation_id": correlation_id,
    }
    return JSONResponse(body, status_code=error.status, headers=error.headers)


# 901002: version 2.0 has scopes.
resource_not_supported: Final = partial(
    EntraError, 901002, "invalid_request", "The 'resource' request parameter is not supported.", 400
)
credential_missing: Final = partial(
    EntraError,
    7000216,
    "invalid_client",
    "'client_assertion', 'client_secret' or 'request' is required for the 'client_credentials' grant type.",
    401,
)
issuer_unreachable: Final = partial(
    EntraError, 90061, "invalid_request", "Request to External OIDC endpoint failed.", 400
)
assertion_of_another_client: Final = partial(
    EntraError,
    700021,
    "invalid_client",
    "Client assertion application identifier doesn't match 'client_id' parameter. "
    f"Review the documentation at {_DOCS} .",
    401,
)
assertion_for_another_audience: Final = partial(
    EntraError,
    700023,
    "invalid_client",
    f"Client assertion audience claim does not match Realm issuer. Review the documentation at {_DOCS} .",
    401,
)
# 70016: the code has not been entered yet.
authorization_pending: Final = partial(
    EntraError,
    70016,
    "authorization_pending",
    "OAuth 2.0 device flow error. Authorization is pending. Continue polling.",
    400,
)
# RFC 8628 3.5, under the number of a pending authorization: Entra documents none.
slow_down: Final = partial(EntraError, 70016, "slow_down", "OAuth 2.0 device flow error. Polling is too frequent.", 400)
# 65004: the person declined.
authorization_declined: Final = partial(
    EntraError, 65004, "authorization_declined", "User declined to consent to access the app.", 400
)
device_code_unknown: Final = partial(
    EntraError, 70018, "bad_verification_code", "The verification code is invalid.", 400
)
device_code_expired: Final = partial(
    EntraError, 70019, "expired_token", "Verification code expired. Have the user retry the sign-in.", 400
)
# 9002313, which Entra answers to a refresh token that it did not issue to this client.
refresh_token_malformed: Final = partial(
    EntraError, 9002313, "invalid_grant", "Invalid request. Request is malformed or invalid.", 400
)


def tenant_not_found(tenant: str, *, code: str = "invalid_request") -> EntraError:
    """90002; the metadata endpoint calls it `invalid_tenant`."""
    return EntraError(
        90002,
        code,
        f"Tenant '{tenant}' not found. Check to make sure you have the correct tenant ID and are signing into the "
        "correct cloud. Check with your subscription administrator, this may happen if there are no active "
        "subscriptions for the tenant.",
        400,
    )


def instance_invalid(host: str) -> EntraError:
    """50049, in an instance discovery."""
    return EntraError(50049, "invalid_instance", f"Unknown or invalid instance '{host}'.", 400)


def application_not_found(client_id: str, tenant: str) -> EntraError:
    return EntraError(
        700016,
        "unauthorized_client",
        f"Application with identifier '{client_id}' was not found in the directory '{tenant}'. This can happen if the "
        "application has not been installed by the administrator of the tenant or consented to by any user in the "
        "tenant. You may have sent your authentication request to the wrong tenant.",
        400,
    )


def service_principal_missing(client_id: str, tenant: str) -> EntraError:
    """7000229: the application is there, its service principal is not (or not known to this replica yet)."""
    return EntraError(
        7000229,
        "unauthorized_client",
        f"The client application {client_id} is missing service principal in the tenant {tenant}. "
        "See instructions here: https://go.microsoft.com/fwlink/?linkid=2225119",
        401,
    )


def application_disabled(client_id: str, name: str) -> EntraError:
    return EntraError(7000112, "unauthorized_client", f"Application '{client_id}'({name}) is disabled.", 401)


def resource_not_found(resource: str, tenant: str) -> EntraError:
    return EntraError(
        500011,
        "invalid_resource",
        f"The resource principal named {resource} was not found in the tenant named {tenant}. This can happen if the "
        "application has not been installed by the administrator of the tenant or consented to by any user in the "
        "tenant. You might have sent your authentication request to the wrong tenant.",
        400,
    )


def scope_invalid(scope: str) -> EntraError:
    return EntraError(
        1002012,
        "invalid_scope",
        f"The provided value for scope {scope} is not valid. Client credential flows must have a scope value with "
        "/.default suffixed to the resource identifier (application ID URI).",
        400,
    )


def parameter_missing(name: str) -> EntraError:
    return EntraError(
        900144, "invalid_request", f"The request body must contain the following parameter: '{name}'.", 400
    )


def grant_unsupported(grant: str) -> EntraError:
    return EntraError(70003, "unsupported_grant_type", f"The app requested an unsupported grant type '{grant}'.", 400)


def secret_invalid(client_id: str) -> EntraError:
    return EntraError(
        7000215,
        "invalid_client",
        "Invalid client secret provided. Ensure the secret being sent in the request is the client secret value, not "
        f"the client secret ID, for a secret added to app '{client_id}'.",
        401,
    )


def secret_expired(client_id: str) -> EntraError:
    return EntraError(
        7000222,
        "invalid_client",
        f"The provided client secret keys for app '{client_id}' are expired. Visit the Azure portal to create new keys "
        "for your app: https://aka.ms/NewClientSecret, or consider using certificate credentials for added security: "
        "https://aka.ms/certCreds.",
        401,
    )


def federated_claim_unknown(claim: Literal["issuer", "audience", "subject"], value: str) -> EntraError:
    """700211 to 700213: no federated credential has this claim."""
    return EntraError(
        {"issuer": 700211, "audience": 700212, "subject": 700213}[claim],
        "invalid_client",
        f"No matching federated identity record found for presented assertion {claim} '{value}'. Check your federated "
        "identity credential Subject, Audience and Issuer against the presented assertion. "
        "https://learn.microsoft.com/entra/workload-id/workload-identity-federation",
        401,
    )


def federated_subject_in_other_case(subject: str) -> EntraError:
    """7002138 (Azure/login issue 515)."""
    return EntraError(
        7002138,
        "invalid_client",
        f"No matching federated identity record found for presented assertion subject '{subject}'. The subject matches "
        "with case-insensitive comparison, but not with case-sensitive comparison. Check your federated identity "
        "credential Subject, Audience and Issuer against the presented assertion. See documentation at: "
        "https://learn.microsoft.com/entra/workload-id/workload-identity-federation. See breaking change notification "
        "and remediation at: https://learn.microsoft.com/en-us/entra/identity-platform/reference-breaking-changes"
        "#august-2024.",
        401,
    )


def federated_key_unknown(key_id: str, issuer: str) -> EntraError:
    return EntraError(
        7000272,
        "invalid_client",
        f"The certificate with identifier {key_id} used to sign the federated credential could not be found in the "
        f"metadata of identity provider {issuer}. Please validate that your Identity Provider's metadata exposes the "
        "key used to sign the incoming token.",
        401,
    )


def federated_signature_wrong(key_id: str) -> EntraError:
    return EntraError(
        50013,
        "invalid_client",
        "Assertion failed signature validation. [Reason - The provided signature value did not match the expected "
        f"signature value., Thumbprint of key used by client: '{key_id}'].",
        401,
    )


def assertion_malformed(problem: str) -> EntraError:
    return EntraError(50027, "invalid_client", f"JWT token is invalid or malformed. {problem}", 401)


def assertion_out_of_time(now: datetime, valid_from: datetime, expires: datetime) -> EntraError:
    return EntraError(
        700024,
        "invalid_client",
        f"Client assertion is not within its valid time range. Current time: {_ticks(now)}, assertion valid from "
        f"{_ticks(valid_from)}, expiry time of assertion {_ticks(expires)}. Review the documentation at {_DOCS} .",
        401,
    )


def certificate_unknown(client_id: str, thumbprint: str) -> EntraError:
    """700027: this replica knows no registration with this thumbprint."""
    return _bad_certificate("not registered on application", "The key was not found", client_id, thumbprint)


def certificate_out_of_time(client_id: str, thumbprint: str, key: KeyCredential) -> EntraError:
    """700027: registered, but outside its dates."""
    return _bad_certificate("expired on application", "The key used is expired", client_id, thumbprint, key)


def signature_wrong(client_id: str, thumbprint: str, key: KeyCredential) -> EntraError:
    """700027: the assertion was signed with another key than the certificate it names."""
    return _bad_certificate(
        None, "The provided signature value did not match the expected signature value", client_id, thumbprint, key
    )


def sessions_ended(valid_from: datetime) -> EntraError:
    return EntraError(
        50173,
        "invalid_grant",
        "The provided grant has expired due to it being revoked, a fresh auth token is needed. The user might have "
        f"changed or reset their password. The tokensValidFrom date is {_ticks(valid_from)}.",
        400,
    )


def refresh_token_expired(issued: datetime) -> EntraError:
    return EntraError(
        700082,
        "invalid_grant",
        f"The refresh token has expired due to inactivity. The token was issued on {_ticks(issued)} and was inactive "
        "for 90.00:00:00.",
        400,
    )


def _bad_certificate(
    fault: str | None, reason: str, client_id: str, thumbprint: str, key: KeyCredential | None = None
) -> EntraError:
    if fault is None:
        lead = "Client assertion contains an invalid signature."
    else:
        lead = f"The certificate with identifier used to sign the client assertion is {fault}."
    detail = f", Found key 'Start={_us_date(key.start)}, End={_us_date(key.end)}'" if key else ""
    return EntraError(
        700027,
        "invalid_client",
        f"{lead} [Reason - {reason}., Thumbprint of key used by client: '{thumbprint}'{detail}, Please visit the Azure "
        f"Portal, Graph Explorer or directly use MS Graph to see configured keys for app Id '{client_id}'. Review the "
        "documentation at https://docs.microsoft.com/en-us/graph/deployments to determine the corresponding service "
        "endpoint and https://docs.microsoft.com/en-us/graph/api/application-get?view=graph-rest-1.0&tabs=http to "
        f"build a query request URL, such as 'https://graph.microsoft.com/beta/applications/{client_id}'].",
        401,
    )


def _ticks(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%dT%H:%M:%S.%f0Z")


def _us_date(instant: datetime) -> str:
    return instant.strftime("%m/%d/%Y %H:%M:%S")
