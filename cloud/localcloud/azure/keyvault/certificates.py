"""Certificates: self-signed by the vault, or imported, with the secret of the same name that holds key and certificate.

Rules: Key Vault REST 7.4 (`CertificateBundle`), azure-docs `about-certificates` (composition of a certificate). A
certificate lives and dies with its secret and its key: they have one version, one deletion and one recovery. The key of
the same name is read out of the secret.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12

from localcloud.azure.keyvault import errors, policies
from localcloud.azure.keyvault.keys import KeyVersion
from localcloud.azure.keyvault.secrets import DeletedSecret, SecretChange, Secrets
from localcloud.azure.keyvault.vaults import CERTIFICATE_KIND, KeyVault
from localcloud.core.certificates import PEM_BEGINS, ForeignKeyKindError, KeyMaterial, UnreadableKeyMaterialError, parse
from localcloud.core.store import Store

_OLD_KEY: Final = re.compile(rb"-----BEGIN (RSA|EC|DSA) PRIVATE KEY-----")
_ROUNDS: Final = 2048
# The library refuses the empty password. It is two zero bytes where keys are derived (RFC 7292 B.1), this one is four,
# and both are repeated to the length of a block (B.2): the same key.
_EMPTY: Final = b"\x00"


@dataclass(frozen=True)
class CertificateVersion:
    """One version of a certificate, which is that of its secret; `cer` is the certificate, base64 of DER."""

    name: str
    version: str
    cer: str
    policy: Mapping[str, Any]
    created: int
    enabled: bool = True
    tags: Mapping[str, str] | None = None

    @property
    def certificate(self) -> x509.Certificate:
        """The certificate itself."""
        return x509.load_der_x509_certificate(base64.b64decode(self.cer))


class Certificates:
    """The certificates of every vault."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._secrets = Secrets(store)

    def find(self, vault: KeyVault, name: str, version: str | None = None) -> CertificateVersion:
        """The named version, the newest for None or ""; raises 404 `CertificateNotFound`."""
        versions = self._versions(vault, name) if self._secrets.find(vault, name) is not None else []
        matching = versions if not version else [candidate for candidate in versions if candidate.version == version]
        if not matching:
            raise errors.not_found("certificate", name, version)
        return matching[-1]

    def find_deleted(self, vault: KeyVault, name: str) -> tuple[CertificateVersion, DeletedSecret]:
        """A soft-deleted certificate and its secret; raises 404."""
        deleted, versions = self._secrets.find_deleted(vault, name), self._versions(vault, name)
        if deleted is None or not versions:
            raise errors.not_found("certificate", name)
        return versions[-1], deleted

    def all(self, vault: KeyVault) -> list[CertificateVersion]:
        """The newest version of each live certificate of the vault, by name."""
        names = [key.partition("/")[2] for key, _ in self._store.items(CERTIFICATE_KIND, vault.key(""))]
        return [self.find(vault, name) for name in names if self._secrets.find(vault, name) is not None]

    def versions(self, vault: KeyVault, name: str) -> list[CertificateVersion]:
        """Every version of a live certificate, the newest last; raises 404."""
        self.find(vault, name)
        return self._versions(vault, name)

    def all_deleted(self, vault: KeyVault) -> list[tuple[CertificateVersion, DeletedSecret]]:
        """The newest version of each soft-deleted certificate of the vault, by name."""
        names = [deleted.secret.name for deleted in self._secrets.all_deleted(vault) if deleted.secret.current.managed]
        return [self.find_deleted(vault, name) for name in names]

    def create(self, vault: KeyVault, name: str, policy: Mapping[str, Any], change: SecretChange) -> CertificateVersion:
        """A self-signed certificate by a policy; raises 400, 409, and 501 for what is not emulated."""
        if policies.reuses_key(policy) and self._secrets.find(vault, name) is not None:
            raise errors.not_emulated("another version of a certificate with the key of the one before")
        return self._add(vault, name, policies.issue(policy), policy, change, issuer="Self")

    def import_(
        self,
        vault: KeyVault,
        name: str,
        content: tuple[object, object],
        policy: Mapping[str, Any],
        change: SecretChange,
    ) -> CertificateVersion:
        """A certificate with its key, by content and password: PEM, or PKCS#12 in base64.

        Raises:
            VaultError: 400, 409, and 501 for another key than RSA.
        """
        policies.check_import(policy)
        try:
            material = _material(*(str(part or "") for part in content))
        except ForeignKeyKindError:
            raise errors.not_emulated("certificates with keys of another kind than RSA") from None
        except (binascii.Error, UnreadableKeyMaterialError, ValueError):
            raise errors.bad_parameter("The specified PKCS#12 or PEM content cannot be read.") from None
        return self._add(vault, name, material, policy, change, issuer="Unknown")

    def key(self, vault: KeyVault, name: str, version: str | None) -> KeyVersion:
        """The key of a certificate, from the secret of the same version; raises 404."""
        certificate = self.find(vault, name, version)
        secret = self._secrets.find(vault, name)
        kept = secret.at(certificate.version) if secret else None
        if kept is None:
            raise errors.not_found("key", name)
        text = self._secrets.value(kept)
        data = text.encode() if PEM_BEGINS in text.encode() else base64.b64decode(text)
        pem = parse(data).private_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        sealed = self._store.seal(pem.decode())
        return KeyVersion(
            certificate.name,
            certificate.version,
            sealed,
            certificate.created,
            enabled=certificate.enabled,
            managed=True,
        )

    def delete(self, vault: KeyVault, name: str) -> tuple[CertificateVersion, DeletedSecret]:
        """Soft-delete a certificate with its secret; raises 404."""
        self.find(vault, name)
        self._secrets.delete(vault, name, managed=True)
        return self.find_deleted(vault, name)

    def recover(self, vault: KeyVault, name: str) -> CertificateVersion:
        """Recover a soft-deleted certificate and its secret; raises 404."""
        self.find_deleted(vault, name)
        self._secrets.recover(vault, name)
        return self.find(vault, name)

    def purge(self, vault: KeyVault, name: str) -> None:
        """Purge a soft-deleted certificate; raises 404, or 403 under purge protection."""
        self.find_deleted(vault, name)
        with self._store.transaction():
            self._secrets.purge(vault, name)
            self._store.delete(CERTIFICATE_KIND, vault.key(name))

    def _add(
        self,
        vault: KeyVault,
        name: str,
        material: KeyMaterial,
        policy: Mapping[str, Any],
        change: SecretChange,
        *,
        issuer: str,
    ) -> CertificateVersion:
        certificate, kind = material.certificate, policies.content_type(policy)
        text = material.pem().decode() if kind == policies.PEM else base64.b64encode(_pfx(material)).decode()
        dates = (certificate.not_valid_before_utc, certificate.not_valid_after_utc)
        start, end = (int(date.timestamp()) for date in dates)
        enabled = change.enabled is not False
        of_secret = SecretChange(enabled=enabled, nbf=start, exp=end, content_type=kind, tags=change.tags)
        with self._store.transaction():
            secret = self._secrets.set(vault, name, text, of_secret, managed=True)
            added = CertificateVersion(
                name=secret.name,
                version=secret.version,
                cer=base64.b64encode(certificate.public_bytes(Encoding.DER)).decode(),
                policy=policies.filled(policy, material, issuer),
                created=secret.created,
                enabled=enabled,
                tags=change.tags,
            )
            versions = [*self._versions(vault, name), added]
            self._store.put(CERTIFICATE_KIND, vault.key(name), {"versions": [asdict(version) for version in versions]})
        return added

    def _versions(self, vault: KeyVault, name: str) -> list[CertificateVersion]:
        document = self._store.get(CERTIFICATE_KIND, vault.key(name))
        return [CertificateVersion(**version) for version in document["versions"]] if document else []


def _material(value: str, password: str) -> KeyMaterial:
    # SDKs send PEM as it is, the Azure CLI in base64 with line breaks.
    data = value.encode() if PEM_BEGINS in value.encode() else base64.b64decode("".join(value.split()), validate=True)
    if _OLD_KEY.search(data):
        # azure-cli issues 8099 and 19017: a key in PEM has to be PKCS#8.
        raise errors.bad_parameter(
            "The specified PEM X.509 certificate content is in an unexpected format. Please check if certificate is in "
            "valid PEM format."
        )
    return parse(data, password.encode() or None)


def _pfx(material: KeyMaterial) -> bytes:
    """PKCS#12 as Key Vault writes it: 3DES and a MAC by SHA-1, with the empty password."""
    key, (certificate, *others) = material.private_key, material.chain
    protection = (
        PrivateFormat.PKCS12.encryption_builder()
        .kdf_rounds(_ROUNDS)
        .key_cert_algorithm(pkcs12.PBES.PBESv1SHA1And3KeyTripleDESCBC)
        .hmac_hash(hashes.SHA1())  # noqa: S303
        .build(_EMPTY)
    )
    return pkcs12.serialize_key_and_certificates(None, key, certificate, others, protection)
