"""Recovers soft-deleted vaults and secrets by ARM id, as `az keyvault [secret] recover` does on Azure."""

from __future__ import annotations

import re
from typing import Final

from localcloud.azure.keyvault.errors import VaultError
from localcloud.azure.keyvault.secrets import Secrets
from localcloud.azure.keyvault.vaults import VAULTS, Vaults
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.resource_store import Resources

_SECRETS: Final = f"{VAULTS}/secrets"
_ID: Final = re.compile(
    rf"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/{re.escape(VAULTS)}/([^/]+)(?:/secrets/([^/]+))?",
    re.IGNORECASE,
)


class NotDeletedError(LookupError):
    """Nothing soft-deleted has this resource id."""


def recover(cloud: LocalAzure, resource_id: str) -> None:
    """Recover a vault or a secret; its resource id in any letter case.

    Raises:
        NotDeletedError: no soft-deleted resource has this id.
        ValueError: it is not the id of a vault or secret.
    """
    match = _ID.fullmatch(resource_id)
    if match is None:
        raise ValueError(f"{resource_id} is neither a {VAULTS} nor a {_SECRETS}")
    vault, secret = match.groups()
    if secret is None:
        _recover_vault(Vaults(Resources(cloud.store)), vault, resource_id)
    else:
        _recover_secret(cloud, vault, secret, resource_id)


def _recover_vault(vaults: Vaults, name: str, resource_id: str) -> None:
    deleted = vaults.deleted(name)
    if deleted is None or deleted.vault.id.lower() != resource_id.lower():
        raise NotDeletedError(f"no deleted vault {resource_id}")
    vaults.recover(deleted)


def _recover_secret(cloud: LocalAzure, name: str, secret: str, resource_id: str) -> None:
    vault = Vaults(Resources(cloud.store)).named(name)
    try:
        if vault is None:
            raise NotDeletedError(f"no vault {name}")
        Secrets(cloud.store).recover(vault, secret)
    except VaultError:
        raise NotDeletedError(f"no deleted secret {resource_id}") from None
