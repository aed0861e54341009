"""RSA keys and their operations. The private key leaves the store only for an operation.

Rules: Key Vault REST 7.4 (`JsonWebKeyEncryptionAlgorithm`, RFC 7518 4.2 for RSA1_5, 4.3 for RSA-OAEP, A.1 for
RSA-OAEP-256). Every symmetric or elliptic kind is left out: etcd encryption uses RSA-OAEP-256, and RSA1_5 with the KMS
plugin's version 1.
"""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, cast

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from jwt.utils import base64url_encode, to_base64url_uint

from localcloud.azure.keyvault import errors
from localcloud.azure.keyvault.secrets import KEY_KIND, KeyVault, SecretChange
from localcloud.azure.shared.refusals import refusal
from localcloud.core.certificates import KEY_SIZES, private_pem
from localcloud.core.clock import now
from localcloud.core.store import Store

_BASE64URL: Final = re.compile(r"[A-Za-z0-9_-]+")
_EXPONENT: Final = 65537
_PKCS1_OVERHEAD: Final = 11  # RFC 8017 7.2.1
OPERATIONS: Final = ("encrypt", "decrypt", "wrapKey", "unwrapKey")
"""What can be done with a key here; signing is left out."""
# Operations of keys that are not emulated.
_NOT_EMULATED: Final = ("sign", "verify", "import", "export")
_HASHES: Final = {"RSA-OAEP": hashes.SHA1, "RSA-OAEP-256": hashes.SHA256}


@dataclass(frozen=True)
class KeyVersion:
    """One version of an RSA key. Dates are Unix seconds, UTC; `sealed` is the PKCS#8 PEM as stored."""

    name: str
    version: str
    sealed: str
    created: int
    operations: tuple[str, ...] = OPERATIONS
    enabled: bool = True
    nbf: int | None = None
    exp: int | None = None
    tags: Mapping[str, str] | None = None
    managed: bool = False  # it is a certificate's

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> KeyVersion:
        return cls(**{**stored, "operations": tuple(stored.get("operations", OPERATIONS))})

    def require(self, operation: str) -> None:
        """Refuse an operation that the key does not allow; raises 403. An expired key still decrypts."""
        if operation not in self.operations:
            raise refusal("Forbidden operation of a key", operation=operation)
        if not self.enabled:
            raise refusal("Forbidden disabled key", operation=operation)
        instant, is_public = int(now().timestamp()), operation in ("encrypt", "wrapKey")
        if is_public and self.nbf is not None and instant < self.nbf:
            raise refusal("Forbidden early key", operation=operation)
        if is_public and self.exp is not None and instant >= self.exp:
            raise refusal("Forbidden expired key", operation=operation)


class Keys:
    def __init__(self, store: Store) -> None:
        self._store = store

    def add(
        self,
        vault: KeyVault,
        name: str,
        *,
        version: str | None = None,
        key_size: int = 2048,
        operations: tuple[str, ...] = OPERATIONS,
        change: SecretChange | None = None,
    ) -> KeyVersion:
        """A new version, which creates a missing key; an existing `version` (32 hex digits) is returned as it is."""
        versions = self.versions(vault, name)
        for existing in versions:
            if existing.version == version:
                return existing
        private_key = rsa.generate_private_key(public_exponent=65537, key_size=key_size)
        asked = change or SecretChange()
        added = KeyVersion(
            name,
            version or uuid.uuid4().hex,
            self._store.seal(private_pem(private_key).decode()),
            int(now().timestamp()),
            operations,
            asked.enabled is not False,
            asked.nbf,
            asked.exp,
            asked.tags,
        )
        self._store.put(
            KEY_KIND, vault.key(name), {"versions": [asdict(key_version) for key_version in (*versions, added)]}
        )
        return added

    def create(self, vault: KeyVault, name: str, asked: Mapping[str, Any]) -> KeyVersion:
        """A new version by a client's request (KeyCreateParameters); raises 400, and 501 for what is left out."""
        kind, size = asked.get("kty"), asked.get("key_size")
        if kind != "RSA" or asked.get("crv") is not None:
            raise errors.not_emulated(f"keys of the kind {kind}")
        if size not in (None, *KEY_SIZES):
            raise errors.bad_parameter(f"Invalid key size '{size}': {', '.join(map(str, KEY_SIZES))}.")
        if asked.get("public_exponent") not in (None, _EXPONENT):
            raise errors.not_emulated("keys with another public exponent than 65537")
        attributes, is_exportable = asked.get("attributes"), False
        if isinstance(attributes, Mapping):
            attributes = {**attributes}
            is_exportable = bool(attributes.pop("exportable", False))
        if is_exportable or asked.get("release_policy") is not None:
            raise errors.not_emulated("keys that can be exported")
        return self.add(
            vault,
            name,
            key_size=KEY_SIZES[0] if size is None else int(str(size)),
            operations=_operations(asked.get("key_ops")),
            change=SecretChange.of(attributes, None, asked.get("tags")),
        )

    def versions(self, vault: KeyVault, name: str) -> list[KeyVersion]:
        """Every version of the key, the newest last; empty for an unknown key."""
        document = self._store.get(KEY_KIND, vault.key(name))
        return [KeyVersion.of(version) for version in document["versions"]] if document else []

    def all(self, vault: KeyVault) -> list[KeyVersion]:
        """The newest version of each key of the vault, by name."""
        documents = self._store.items(KEY_KIND, vault.key(""))
        return [KeyVersion.of(document["versions"][-1]) for _, document in documents]

    def find(self, vault: KeyVault, name: str, version: str | None = None) -> KeyVersion:
        """The named version, the newest for None or ""; raises 404 `KeyNotFound`."""
        versions = self.versions(vault, name)
        matching = versions if not version else [candidate for candidate in versions if candidate.version == version]
        if not matching:
            raise errors.not_found("key", name, version)
        return matching[-1]

    def public_numbers(self, key: KeyVersion) -> dict[str, str]:
        """`n` and `e` as in a JSON Web Key."""
        numbers = self._private_key(key).public_key().public_numbers()
        return {"n": to_base64url_uint(numbers.n).decode(), "e": to_base64url_uint(numbers.e).decode()}

    def encrypt(self, key: KeyVersion, algorithm: object, value: object) -> str:
        """`value` (base64url) encrypted with the public key, as base64url; raises 400 `BadParameter`."""
        private_key, plaintext = self._private_key(key), _from_base64url(value)
        scheme, overhead = _scheme(algorithm)
        if len(plaintext) > private_key.key_size // 8 - overhead:
            raise errors.bad_parameter(f"The value is too long for {algorithm} with this key.")
        return base64url(private_key.public_key().encrypt(plaintext, scheme))

    def decrypt(self, key: KeyVersion, algorithm: object, value: object) -> str:
        ciphertext, (scheme, _) = _from_base64url(value), _scheme(algorithm)
        try:
            return base64url(self._private_key(key).decrypt(ciphertext, scheme))
        except ValueError:
            raise errors.bad_parameter("The parameter is incorrect: this key does not decrypt the value.") from None

    def _private_key(self, key: KeyVersion) -> rsa.RSAPrivateKey:
        # The store created this key and authenticates it: checking its primes again would cost 50 ms a call.
        pem = self._store.unseal(key.sealed).encode()
        return cast(
            rsa.RSAPrivateKey, serialization.load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=True)
        )


def _operations(asked: object) -> tuple[str, ...]:
    """The operations of a key; raises 400, and 501 if none of them is emulated."""
    if asked is None or asked == []:
        return OPERATIONS
    if not isinstance(asked, list) or any(name not in (*OPERATIONS, *_NOT_EMULATED) for name in asked):
        raise errors.bad_parameter(f"Property 'key_ops' has invalid value: {', '.join(OPERATIONS)}.")
    return tuple(asked)


def _scheme(algorithm: object) -> tuple[padding.AsymmetricPadding, int]:
    """The padding of an algorithm, and how many bytes of a block it needs; raises 400."""
    if algorithm == "RSA1_5":
        return padding.PKCS1v15(), _PKCS1_OVERHEAD
    digest = _HASHES.get(str(algorithm))
    if digest is None:
        known = " or ".join((*_HASHES, "RSA1_5"))
        raise errors.bad_parameter(f"Property 'alg' has invalid value '{algorithm}': {known}.")
    return padding.OAEP(padding.MGF1(digest()), digest(), None), 2 * digest().digest_size + 2


def base64url(raw: bytes) -> str:
    """Unpadded base64url (RFC 4648 5), as every binary value of the data plane."""
    return base64url_encode(raw).decode()


def _from_base64url(text: object) -> bytes:
    # `b64decode` accepts "+" and "/" even where other letters stand for them, so the alphabet is checked here.
    if not isinstance(text, str) or not _BASE64URL.fullmatch(text) or len(text) % 4 == 1:
        raise errors.bad_parameter("Property 'value' is missing or invalid: base64url is expected.")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
