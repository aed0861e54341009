"""Client assertions: the JWT that an application signs with its certificate's key instead of sending a secret.

Rules: RFC 7523 3, and Microsoft's page on certificate credentials: RS256 or PS256, the certificate named by `x5t`
(SHA-1), `x5t#S256`, or `kid` with the value of `x5t`, `iss` = `sub` = client id. `aud` is the token endpoint, or the
issuer as earlier texts of that page have it, and never a list. A chain in `x5c` proves nothing here: trust by subject
name and issuer is for first-party applications.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
from cryptography import x509

from localcloud.azure.entra import errors
from localcloud.azure.entra.federation import unverified
from localcloud.azure.tenant.objects import KeyCredential

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_ALGORITHMS = ("RS256", "PS256")
_SKEW = timedelta(minutes=5)


def is_own(assertion: str) -> bool:
    """Whether the client itself made the assertion, even a wrong one, and not an issuer, whose name is an https URL.

    A thumbprint in the header does not decide it: GitHub's tokens have one as well.
    """
    return not str(unverified(assertion)[1].get("iss")).startswith("https://")


def verify(
    assertion: str, *, client_id: str, audiences: Collection[str], keys: Sequence[KeyCredential], now: datetime
) -> KeyCredential:
    """The registered certificate that signed `assertion`.

    Args:
        client_id: the form's `client_id`, in lower case.
        audiences: the token endpoint as this authority announces it, and its other names.
        keys: the certificates that the serving replica knows for the application.
        now: Entra's clock, at which certificate and assertion must be valid.

    Raises:
        EntraError: 50027, 700021, 700023, 700024 or 700027, checked in Entra's order: certificate first, then claims.
    """
    header, _ = unverified(assertion)
    if header.get("alg") not in _ALGORITHMS:
        raise errors.assertion_malformed(f"The signature algorithm must be {' or '.join(_ALGORITHMS)}.")
    named, digest = _thumbprint(header)
    key = next((key for key in keys if hashlib.new(named, key.certificate).digest() == digest), None)
    thumbprint = digest.hex().upper()
    if key is None:
        raise errors.certificate_unknown(client_id, thumbprint)
    certificate = x509.load_der_x509_certificate(key.certificate)
    if not max(key.start, certificate.not_valid_before_utc) <= now <= min(key.end, certificate.not_valid_after_utc):
        raise errors.certificate_out_of_time(client_id, thumbprint, key)
    try:
        claims = jwt.decode(
            assertion,
            certificate.public_key(),  # type: ignore[arg-type]  # RSA was checked when the certificate was registered
            algorithms=list(_ALGORITHMS),
            # The claims are verified below: each has a code of its own.
            options={"verify_aud": False, "verify_exp": False, "verify_nbf": False, "verify_iat": False},
        )
    except jwt.InvalidTokenError:
        raise errors.signature_wrong(client_id, thumbprint, key) from None
    _check_claims(claims, client_id, audiences, now)
    return key


def _thumbprint(header: Mapping[str, Any]) -> tuple[str, bytes]:
    # HashiCorp's go-azure-sdk names the certificate by `kid` alone, with the value of `x5t`.
    for name, algorithm in (("x5t#S256", "sha256"), ("x5t", "sha1"), ("kid", "sha1")):
        text = header.get(name)
        if isinstance(text, str):
            try:
                return algorithm, base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            except binascii.Error:
                raise errors.assertion_malformed(f"The header {name} is not base64url text.") from None
    raise errors.assertion_malformed("No certificate thumbprint specified in token header.")


def _check_claims(claims: dict[str, Any], client_id: str, audiences: Collection[str], now: datetime) -> None:
    if not str(claims.get("iss")).lower() == str(claims.get("sub")).lower() == client_id:
        raise errors.assertion_of_another_client()
    audience = claims.get("aud")
    if not isinstance(audience, str):
        raise errors.assertion_malformed("The claim aud is a text.")
    if audience.lower() not in {accepted.lower() for accepted in audiences}:
        raise errors.assertion_for_another_audience()
    expires = claims.get("exp")
    valid_from = claims.get("nbf", claims.get("iat", 0))
    if not isinstance(expires, int | float) or not isinstance(valid_from, int | float):
        raise errors.assertion_malformed("The claims exp and nbf are numbers of seconds.")
    begin, end = datetime.fromtimestamp(valid_from, UTC), datetime.fromtimestamp(expires, UTC)
    if not begin - _SKEW <= now <= end + _SKEW:
        raise errors.assertion_out_of_time(now, begin, end)
