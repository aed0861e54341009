"""What hosted clusters share: the vault with their credentials, and the key-vault-user that reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from identity.naming import parse_arm_id, vault_id
from identity.settings import Settings


@dataclass(frozen=True, kw_only=True)
class CredentialStore:
    """A vault and its key-vault-user: made by this stack, or by the shared stack whose outputs it takes.

    `vault_id` is an ARM id, empty in a stack without a vault; the key-vault-user's client id is empty if no pod mounts
    a secret. `reader` is the key-vault-user's object id if it gets a role on each secret, None if it has one on the
    whole vault. Secrets depend on the resources in `vault`, mounts on those in `key_vault_user`; both are empty if
    another stack made them.
    """

    vault_id: str
    vault_uri: pulumi.Input[str]
    key_vault_user_client_id: pulumi.Input[str]
    reader: pulumi.Input[str] | None = None
    vault: Sequence[pulumi.Resource] = ()
    key_vault_user: Sequence[pulumi.Resource] = ()

    @property
    def vault_name(self) -> str:
        """The vault's name, from its ARM id; empty without a vault."""
        return parse_arm_id(self.vault_id).name if self.vault_id else ""


def vault_of(settings: Settings, shared: CredentialStore | None) -> str:
    """ARM id of the vault of the stack: the shared stack's, or its own; empty if it has none."""
    if shared is not None:
        return shared.vault_id
    if settings.vault is None:
        return ""
    return vault_id(settings.subscription_id, settings.resource_group, settings.vault.name)
