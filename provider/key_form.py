"""What distinguishes the two keys of a hosted cluster: their form in the vault and in Kubernetes, and their words."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from identity.credentials import service_account_key
from identity.credentials.secret_tags import ENCRYPTION_KEY_ID, SIGNING_KEY_ID
from identity.credentials.service_account_key import ETCD_KEY_BYTES, etcd_key_id, make_etcd_key
from plugin import Props


@dataclass(frozen=True, kw_only=True)
class KeyForm:
    """One kind of key, a text in the vault. Functions that get such a text raise UnusableKeyError.

    Attributes:
        content_type: of the secret in the vault.
        tag: the secret's tag with the key's id.
        accepted: what the vault may hold, in a message.
        other_key: the key that the vault's is compared with, in a message.
        make: a new key.
        described: the outputs that a key determines, `keyId` among them.
        normalized: a key from elsewhere in the one form that HyperShift reads.
        to_kubernetes: the bytes of the Kubernetes Secret.
        from_kubernetes: the vault's text for such bytes; raises UnicodeDecodeError.
    """

    noun: str
    content_type: str
    tag: str
    accepted: str
    other_key: str
    make: Callable[[], str]
    described: Callable[[str], Props]
    normalized: Callable[[str], str]
    to_kubernetes: Callable[[str], bytes]
    from_kubernetes: Callable[[bytes], str]


def _public_half(pem: str) -> Props:
    public = service_account_key.public_half(pem)
    return {"keyId": public.key_id, "jwk": dict(public.jwk), "publicKeyPem": public.pem}


SIGNING_KEY: Final = KeyForm(
    noun="signing key",
    content_type="application/x-pem-file",
    tag=SIGNING_KEY_ID,
    accepted="an RSA private key in PEM",
    other_key="the issuer publishes",
    make=service_account_key.make,
    described=_public_half,
    normalized=service_account_key.normalize,
    to_kubernetes=str.encode,
    from_kubernetes=bytes.decode,
)
ENCRYPTION_KEY: Final = KeyForm(
    noun="encryption key",
    content_type="application/octet-stream",
    tag=ENCRYPTION_KEY_ID,
    accepted=f"{ETCD_KEY_BYTES} bytes in base64",
    other_key="the one that encrypts etcd",
    make=make_etcd_key,
    described=lambda key: {"keyId": etcd_key_id(key)},
    normalized=str,
    to_kubernetes=base64.b64decode,
    from_kubernetes=lambda held: base64.b64encode(held).decode(),
)
