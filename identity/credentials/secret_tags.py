"""The tags of a Key Vault secret with a credential, which describe it to those who read only metadata."""

from __future__ import annotations

from typing import Final

# SHA-1 of the certificate, upper-case hexadecimal.
THUMBPRINT: Final = "thumbprint"
# Slot and number of a certificate that the stack issued (`a2`).
GENERATION: Final = "generation"
# When the credential was written, RFC 3339.
DELIVERED_AT: Final = "delivered_at"
# msi-dataplane's (pkg/dataplane/keyvault.go), RFC 3339.
RENEW_AFTER: Final = "renew_after"
CANNOT_RENEW_AFTER: Final = "cannot_renew_after"
# Of a key that signs service-account tokens: the `kid` of these tokens. No credential has it.
SIGNING_KEY_ID: Final = "signing_key_id"
# Of a key that encrypts etcd: the hash of the key. No credential has it.
ENCRYPTION_KEY_ID: Final = "encryption_key_id"
# The owner id of the stack that wrote it (`provider/namespace_guard.py`). Keys of hosted clusters, managed identities
# and applications carry it, too.
OWNER: Final = "idstack-owner"
OWN_TAGS: Final = (THUMBPRINT, GENERATION, DELIVERED_AT, RENEW_AFTER, CANNOT_RENEW_AFTER, OWNER)
# learn.microsoft.com/azure/key-vault/secrets/about-secrets
MOST_TAGS: Final = 15
