"""Certificates: self-signed by the vault, or imported, with the secret of the same name that holds key and certificate.

Rules: Key Vault REST 7.4 (`CertificateBundle`), azure-docs `about-certificates` (composition of a certificate). A
certificate lives and dies with its secret and its key: they have one version, one deletion and one recovery. The key of
the same name is read out of the secret.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, Final, TypeAlias

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PrivateFormat, pkcs12
from cryptography.x509.oid import NameOID

from localcloud.azure.keyvault import errors
from localcloud.azure.keyvault.keys import KeyVersion
from localcloud.azure.keyvault.secrets import CERTIFICATE_KIND, DeletedSecret, KeyVault, SecretChange, Secrets
from localcloud.core.certificates import (
    KEY_SIZES,
    PEM_BEGINS,
    ForeignKeyKindError,
    KeyMaterial,
    UnreadableKeyMaterialError,
    parse,
    private_pem,
)
from localcloud.core.clock import now
from localcloud.core.documents import document
from localcloud.core.store import Store

# Certificate policies: what a request may set, the resulting certificate, and the policy in answers.
#
# Rules: Key Vault REST 7.4 (`CertificatePolicy`, `X509CertificateProperties`), azure-docs `about-certificates`. Left
# out: other issuers than `Self`, elliptic-curve and HSM keys, keys that cannot be exported or stay, renewal by the
# vault: a policy's actions are kept and not taken.

PKCS12: Final = "application/x-pkcs12"
PEM: Final = "application/x-pem-file"
_MONTH: Final = timedelta(days=30)
_MONTHS: Final = 12  # for a policy that names none
_DEFAULTS: Final = document(__file__, "x509 defaults", subject="", months=_MONTHS)
_USAGES: Final[Mapping[str, str]] = document(__file__, "usages")
_RENEWAL: Final = {"trigger": {"lifetime_percentage": 80}, "action": {"action_type": "AutoRenew"}}
_UPN: Final = x509.ObjectIdentifier("1.3.6.1.4.1.311.20.2.3")


def issue(policy: Mapping[str, Any]) -> KeyMaterial:
    """A self-signed certificate by a policy, with its key; raises 400, and 501 for what is not emulated."""
    issuer = member(policy, "issuer")
    if issuer.get("name") != "Self":
        raise errors.not_emulated(f"certificates of the issuer {issuer.get('name')}")
    properties = member(policy, "x509_props")
    key = rsa.generate_private_key(public_exponent=65537, key_size=_key_size(policy))
    with _valid("subject", "CN=<name>"):
        subject = x509.Name.from_rfc4514_string(str(properties.get("subject") or ""))
        [_] = subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    with _valid("ekus", "object identifiers"):
        ekus = [x509.ObjectIdentifier(usage) for usage in properties.get("ekus") or _DEFAULTS["ekus"]]
    is_authority = bool(member(properties, "basic_constraints").get("ca"))
    start = now().replace(microsecond=0)
    builder = (
        x509.CertificateBuilder(issuer_name=subject, subject_name=subject, public_key=key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + _MONTH * _months(properties))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(ekus), critical=False)
        .add_extension(_usage(properties), critical=True)
    )
    sans = member(properties, "sans")
    with _valid("sans", "lists of names"):
        names: list[x509.GeneralName] = [
            *(x509.DNSName(str(name)) for name in sans.get("dns_names") or ()),
            *(x509.RFC822Name(str(address)) for address in sans.get("emails") or ()),
            *(_user_name(str(name)) for name in sans.get("upns") or ()),
        ]
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return KeyMaterial(key, (builder.sign(key, hashes.SHA256()),))


def check_import(policy: Mapping[str, Any]) -> None:
    """Refuse settings of an import's policy that the import cannot have; raises 400 and 501."""
    _key_size(policy)


def filled(policy: Mapping[str, Any], material: KeyMaterial, issuer: str) -> dict[str, Any]:
    """The policy in an answer, with the certificate's own properties."""
    certificate = material.certificate
    months = round((certificate.not_valid_after_utc - certificate.not_valid_before_utc) / _MONTH)
    defaults = document(__file__, "x509 defaults", subject=certificate.subject.rfc4514_string(), months=months)
    return {**policy} | document(
        *(__file__, "policy"),
        size=material.private_key.key_size,
        reuse=reuses_key(policy),
        content=content_type(policy),
        properties={**defaults, **member(policy, "x509_props")},
        actions=policy.get("lifetime_actions") or [_RENEWAL],
        issuer={"name": issuer, **member(policy, "issuer")},
    )


def reuses_key(policy: Mapping[str, Any]) -> bool:
    """Whether the next version reuses this one's key."""
    return member(policy, "key_props").get("reuse_key") is True


def content_type(policy: Mapping[str, Any]) -> str:
    """The content type of the secret with key and certificate; raises 400."""
    asked = member(policy, "secret_props").get("contentType") or PKCS12
    if asked not in (PKCS12, PEM):
        raise errors.bad_parameter(f"Property policy.secret_props.contentType has invalid value: {PKCS12} or {PEM}.")
    return str(asked)


def member(holder: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """An object in a policy, empty if absent."""
    entry = holder.get(name)
    return {key: value for key, value in entry.items() if value is not None} if isinstance(entry, Mapping) else {}


def _key_size(policy: Mapping[str, Any]) -> int:
    asked = member(policy, "key_props")
    kind = str(asked.get("kty", "RSA"))
    if kind != "RSA" or "crv" in asked:
        raise errors.not_emulated(f"certificates with keys of the kind {kind}")
    if asked.get("exportable") is False:
        raise errors.not_emulated("certificates whose keys cannot be exported")
    size = asked.get("key_size") or min(KEY_SIZES)
    if size not in KEY_SIZES:
        raise errors.bad_parameter("Property policy.key_props has invalid value: RSA of 2048, 3072 or 4096 bits.")
    return int(size)


@contextmanager
def _valid(name: str, expected: str) -> Iterator[None]:
    """Refuses the property of a certificate that the block reads, if the library refuses it; raises 400."""
    try:
        yield
    except (TypeError, ValueError):
        raise errors.bad_parameter(f"Property policy.x509_props.{name} has invalid value: {expected}.") from None


def _months(properties: Mapping[str, Any]) -> int:
    months = properties.get("validity_months", _MONTHS)
    if not isinstance(months, int) or not 1 <= months <= 1200:
        raise errors.bad_parameter("Property policy.x509_props.validity_months has invalid value: a number of months.")
    return months


def _usage(properties: Mapping[str, Any]) -> x509.KeyUsage:
    asked = properties.get("key_usage") or _DEFAULTS["key_usage"]
    if not isinstance(asked, (list, tuple)) or any(name not in tuple(_USAGES) for name in asked):
        raise errors.bad_parameter(f"Property policy.x509_props.key_usage has invalid value: {', '.join(_USAGES)}.")
    return x509.KeyUsage(**{keyword: name in asked for name, keyword in _USAGES.items()})


def _user_name(name: str) -> x509.OtherName:
    """A user principal name: the DER of a UTF8String (X.690), whose length fits into one octet or into one more."""
    text = name.encode()
    length = bytes([len(text)]) if len(text) < 0x80 else bytes([0x81, len(text)])
    return x509.OtherName(_UPN, b"\x0c" + length + text)


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
        return x509.load_der_x509_certificate(base64.b64decode(self.cer))


DeletedCertificate: TypeAlias = tuple[CertificateVersion, DeletedSecret]
"""A soft-deleted certificate and its secret."""


class Certificates:
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

    def find_deleted(self, vault: KeyVault, name: str) -> DeletedCertificate:
        """The soft-deleted certificate of this name; raises 404."""
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

    def all_deleted(self, vault: KeyVault) -> list[DeletedCertificate]:
        """The newest version of each soft-deleted certificate of the vault, by name."""
        names = [deleted.secret.name for deleted in self._secrets.all_deleted(vault) if deleted.secret.current.managed]
        return [self.find_deleted(vault, name) for name in names]

    def create(self, vault: KeyVault, name: str, policy: Mapping[str, Any], change: SecretChange) -> CertificateVersion:
        """A self-signed certificate by a policy; raises 400, 409, and 501 for what is not emulated."""
        if reuses_key(policy) and self._secrets.find(vault, name) is not None:
            raise errors.not_emulated("another version of a certificate with the key of the one before")
        return self._add(vault, name, issue(policy), policy, change, issuer="Self")

    def import_(
        self,
        vault: KeyVault,
        name: str,
        content: tuple[object, object],
        policy: Mapping[str, Any],
        change: SecretChange,
    ) -> CertificateVersion:
        """A certificate with its key, by content and password: PEM, or PKCS#12 in base64; raises 400, 409 and 501."""
        check_import(policy)
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
        sealed = self._store.seal(private_pem(parse(data).private_key).decode())
        return KeyVersion(
            certificate.name,
            certificate.version,
            sealed,
            certificate.created,
            enabled=certificate.enabled,
            managed=True,
        )

    def delete(self, vault: KeyVault, name: str) -> DeletedCertificate:
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
        certificate, kind = material.certificate, content_type(policy)
        text = material.pem().decode() if kind == PEM else base64.b64encode(_pfx(material)).decode()
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
                policy=filled(policy, material, issuer),
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
