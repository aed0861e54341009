"""The key with which kube-apiserver encrypts what it writes into etcd (`aescbc`).

Its length is that of openshift/hypershift at 3ee9615, cmd/cluster/core/create.go:1159-1179. In a vault it is in base64.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
from typing import Final

from identity.credentials.service_account_key import UnusableKeyError

KEY_BYTES: Final = 32


def make() -> str:
    """A new key in base64."""
    return base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def key_id(key: str) -> str:
    """An id that tells nothing of the key: its SHA-256 hash in hexadecimal. Raises UnusableKeyError."""
    try:
        raw = base64.b64decode(key, validate=True)
    except (binascii.Error, ValueError):
        raise UnusableKeyError("no key in base64") from None
    if len(raw) != KEY_BYTES:
        raise UnusableKeyError(f"a key of {len(raw)} bytes; it has {KEY_BYTES}")
    return hashlib.sha256(raw).hexdigest()
