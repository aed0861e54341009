"""The blob service's own errors: XML with code and message, the code also in a header.

Seen in AzureStorageExplorer issue 3767 (permission), azure-rest-api-specs issue 11331 and COMPASS issue 3 (public
access), azure-docs issue 71949 (signature), and in Microsoft's list of Blob Storage error codes.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from functools import partial
from typing import Final
from xml.sax.saxutils import escape

from starlette.responses import Response

from localcloud.azure.shared import http
from localcloud.azure.shared.http import ServiceError

_LOOK_AT_CHALLENGE: Final = (
    "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."
)

not_emulated: Final = partial(http.not_emulated, "blob")
hash_differs: Final = partial(
    ServiceError,
    400,
    "Md5Mismatch",
    "The MD5 value specified in the request did not match with the MD5 value calculated by the server.",
)
header_missing: Final = partial(
    ServiceError, 400, "MissingRequiredHeader", "An HTTP header that's mandatory for this request is not specified."
)
header_invalid: Final = partial(
    ServiceError, 400, "InvalidHeaderValue", "The value for one of the HTTP headers is not in the correct format."
)
parameter_out_of_range: Final = partial(
    ServiceError,
    400,
    "OutOfRangeQueryParameterValue",
    "One of the query parameters specified in the request URI is outside the permissible range.",
)
# Both have the challenge in a header: without a bearer, and for a token that is another service's or not valid.
not_authenticated: Final = partial(ServiceError, 401, "NoAuthenticationInformation", _LOOK_AT_CHALLENGE)
bearer_refused: Final = partial(ServiceError, 401, "InvalidAuthenticationInfo", _LOOK_AT_CHALLENGE)
# A signature by no key of the account, or of another time.
signature_refused: Final = partial(
    ServiceError,
    403,
    "AuthenticationFailed",
    "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly "
    "including the signature.",
)
key_not_permitted: Final = partial(
    ServiceError,
    403,
    "KeyBasedAuthenticationNotPermitted",
    "Key based authentication is not permitted on this storage account.",
)
permission_mismatch: Final = partial(
    ServiceError,
    403,
    "AuthorizationPermissionMismatch",
    "This request is not authorized to perform this operation using this permission.",
)
# Also hides a private container from an anonymous caller.
resource_not_found: Final = partial(ServiceError, 404, "ResourceNotFound", "The specified resource does not exist.")
container_not_found: Final = partial(ServiceError, 404, "ContainerNotFound", "The specified container does not exist.")
blob_not_found: Final = partial(ServiceError, 404, "BlobNotFound", "The specified blob does not exist.")
public_access_not_permitted: Final = partial(
    ServiceError, 409, "PublicAccessNotPermitted", "Public access is not permitted on this storage account."
)
invalid_range: Final = partial(
    ServiceError, 416, "InvalidRange", "The range specified is invalid for the current size of the resource."
)


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


def account_not_found(host: str) -> ServiceError:
    """404 of the local cloud: in Azure the name does not resolve."""
    return ServiceError(404, "AccountNotFound", f"There is no storage account '{host}' in the local cloud.")
