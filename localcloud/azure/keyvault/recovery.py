"""Recovers soft-deleted vaults and secrets by ARM id, as `az keyvault [secret] recover` does on Azure."""

from __future__ import annotations

from typing import Final

from identity.naming import ArmId, parse_arm_id
from localcloud.azure.keyvault.errors import VaultError
from localcloud.azure.keyvault.secrets import Secrets
from localcloud.azure.keyvault.vaults import VAULTS, Vaults
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.resource_store import Resources

_SECRETS: Final = f"{VAULTS}/secrets"


class NotDeleted(LookupError):
    """Nothing soft-deleted has this resource id."""


def recover(cloud: LocalAzure, resource_id: str) -> None:
    """Recover a vault or a secret; its resource id in any letter case.

    Raises:
        NotDeleted: there is no such soft-deleted resource.
        ValueError: it is not the id of a vault or secret.
    """
    found = parse_arm_id(resource_id)
    match found.type.lower():
        case kind if kind == VAULTS.lower():
            _recover_vault(Vaults(Resources(cloud.store)), found, resource_id)
        case kind if kind == _SECRETS.lower():
            _recover_secret(cloud, found, resource_id)
        case _:
            raise ValueError(f"{resource_id} is neither a {VAULTS} nor a {_SECRETS}")


def _recover_vault(vaults: Vaults, found: ArmId, resource_id: str) -> None:
    deleted = vaults.deleted(found.name)
    if deleted is None or deleted.vault.id.lower() != resource_id.lower():
        raise NotDeleted(f"no deleted vault {resource_id}")
    vaults.recover(deleted)


def _recover_secret(cloud: LocalAzure, found: ArmId, resource_id: str) -> None:
    name, _ = found.names
    vault = Vaults(Resources(cloud.store)).named(name)
    try:
        if vault is None:
            raise NotDeleted(f"no vault {name}")
        Secrets(cloud.store).recover(vault, found.name)
    except VaultError:
        raise NotDeleted(f"no deleted secret {resource_id}") from None
