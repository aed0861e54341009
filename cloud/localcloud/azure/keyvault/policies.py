"""Certificate policies: what a request may set, the resulting certificate, and the policy in answers.

Rules: Key Vault REST 7.4 (`CertificatePolicy`, `X509CertificateProperties`), azure-docs `about-certificates`. Left out:
other issuers than `Self`, elliptic-curve and HSM keys, keys that cannot be exported or stay, renewal by the vault: a
policy's actions are kept and not taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from localcloud.azure.keyvault import errors
from localcloud.azure.shared.understood import Members
from localcloud.core.certificates import KEY_SIZES, KeyMaterial
from localcloud.core.clock import now

PKCS12: Final = "application/x-pkcs12"
PEM: Final = "application/x-pem-file"
MEMBERS: Final[Members] = {
    **dict.fromkeys(("id", "attributes")),
    "issuer": dict.fromkeys(("name", "cty", "cert_transparency")),
    "key_props": dict.fromkeys(("kty", "key_size", "crv", "exportable", "reuse_key")),
    "lifetime_actions": {
        "trigger": dict.fromkeys(("lifetime_percentage", "days_before_expiry")),
        "action": {"action_type": None},
    },
    "secret_props": {"contentType": None},
    "x509_props": {
        **dict.fromkeys(("subject", "ekus", "key_usage", "validity_months")),
        "sans": dict.fromkeys(("dns_names", "emails", "upns")),
        "basic_constraints": {"ca": None},
    },
}
"""The members of a policy that a request may have."""
_MONTH: Final = timedelta(days=30)
_MONTHS: Final = 12  # for a policy that names none
# The service's own (azure-cli `get-default-policy`, "CertificatePolicy.Default" of azure-keyvault-certificates).
_EKUS: Final = (ExtendedKeyUsageOID.SERVER_AUTH.dotted_string, ExtendedKeyUsageOID.CLIENT_AUTH.dotted_string)
_USAGE: Final = ("digitalSignature", "keyEncipherment")
_USAGES: Final = {
    "digitalSignature": "digital_signature",
    "nonRepudiation": "content_commitment",
    "keyEncipherment": "key_encipherment",
    "dataEncipherment": "data_encipherment",
    "keyAgreement": "key_agreement",
    "keyCertSign": "key_cert_sign",
    "cRLSign": "crl_sign",
    "encipherOnly": "encipher_only",
    "decipherOnly": "decipher_only",
}
_RENEWAL: Final = {"trigger": {"lifetime_percentage": 80}, "action": {"action_type": "AutoRenew"}}
_UPN: Final = x509.ObjectIdentifier("1.3.6.1.4.1.311.20.2.3")


def issue(policy: Mapping[str, Any]) -> KeyMaterial:
    """A self-signed certificate by a policy, with its key; raises 400, and 501 for what is not emulated."""
    issuer = member(policy, "issuer")
    if issuer.get("name") != "Self":
        raise errors.not_emulated(f"certificates of the issuer {issuer.get('name')}")
    properties = member(policy, "x509_props")
    key = rsa.generate_private_key(public_exponent=65537, key_size=_key_size(policy))
    subject = _subject(properties)
    start = now().replace(microsecond=0)
    builder = (
        x509.CertificateBuilder(issuer_name=subject, subject_name=subject, public_key=key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + _MONTH * _months(properties))
        .add_extension(x509.BasicConstraints(ca=_is_authority(properties), path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(_ekus(properties)), critical=False)
        .add_extension(_usage(properties), critical=True)
    )
    if names := _names(member(properties, "sans")):
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return KeyMaterial(key, (builder.sign(key, hashes.SHA256()),))


def check_import(policy: Mapping[str, Any]) -> None:
    """Refuse settings of an import's policy that the import cannot have; raises 400 and 501."""
    _key_size(policy)


def filled(policy: Mapping[str, Any], material: KeyMaterial, issuer: str) -> dict[str, Any]:
    """The policy in an answer, with the certificate's own properties."""
    certificate, properties = material.certificate, member(policy, "x509_props")
    months = round((certificate.not_valid_after_utc - certificate.not_valid_before_utc) / _MONTH)
    return {
        **policy,
        "key_props": {
            "exportable": True,
            "kty": "RSA",
            "key_size": material.private_key.key_size,
            "reuse_key": reuses_key(policy),
        },
        "secret_props": {"contentType": content_type(policy)},
        "x509_props": {
            "subject": certificate.subject.rfc4514_string(),
            "ekus": list(_EKUS),
            "key_usage": list(_USAGE),
            "validity_months": months,
            "basic_constraints": {"ca": False},
            **properties,
        },
        "lifetime_actions": policy.get("lifetime_actions") or [_RENEWAL],
        "issuer": {"name": issuer, **member(policy, "issuer")},
    }


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


def _subject(properties: Mapping[str, Any]) -> x509.Name:
    try:
        subject = x509.Name.from_rfc4514_string(str(properties.get("subject") or ""))
        [_] = subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    except ValueError:
        raise errors.bad_parameter("Property policy.x509_props.subject has invalid value: CN=<name>.") from None
    return subject


def _months(properties: Mapping[str, Any]) -> int:
    months = properties.get("validity_months", _MONTHS)
    if not isinstance(months, int) or not 1 <= months <= 1200:
        raise errors.bad_parameter("Property policy.x509_props.validity_months has invalid value: a number of months.")
    return months


def _is_authority(properties: Mapping[str, Any]) -> bool:
    return bool(member(properties, "basic_constraints").get("ca"))


def _ekus(properties: Mapping[str, Any]) -> Sequence[x509.ObjectIdentifier]:
    try:
        return [x509.ObjectIdentifier(usage) for usage in properties.get("ekus") or _EKUS]
    except (TypeError, ValueError):
        raise errors.bad_parameter("Property policy.x509_props.ekus has invalid value: object identifiers.") from None


def _usage(properties: Mapping[str, Any]) -> x509.KeyUsage:
    asked = properties.get("key_usage") or _USAGE
    if not isinstance(asked, (list, tuple)) or any(name not in tuple(_USAGES) for name in asked):
        raise errors.bad_parameter(f"Property policy.x509_props.key_usage has invalid value: {', '.join(_USAGES)}.")
    return x509.KeyUsage(**{keyword: name in asked for name, keyword in _USAGES.items()})


def _names(sans: Mapping[str, Any]) -> list[x509.GeneralName]:
    try:
        return [
            *(x509.DNSName(str(name)) for name in sans.get("dns_names") or ()),
            *(x509.RFC822Name(str(address)) for address in sans.get("emails") or ()),
            *(_user_name(str(name)) for name in sans.get("upns") or ()),
        ]
    except (TypeError, ValueError):
        raise errors.bad_parameter("Property policy.x509_props.sans has invalid value: lists of names.") from None


def _user_name(name: str) -> x509.OtherName:
    """A user principal name: the DER of a UTF8String (X.690), whose length fits into one octet or into one more."""
    text = name.encode()
    length = bytes([len(text)]) if len(text) < 0x80 else bytes([0x81, len(text)])
    return x509.OtherName(_UPN, b"\x0c" + length + text)
