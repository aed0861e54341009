"""`VaultEtcdKeyResource`: the key with which kube-apiserver encrypts etcd. The vault has it, and the state its id."""

from __future__ import annotations

from typing import ClassVar

from identity.credentials import etcd_key
from identity.credentials.secret_tags import ENCRYPTION_KEY_ID
from identity.plugin_schema import EncryptionKeyInputs, VaultKeyOutputs
from plugin import Props
from provider.vault_key import VaultKeyResource


class VaultEtcdKeyResource(VaultKeyResource):
    """A key of random bytes."""

    inputs = EncryptionKeyInputs
    outputs = VaultKeyOutputs
    noun: ClassVar[str] = "encryption key"
    content_type: ClassVar[str] = "application/octet-stream"
    tag: ClassVar[str] = ENCRYPTION_KEY_ID
    accepted: ClassVar[str] = f"{etcd_key.KEY_BYTES} bytes in base64"

    def new_key(self) -> str:
        """A new key in base64."""
        return etcd_key.make()

    def described(self, key: str) -> Props:
        """Its id."""
        return {"keyId": etcd_key.key_id(key)}
