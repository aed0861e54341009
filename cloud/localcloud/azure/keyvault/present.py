"""How the data plane prints what a vault holds (Key Vault REST 7.4: SecretBundle, DeletedSecretBundle, KeyBundle)."""

from __future__ import annotations

from typing import Any, TypeAlias

from localcloud.azure.keyvault.certificates import CertificateVersion
from localcloud.azure.keyvault.keys import KeyVersion, base64url
from localcloud.azure.keyvault.secrets import DeletedSecret, KeyVault, SecretVersion
from localcloud.core.certificates import thumbprint

Item: TypeAlias = SecretVersion | KeyVersion | CertificateVersion


def item_id(vault: KeyVault, kind: str, item: Item, *, versioned: bool = True) -> str:
    """`https://<vault>.vault.azure.net/<kind>/<name>[/<version>]`; `kind`: secrets, keys or certificates."""
    unversioned = f"{vault.uri}/{kind}/{item.name}"
    return f"{unversioned}/{item.version}" if versioned else unversioned


def secret_item(vault: KeyVault, secret: SecretVersion, *, versioned: bool) -> dict[str, Any]:
    """A version without its value."""
    dates = {"nbf": secret.nbf, "exp": secret.exp, "created": secret.created, "updated": secret.updated}
    return _without_none(
        {
            "id": item_id(vault, "secrets", secret, versioned=versioned),
            "contentType": secret.content_type,
            "attributes": {"enabled": secret.enabled, **_without_none(dates), **_recovery(vault)},
            "tags": secret.tags,
            "managed": secret.managed or None,
        }
    )


def secret_bundle(vault: KeyVault, secret: SecretVersion, value: str) -> dict[str, Any]:
    """A version with its value in clear."""
    kid = {"kid": item_id(vault, "keys", secret)} if secret.managed else {}
    return {"value": value, **secret_item(vault, secret, versioned=True), **kid}


def deleted_secret(vault: KeyVault, deleted: DeletedSecret, *, versioned: bool) -> dict[str, Any]:
    return {
        **secret_item(vault, deleted.secret.current, versioned=versioned),
        **_deletion(vault, "secrets", deleted),
    }


def key_item(vault: KeyVault, key: KeyVersion, *, versioned: bool) -> dict[str, Any]:
    """A key without its public half."""
    return _without_none(
        {
            "kid": item_id(vault, "keys", key, versioned=versioned),
            "attributes": _key_attributes(vault, key),
            "tags": key.tags,
            "managed": key.managed or None,
        }
    )


def key_bundle(vault: KeyVault, key: KeyVersion, public_numbers: dict[str, str]) -> dict[str, Any]:
    """A key's public half as a JSON Web Key."""
    jwk = {"kid": item_id(vault, "keys", key), "kty": "RSA", "key_ops": list(key.operations), **public_numbers}
    beside = {name: value for name, value in key_item(vault, key, versioned=True).items() if name != "kid"}
    return {"key": jwk, **beside}


def rotation_policy(vault: KeyVault, key: KeyVersion) -> dict[str, Any]:
    """The default rotation policy of a key (azurerm issue 19113): a notice before it expires."""
    notice = {"trigger": {"timeBeforeExpiry": "P30D"}, "action": {"type": "Notify"}}
    return {
        "id": f"{item_id(vault, 'keys', key, versioned=False)}/rotationpolicy",
        "lifetimeActions": [notice],
        "attributes": {"created": key.created, "updated": key.created},
    }


def certificate_item(vault: KeyVault, certificate: CertificateVersion, *, versioned: bool) -> dict[str, Any]:
    """A certificate without its content."""
    x509_certificate = certificate.certificate
    attributes = {
        "enabled": certificate.enabled,
        "nbf": int(x509_certificate.not_valid_before_utc.timestamp()),
        "exp": int(x509_certificate.not_valid_after_utc.timestamp()),
        "created": certificate.created,
        "updated": certificate.created,
    }
    return {
        "id": item_id(vault, "certificates", certificate, versioned=versioned),
        "x5t": base64url(bytes.fromhex(thumbprint(x509_certificate))),
        "subject": x509_certificate.subject.rfc4514_string(),
        "attributes": {**attributes, **_recovery(vault)},
        **({"tags": certificate.tags} if certificate.tags else {}),
    }


def certificate_bundle(vault: KeyVault, certificate: CertificateVersion) -> dict[str, Any]:
    """A certificate, its policy, and the ids of its key and secret."""
    return {
        **certificate_item(vault, certificate, versioned=True),
        "kid": item_id(vault, "keys", certificate),
        "sid": item_id(vault, "secrets", certificate),
        "cer": certificate.cer,
        "policy": certificate_policy(vault, certificate),
        "pending": {"id": f"{item_id(vault, 'certificates', certificate, versioned=False)}/pending"},
    }


def certificate_policy(vault: KeyVault, certificate: CertificateVersion) -> dict[str, Any]:
    return {
        **certificate.policy,
        "id": f"{item_id(vault, 'certificates', certificate, versioned=False)}/policy",
    }


def certificate_operation(vault: KeyVault, certificate: CertificateVersion, status: str) -> dict[str, Any]:
    """The operation that created a certificate (CertificateOperation)."""
    name = item_id(vault, "certificates", certificate, versioned=False)
    return {
        "id": f"{name}/pending",
        "issuer": {"name": "Self"},
        "csr": "",
        "cancellation_requested": False,
        "status": status,
        "status_details": None,
        "request_id": certificate.version,
        **({"target": name} if status == "completed" else {}),
    }


def deleted_certificate(vault: KeyVault, certificate: CertificateVersion, deleted: DeletedSecret) -> dict[str, Any]:
    return {**certificate_bundle(vault, certificate), **_deletion(vault, "certificates", deleted)}


def deleted_certificate_item(
    vault: KeyVault, certificate: CertificateVersion, deleted: DeletedSecret
) -> dict[str, Any]:
    """The same without content and policy."""
    return {**certificate_item(vault, certificate, versioned=False), **_deletion(vault, "certificates", deleted)}


def _deletion(vault: KeyVault, kind: str, deleted: DeletedSecret) -> dict[str, Any]:
    return {
        "recoveryId": f"{vault.uri}/deleted{kind}/{deleted.secret.name}",
        "deletedDate": int(deleted.deleted_at.timestamp()),
        "scheduledPurgeDate": int((deleted.deleted_at + vault.retention).timestamp()),
    }


def _key_attributes(vault: KeyVault, key: KeyVersion) -> dict[str, Any]:
    dates = _without_none({"nbf": key.nbf, "exp": key.exp})
    return {"enabled": key.enabled, **dates, "created": key.created, "updated": key.created, **_recovery(vault)}


def _recovery(vault: KeyVault) -> dict[str, Any]:
    return {"recoveryLevel": vault.recovery_level, "recoverableDays": vault.retention.days}


def _without_none(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
