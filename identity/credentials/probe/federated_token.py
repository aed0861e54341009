"""A service account's token, which a pod of a self-managed hosted cluster exchanges at Entra ID.

The variables beside it are those of azidentity's `WorkloadIdentityCredential`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from azure.core.credentials import AccessToken
from azure.identity import ClientAssertionCredential, CredentialUnavailableError

from identity.credentials.sign_in import ca_bundle

_TENANT: Final = "AZURE_TENANT_ID"
_CLIENT: Final = "AZURE_CLIENT_ID"
_AUTHORITY: Final = "AZURE_AUTHORITY_HOST"
_TIMEOUT_SECONDS: Final = 15


@dataclass(frozen=True, kw_only=True)
class FederatedToken:
    """The token, its validity, and the identity that it signs in. Only Entra ID says whether it trusts it."""

    assertion: str = field(repr=False)
    not_before: datetime
    expires: datetime
    authority_host: str
    tenant_id: str
    client_id: str
    thumbprint: None = None

    @classmethod
    def read(cls, file: Path, environ: Mapping[str, str]) -> FederatedToken:
        """Read the file; raises CredentialUnavailableError."""
        if missing := [name for name in (_TENANT, _CLIENT, _AUTHORITY) if not environ.get(name)]:
            raise CredentialUnavailableError(f"variable {missing[0]}: found none; set it on the container")
        try:
            assertion = file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise CredentialUnavailableError(
                f"token file {file}: found no readable file ({error}); read the log of token-minter, which writes it"
            ) from None
        try:
            claims = json.loads(base64.urlsafe_b64decode(assertion.split(".")[1] + "=="))
            begins, ends = (datetime.fromtimestamp(claims[name], UTC) for name in ("nbf", "exp"))
        except (ValueError, LookupError, TypeError, OverflowError):
            raise CredentialUnavailableError(f"token file {file}: found no token of a service account") from None
        return cls(
            assertion=assertion,
            not_before=begins,
            expires=ends,
            authority_host=environ[_AUTHORITY],
            tenant_id=environ[_TENANT],
            client_id=environ[_CLIENT],
        )

    def sign_in(self, scope: str) -> AccessToken:
        """Exchange it, past every cache; raises ClientAuthenticationError, whose reason `refusal` returns."""
        with ClientAssertionCredential(
            self.tenant_id,
            self.client_id,
            lambda: self.assertion,
            authority=self.authority_host,
            disable_instance_discovery=True,
            retry_total=0,
            connection_timeout=_TIMEOUT_SECONDS,
            read_timeout=_TIMEOUT_SECONDS,
            connection_verify=ca_bundle(),
        ) as credential:
            return credential.get_token(scope)
