"""The blob service's own errors: XML with code and message, the code also in a header.

Seen in AzureStorageExplorer issue 3767 (permission), azure-rest-api-specs issue 11331 and COMPASS issue 3 (public
access), azure-docs issue 71949 (signature), and in Microsoft's list of Blob Storage error codes.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from xml.sax.saxutils import escape

from starlette.responses import Response

from localcloud.azure.shared.http import ServiceError


def render(error: ServiceError) -> Response:
    """The response to an error."""
    suffix = f"\nRequestId:{uuid.uuid4()}\nTime:{datetime.now(UTC).isoformat()}"
    text = f"<Code>{error.code}</Code><Message>{escape(error.message + suffix)}</Message>"
    return Response(
        f'<?xml version="1.0" encoding="utf-8"?><Error>{text}</Error>',
        status_code=error.status,
        media_type="application/xml",
        headers={"x-ms-error-code": error.code, **error.headers},
    )


def hash_differs() -> ServiceError:
    """400 for content that does not match its hash."""
    return ServiceError(
        400,
        "Md5Mismatch",
        "The MD5 value specified in the request did not match with the MD5 value calculated by the server.",
    )


def account_not_found(host: str) -> ServiceError:
    """404 of the local cloud: in Azure the name does not resolve."""
    return ServiceError(404, "AccountNotFound", f"There is no storage account '{host}' in the local cloud.")


def not_authenticated(challenge: str) -> ServiceError:
    """401 for a request that lacks a bearer."""
    return ServiceError(
        401,
        "NoAuthenticationInformation",
        "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.",
        {"WWW-Authenticate": challenge},
    )


def bearer_refused(challenge: str) -> ServiceError:
    """401 for a token that is not Azure Storage's, or not valid."""
    return ServiceError(
        401,
        "InvalidAuthenticationInfo",
        "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.",
        {"WWW-Authenticate": challenge},
    )


def signature_refused() -> ServiceError:
    """403 for a signature by no key of the account, or of another time."""
    return ServiceError(
        403,
        "AuthenticationFailed",
        "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly "
        "including the signature.",
    )


def key_not_permitted() -> ServiceError:
    """403 for a signature where the account allows tokens of Entra ID alone."""
    return ServiceError(
        403,
        "KeyBasedAuthenticationNotPermitted",
        "Key based authentication is not permitted on this storage account.",
    )


def public_access_not_permitted() -> ServiceError:
    """409 for an anonymous request to an account that allows none."""
    return ServiceError(409, "PublicAccessNotPermitted", "Public access is not permitted on this storage account.")


def resource_not_found() -> ServiceError:
    """404, which hides a private container from an anonymous caller."""
    return ServiceError(404, "ResourceNotFound", "The specified resource does not exist.")


def container_not_found() -> ServiceError:
    """404 for a blob of a missing container."""
    return ServiceError(404, "ContainerNotFound", "The specified container does not exist.")


def blob_not_found() -> ServiceError:
    """404 for a missing blob."""
    return ServiceError(404, "BlobNotFound", "The specified blob does not exist.")


def permission_mismatch() -> ServiceError:
    """403 for a caller without a role that grants the data action."""
    return ServiceError(
        403,
        "AuthorizationPermissionMismatch",
        "This request is not authorized to perform this operation using this permission.",
    )


def header_missing() -> ServiceError:
    """400 for a header that the operation needs."""
    return ServiceError(
        400, "MissingRequiredHeader", "An HTTP header that's mandatory for this request is not specified."
    )


def header_invalid() -> ServiceError:
    """400 for a header whose value the operation cannot take."""
    return ServiceError(
        400, "InvalidHeaderValue", "The value for one of the HTTP headers is not in the correct format."
    )


def parameter_out_of_range() -> ServiceError:
    """400 for a query parameter whose value the operation cannot take."""
    return ServiceError(
        400,
        "OutOfRangeQueryParameterValue",
        "One of the query parameters specified in the request URI is outside the permissible range.",
    )


def invalid_range() -> ServiceError:
    """416 for a range that begins after the blob."""
    message = "The range specified is invalid for the current size of the resource."
    return ServiceError(416, "InvalidRange", message)


def not_emulated(what: str) -> ServiceError:
    """501: Azure would do this, the local cloud does not."""
    return ServiceError(501, "NotEmulated", f"The local cloud does not emulate {what} of Blob Storage.")
