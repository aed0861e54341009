"""RSA keys and their operations. The private key leaves the store only for an operation.

Rules: Key Vault REST 7.4 (`JsonWebKeyEncryptionAlgorithm`, RFC 7518 4.3 for RSA-OAEP, RFC 7518 A.1 for RSA-OAEP-256).
RSA1_5 and every symmetric or elliptic kind are left out: etcd encryption uses RSA-OAEP-256 alone.
"""

from __future__ import annotations

import base64
import re
import uuid
from dataclasses import asdict, dataclass
from typing import Final, cast

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from localcloud.azure.keyvault import errors
from localcloud.azure.keyvault.vaults import KEY_KIND, KeyVault
from localcloud.core.clock import now
from localcloud.core.store import Store

_BASE64URL: Final = re.compile(r"[A-Za-z0-9_-]+")
_SIZES: Final = (2048, 3072, 4096)
_HASHES: Final = {"RSA-OAEP": hashes.SHA1, "RSA-OAEP-256": hashes.SHA256}


@dataclass(frozen=True)
class KeyVersion:
    """One version of an RSA key. Dates are Unix seconds, UTC; `sealed` is the PKCS#8 PEM as stored."""

    name: str
    version: str
    sealed: str
    created: int


class Keys:
    """The keys of every vault."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, vault: KeyVault, name: str, *, version: str | None = None, key_size: int = 2048) -> KeyVersion:
        """A new version of the key, and the key with it if it is new; an existing `version` is answered as it is.

        Args:
            version: 32 hex digits, drawn when None.
            key_size: bits.
        """
        versions = self.versions(vault, name)
        for existing in versions:
            if existing.version == version:
                return existing
        private_key = rsa.generate_private_key(public_exponent=65537, key_size=key_size)
        pem = private_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        added = KeyVersion(name, version or uuid.uuid4().hex, self._store.seal(pem.decode()), int(now().timestamp()))
        self._store.put(KEY_KIND, _key(vault, name), {"versions": [asdict(each) for each in (*versions, added)]})
        return added

    def create(self, vault: KeyVault, name: str, kind: object, size: object) -> KeyVersion:
        """A new version as a client asks for it: `kty` and `key_size`; raises 400, and 501 for what is left out."""
        if kind != "RSA":
            raise errors.not_emulated(f"keys of the kind {kind}")
        if size not in (None, *_SIZES):
            raise errors.bad_parameter(f"Invalid key size '{size}': {', '.join(map(str, _SIZES))}.")
        return self.add(vault, name, key_size=_SIZES[0] if size is None else int(str(size)))

    def versions(self, vault: KeyVault, name: str) -> list[KeyVersion]:
        """Every version of the key, the newest last; empty when there is no such key."""
        document = self._store.get(KEY_KIND, _key(vault, name))
        return [KeyVersion(**each) for each in document["versions"]] if document else []

    def all(self, vault: KeyVault) -> list[KeyVersion]:
        """The newest version of each key of the vault, by name."""
        found = self._store.items(KEY_KIND, _key(vault, ""))
        return [KeyVersion(**document["versions"][-1]) for _, document in found]

    def find(self, vault: KeyVault, name: str, version: str | None) -> KeyVersion:
        """The named version, the newest for None or ""; raises 404 `KeyNotFound`."""
        versions = self.versions(vault, name)
        found = versions if not version else [each for each in versions if each.version == version]
        if not found:
            raise errors.not_found("key", f"{name}/{version}" if version else name)
        return found[-1]

    def public_numbers(self, key: KeyVersion) -> dict[str, str]:
        """`n` and `e` as in a JSON Web Key."""
        numbers = self._private_key(key).public_key().public_numbers()
        return {"n": _base64url_uint(numbers.n), "e": _base64url_uint(numbers.e)}

    def encrypt(self, key: KeyVersion, algorithm: object, value: object) -> str:
        """`value` (base64url) encrypted with the public key, as base64url; raises 400 `BadParameter`."""
        private_key, scheme, plaintext = self._prepared(key, algorithm, value)
        if len(plaintext) > private_key.key_size // 8 - 2 * scheme.algorithm.digest_size - 2:
            raise errors.bad_parameter(f"The value is too long for {algorithm} with this key.")
        return base64url(private_key.public_key().encrypt(plaintext, scheme))

    def decrypt(self, key: KeyVersion, algorithm: object, value: object) -> str:
        """The inverse of `encrypt`."""
        private_key, scheme, ciphertext = self._prepared(key, algorithm, value)
        try:
            return base64url(private_key.decrypt(ciphertext, scheme))
        except ValueError:
            raise errors.bad_parameter("The parameter is incorrect: this key does not decrypt the value.") from None

    def _prepared(
        self, key: KeyVersion, algorithm: object, value: object
    ) -> tuple[rsa.RSAPrivateKey, padding.OAEP, bytes]:
        digest = _HASHES.get(str(algorithm))
        if digest is None:
            raise errors.bad_parameter(f"Property 'alg' has invalid value '{algorithm}': {' or '.join(_HASHES)}.")
        scheme = padding.OAEP(padding.MGF1(digest()), digest(), None)
        return self._private_key(key), scheme, _from_base64url(value)

    def _private_key(self, key: KeyVersion) -> rsa.RSAPrivateKey:
        # The store made this key and authenticates it: checking its primes again would cost 50 ms a call.
        pem = self._store.unseal(key.sealed).encode()
        return cast(
            rsa.RSAPrivateKey, serialization.load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=True)
        )


def base64url(raw: bytes) -> str:
    """Unpadded base64url (RFC 4648 5), as every binary value of the data plane."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _from_base64url(text: object) -> bytes:
    # `b64decode` accepts "+" and "/" even where other letters stand for them, so the alphabet is checked here.
    if not isinstance(text, str) or not _BASE64URL.fullmatch(text) or len(text) % 4 == 1:
        raise errors.bad_parameter("Property 'value' is missing or invalid: base64url is expected.")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _base64url_uint(number: int) -> str:
    return base64url(number.to_bytes((number.bit_length() + 7) // 8))


def _key(vault: KeyVault, name: str) -> str:
    return f"{vault.name}/{name}".lower()
