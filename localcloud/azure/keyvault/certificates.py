"""Certificates: self-signed by the vault, or imported, with the secret of the same name that holds key and certificate.

Rules: Key Vault REST 7.4 (`CertificatePolicy`, `CertificateBundle`), azure-docs `about-certificates` (composition of a
certificate). A certificate lives and dies with its secret: both have one version, one deletion and one recovery. Left
out: other issuers than `Self`, renewal by the vault, the key of the same name.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, PrivateFormat, pkcs12
from cryptography.x509.oid import NameOID

from localcloud.azure.keyvault import errors
from localcloud.azure.keyvault.secrets import DeletedSecret, SecretChange, Secrets
from localcloud.azure.keyvault.vaults import CERTIFICATE_KIND, KeyVault
from localcloud.core.certificates import KEY_SIZES, PEM_BEGINS, KeyMaterial, UnreadableKeyMaterial, issue, parse
from localcloud.core.clock import now
from localcloud.core.store import Store

PKCS12: Final = "application/x-pkcs12"
PEM: Final = "application/x-pem-file"
_ROUNDS: Final = 2048
# The library refuses the empty password. It is two zero bytes where keys are derived (RFC 7292 B.1), this one is four,
# and both are repeated to the length of a block (B.2): the same key.
_EMPTY: Final = b"\x00"
_MONTH: Final = timedelta(days=30)
_MONTHS: Final = 12  # of a policy that names none


@dataclass(frozen=True)
class CertificateVersion:
    """One version of a certificate, which is that of its secret; `cer` is the certificate, base64 of DER."""

    name: str
    version: str
    cer: str
    policy: Mapping[str, Any]
    created: int

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
        found = versions if not version else [each for each in versions if each.version == version]
        if not found:
            raise errors.not_found("certificate", f"{name}/{version}" if version else name)
        return found[-1]

    def find_deleted(self, vault: KeyVault, name: str) -> tuple[CertificateVersion, DeletedSecret]:
        """A soft-deleted certificate and its secret; raises 404."""
        deleted, versions = self._secrets.find_deleted(vault, name), self._versions(vault, name)
        if deleted is None or not versions:
            raise errors.not_found("certificate", name)
        return versions[-1], deleted

    def all(self, vault: KeyVault) -> list[CertificateVersion]:
        """The newest version of each live certificate of the vault, by name."""
        names = [key.partition("/")[2] for key, _ in self._store.items(CERTIFICATE_KIND, _key(vault, ""))]
        return [self.find(vault, name) for name in names if self._secrets.find(vault, name) is not None]

    def create(self, vault: KeyVault, name: str, policy: object) -> CertificateVersion:
        """A self-signed certificate by a policy; raises 400, 409, and 501 for another issuer."""
        asked = policy if isinstance(policy, dict) else {}
        issuer = _member(asked, "issuer").get("name")
        if issuer != "Self":
            raise errors.not_emulated(f"certificates of the issuer {issuer}")
        key, properties = _member(asked, "key_props"), _member(asked, "x509_props")
        try:
            subject = x509.Name.from_rfc4514_string(str(properties.get("subject") or ""))
            [common_name] = subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        except ValueError:
            raise errors.bad_parameter("Property policy.x509_props.subject has invalid value: CN=<name>.") from None
        size = key.get("key_size") or min(KEY_SIZES)
        if key.get("kty", "RSA") != "RSA" or size not in KEY_SIZES:
            raise errors.bad_parameter("Property policy.key_props has invalid value: RSA of 2048, 3072 or 4096 bits.")
        issued = issue(
            str(common_name.value),
            key_size=size,
            not_before=now(),
            lifetime=_MONTH * int(properties.get("validity_months") or _MONTHS),
        )
        return self._add(vault, name, issued, asked)

    def import_(
        self, vault: KeyVault, name: str, value: object, password: object, policy: object
    ) -> CertificateVersion:
        """A certificate with its key, PEM or PKCS#12 in base64; raises 400 and 409."""
        try:
            material = _material(str(value or ""), str(password or ""))
        except (binascii.Error, UnreadableKeyMaterial, ValueError):
            raise errors.bad_parameter("The specified PKCS#12 or PEM content cannot be read.") from None
        return self._add(vault, name, material, policy if isinstance(policy, dict) else {})

    def delete(self, vault: KeyVault, name: str) -> tuple[CertificateVersion, DeletedSecret]:
        """Soft-delete a certificate with its secret; raises 404."""
        self.find(vault, name)
        self._secrets.delete(vault, name)
        return self.find_deleted(vault, name)

    def recover(self, vault: KeyVault, name: str) -> CertificateVersion:
        """Bring a soft-deleted certificate and its secret back; raises 404."""
        self.find_deleted(vault, name)
        self._secrets.recover(vault, name)
        return self.find(vault, name)

    def purge(self, vault: KeyVault, name: str) -> None:
        """Remove a soft-deleted certificate for good; raises 404, or 403 under purge protection."""
        self.find_deleted(vault, name)
        with self._store.transaction():
            self._secrets.purge(vault, name)
            self._store.delete(CERTIFICATE_KIND, _key(vault, name))

    def _add(self, vault: KeyVault, name: str, material: KeyMaterial, policy: Mapping[str, Any]) -> CertificateVersion:
        certificate = material.certificate
        kind = _member(policy, "secret_props").get("contentType") or PKCS12
        text = material.pem().decode() if kind == PEM else base64.b64encode(_pfx(material)).decode()
        dates = (certificate.not_valid_before_utc, certificate.not_valid_after_utc)
        start, end = (int(each.timestamp()) for each in dates)
        with self._store.transaction():
            secret = self._secrets.set(vault, name, text, SecretChange(nbf=start, exp=end, content_type=kind))
            added = CertificateVersion(
                name=secret.name,
                version=secret.version,
                cer=base64.b64encode(certificate.public_bytes(Encoding.DER)).decode(),
                policy=dict(policy),
                created=secret.created,
            )
            versions = [*self._versions(vault, name), added]
            self._store.put(CERTIFICATE_KIND, _key(vault, name), {"versions": [asdict(each) for each in versions]})
        return added

    def _versions(self, vault: KeyVault, name: str) -> list[CertificateVersion]:
        document = self._store.get(CERTIFICATE_KIND, _key(vault, name))
        return [CertificateVersion(**each) for each in document["versions"]] if document else []


def _material(value: str, password: str) -> KeyMaterial:
    # SDKs send PEM as it is, the Azure CLI in base64 with line breaks.
    data = value.encode() if PEM_BEGINS in value.encode() else base64.b64decode("".join(value.split()), validate=True)
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


def _member(holder: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = holder.get(name)
    return found if isinstance(found, Mapping) else {}


def _key(vault: KeyVault, name: str) -> str:
    return f"{vault.name}/{name}".lower()
