"""Where the consumer of a mount finds its credential file."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from azure.core.credentials import AccessToken
from azure.identity import ClientAssertionCredential, CredentialUnavailableError

from identity.credentials.transport import EnvironmentTransport

Kind: TypeAlias = Literal["file", "env", "cloud-config", "token"]

# The key by which cloud-provider-azure, the CSI drivers and the KMS plugin name the file.
_CLOUD_CONFIG_KEY: Final = "aadMSIDataPlaneIdentityPath"


class CredentialNotNamedError(ValueError):
    """The variable or document does not name the credential file."""


@dataclass(frozen=True)
class CredentialSource:
    """`file:PATH`, `env:NAME` of a variable with the path, `cloud-config:PATH` of a document that names it, or
    `token:PATH` of a service account's token.

    `mount_root` is put before absolute paths that do not lie below it already: set where pods are processes without
    mount namespaces of their own.
    """

    kind: Kind
    name: str
    mount_root: Path | None = None

    @classmethod
    def parse(cls, text: str, mount_root: Path | None) -> CredentialSource:
        """Read the argument; raises ValueError."""
        kind, _, name = text.partition(":")
        for known in get_args(Kind):
            if kind == known and name:
                return cls(known, name, mount_root)
        raise ValueError(f"found {text!r}; accepted: file:PATH, env:NAME, cloud-config:PATH or token:PATH")

    def path(self) -> Path:
        """The credential file's path; raises `CredentialNotNamedError`. It need not exist yet."""
        match self.kind:
            case "file" | "token":
                return self._located(self.name)
            case "env":
                return self._located(self._from_environment())
            case "cloud-config":
                return self._located(self._from_cloud_config())

    def _from_environment(self) -> str:
        if path := os.environ.get(self.name):
            return path
        raise CredentialNotNamedError(
            f"variable {self.name}: found none; accepted: the path of the credential file; set it on the container"
        )

    def _from_cloud_config(self) -> str:
        document = self._located(self.name)
        try:
            path = json.loads(document.read_bytes())[_CLOUD_CONFIG_KEY]
        except OSError as error:
            found = f"no readable document ({error.strerror})"
        except (ValueError, TypeError, KeyError):
            found = f'no JSON object with "{_CLOUD_CONFIG_KEY}"'
        else:
            if isinstance(path, str) and path:
                return path
            found = f'an empty "{_CLOUD_CONFIG_KEY}"'
        raise CredentialNotNamedError(
            f"cloud config {document}: found {found}; accepted: the path of the credential file under that key; "
            "check the Secret that holds the document, and its mount"
        )

    def _located(self, path: str) -> Path:
        if self.mount_root is None or not Path(path).is_absolute() or Path(path).is_relative_to(self.mount_root):
            return Path(path)
        return self.mount_root / path.lstrip("/")


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
            transport=EnvironmentTransport(connection_timeout=_TIMEOUT_SECONDS, read_timeout=_TIMEOUT_SECONDS),
        ) as credential:
            return credential.get_token(scope)
