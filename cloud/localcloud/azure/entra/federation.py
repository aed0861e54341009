"""Federated credentials: an application or managed identity trusts a subject of another issuer (RFC 7523 2.2).

Entra compares issuer, subject and audience with the registered credentials, case-sensitively, then fetches the
issuer's keys. Sources of the refusals: azure-workload-identity issues 1200, 1232 and 605, Azure/login issue 482.

Left out: issuers elsewhere. The local cloud calls only this machine, and its own storage accounts under their public
names; any other issuer is reported as unreachable. Entra ID keeps an issuer's keys for a while, which is left out, too.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import jwt

from localcloud.azure.entra import errors
from localcloud.azure.shared.http import is_loopback
from localcloud.azure.shared.refusals import refusal
from localcloud.core import clock
from localcloud.core.clouds import CLOUDS, DEFAULT_CLOUD

_ALGORITHMS: Final = ("RS256",)
# A local address means the public cloud.
_BLOBS: Final = f".blob.{CLOUDS[DEFAULT_CLOUD].storage_suffix}"
_WITHIN: Final = 5.0  # timeout for an issuer, in seconds


@dataclass(frozen=True)
class Trust:
    """The issuer, subject and audiences that a federated credential trusts."""

    issuer: str
    subject: str
    audience: str


def unverified(assertion: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Header and claims of an assertion; raises 50027 for anything else."""
    try:
        return jwt.get_unverified_header(assertion), jwt.decode(assertion, options={"verify_signature": False})
    except jwt.InvalidTokenError:
        raise errors.malformed("It could not be parsed.") from None


class Issuers:
    """The issuers on this machine; their servers' certificates are verified with `ca_file`.

    `blob_endpoint` is where the accounts of Azure Storage answer, which the Host header names.
    """

    def __init__(self, ca_file: Path | None = None, blob_endpoint: str | None = None) -> None:
        self._ca_file = ca_file
        self._blob_endpoint = blob_endpoint

    async def verify(
        self, assertion: str, trusted: Sequence[Trust], own: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        """Return if a federated credential trusts the assertion.

        Args:
            own: signing keys (JWK Set) by the issuers that Entra itself is, for tokens of managed identities.

        Raises:
            ServiceError: 700211 to 700213 or 7002138 for what no credential names, 700024 for one out of its time,
                90061 for an issuer that does not answer, 7000272 for a key that the issuer does not publish, 50013 for
                a signature that is not of that key.
        """
        header, claims = unverified(assertion)
        _match(claims, trusted)
        now = clock.now()
        begin, end = (datetime.fromtimestamp(claims.get(name, 0), UTC) for name in ("nbf", "exp"))
        if not begin <= now <= end:
            raise errors.out_of_time(now, begin, end)
        issuer, key_id = str(claims["iss"]), str(header.get("kid"))
        known = (own or {}).get(issuer)
        keys = await self._keys(issuer) if known is None else jwt.PyJWKSet.from_dict(dict(known)).keys
        key = next((key for key in keys if key.key_id == key_id), None)
        if key is None:
            raise refusal("invalid_client unknown key", key=key_id, issuer=issuer)
        try:
            jwt.decode(
                assertion,
                key,
                algorithms=_ALGORITHMS,
                # These were verified above, each with a code of its own.
                options={"verify_aud": False, "verify_exp": False, "verify_nbf": False, "verify_iat": False},
            )
        except jwt.InvalidTokenError:
            raise refusal("invalid_client forged", key=key_id) from None

    async def _keys(self, issuer: str) -> Sequence[jwt.PyJWK]:
        trust = ssl.create_default_context(cafile=self._ca_file)
        try:
            async with httpx.AsyncClient(verify=trust, timeout=_WITHIN, trust_env=False) as http:
                metadata = await self._document(http, f"{issuer.rstrip('/')}/.well-known/openid-configuration")
                if metadata["issuer"] != issuer:
                    raise refusal("invalid_request issuer away")
                return jwt.PyJWKSet.from_dict(await self._document(http, metadata["jwks_uri"])).keys
        except (httpx.HTTPError, ValueError, KeyError, jwt.PyJWTError):
            raise refusal("invalid_request issuer away") from None

    async def _document(self, http: httpx.AsyncClient, url: str) -> dict[str, Any]:
        parts = urlsplit(url)
        host, headers = parts.hostname or "", {}
        if self._blob_endpoint is not None and host.endswith(_BLOBS):
            url, headers = f"{self._blob_endpoint}{parts.path}", {"Host": host}
        elif not is_loopback(host):
            raise refusal("invalid_request issuer away")
        answer = await http.get(url, headers=headers)
        document: dict[str, Any] = answer.raise_for_status().json()
        return document


def _match(claims: Mapping[str, Any], trusted: Sequence[Trust]) -> None:
    """Filter the credentials claim by claim, so that the error names the first claim without a match."""
    issuer, subject = (str(claims.get(name)) for name in ("iss", "sub"))
    # RFC 7519 4.1.3: one, or a list; Kubernetes always writes a list.
    named = claims.get("aud")
    audiences = [str(name) for name in named] if isinstance(named, list) else [str(named)]
    of_issuer = [trust for trust in trusted if trust.issuer == issuer]
    if not of_issuer:
        raise refusal("invalid_client issuer", value=issuer)
    of_subject = [trust for trust in of_issuer if trust.subject == subject]
    if not of_subject and any(trust.subject.lower() == subject.lower() for trust in of_issuer):
        raise refusal("invalid_client subject in another letter case", value=subject)
    if not of_subject:
        raise refusal("invalid_client subject", value=subject)
    if not any(trust.audience in audiences for trust in of_subject):
        raise refusal("invalid_client audience", value=", ".join(audiences))
