"""`VaultSigningKeyResource`: a key that signs service-account tokens. The vault has it, the state its public half."""

from __future__ import annotations

from typing import ClassVar

from identity.credentials import service_account_key
from identity.credentials.secret_tags import SIGNING_KEY_ID
from identity.plugin_schema import SigningKeyInputs, SigningKeyOutputs
from plugin import Props
from provider.vault_key import VaultKeyResource


class VaultSigningKeyResource(VaultKeyResource):
    """An RSA key, and its public half."""

    inputs = SigningKeyInputs
    outputs = SigningKeyOutputs
    noun: ClassVar[str] = "signing key"
    content_type: ClassVar[str] = "application/x-pem-file"
    tag: ClassVar[str] = SIGNING_KEY_ID
    accepted: ClassVar[str] = "an RSA private key in PEM"

    def new_key(self) -> str:
        """A new RSA key in PEM."""
        return service_account_key.make()

    def described(self, key: str) -> Props:
        """The public half."""
        public = service_account_key.public_half(key)
        return {"keyId": public.key_id, "jwk": dict(public.jwk), "publicKeyPem": public.pem}

    def normalized(self, key: str) -> str:
        """The one form that HyperShift reads."""
        return service_account_key.normalize(key)
