"""The login that a stack's configuration describes."""

from __future__ import annotations

from pathlib import Path

from identity.aks.login import Login
from identity.login_kinds import LoginKind
from identity.settings import AccessSettings


def login_of(access: AccessSettings, tenant_id: str, authority_host: str) -> Login:
    """How the stack signs in to its management cluster; raises LoginRefusedError."""
    return Login(
        kind=access.login,
        tenant_id=None if access.login is LoginKind.MANAGED_IDENTITY else tenant_id,
        client_id=access.client_id,
        certificate=_path(access.certificate),
        client_secret_file=_path(access.client_secret_file),
        federated_token_file=_path(access.federated_token_file),
        authority_host=authority_host,
    )


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)
