"""`EncryptionKeyResource`: the key with which kube-apiserver encrypts etcd. The vault has it, and the state its id."""

from __future__ import annotations

from typing import ClassVar

from identity.credentials import encryption_key
from identity.credentials.secret_tags import ENCRYPTION_KEY_ID
from plugin import Props
from provider.vault_key import VaultKeyResource


class EncryptionKeyResource(VaultKeyResource):
    """Inputs and outputs are those of every key in the vault (`provider/vault_key.py`); of the key `keyId`."""

    noun: ClassVar[str] = "encryption key"
    content_type: ClassVar[str] = "application/octet-stream"
    tag: ClassVar[str] = ENCRYPTION_KEY_ID
    sources: ClassVar[tuple[str, ...]] = ("made",)
    facts: ClassVar[tuple[str, ...]] = ("keyId",)
    accepted: ClassVar[str] = f"{encryption_key.KEY_BYTES} bytes in base64"

    def made(self) -> str:
        """A new key in base64."""
        return encryption_key.make()

    def described(self, key: str) -> Props:
        """Its id."""
        return {"keyId": encryption_key.key_id(key)}
