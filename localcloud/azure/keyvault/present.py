"""How the data plane prints what a vault holds (Key Vault REST 7.4: SecretBundle, DeletedSecretBundle, KeyBundle)."""

from __future__ import annotations

from typing import Any

from localcloud.azure.keyvault.certificates import CertificateVersion
from localcloud.azure.keyvault.keys import KeyVersion, base64url
from localcloud.azure.keyvault.secrets import DeletedSecret, SecretVersion
from localcloud.azure.keyvault.vaults import KeyVault
from localcloud.core.certificates import thumbprint


def secret_id(vault: KeyVault, secret: SecretVersion, *, versioned: bool = True) -> str:
    """`https://<vault>.vault.azure.net/secrets/<name>[/<version>]`."""
    unversioned = f"{vault.uri}/secrets/{secret.name}"
    return f"{unversioned}/{secret.version}" if versioned else unversioned


def secret_item(vault: KeyVault, secret: SecretVersion, *, versioned: bool) -> dict[str, Any]:
    """A version without its value."""
    dates = {"nbf": secret.nbf, "exp": secret.exp, "created": secret.created, "updated": secret.updated}
    return _without_none(
        {
            "id": secret_id(vault, secret, versioned=versioned),
            "contentType": secret.content_type,
            "attributes": {"enabled": secret.enabled, **_without_none(dates), **_recovery(vault)},
            "tags": secret.tags,
            "managed": secret.managed or None,
        }
    )


def secret_bundle(vault: KeyVault, secret: SecretVersion, value: str) -> dict[str, Any]:
    """A version with its value in clear."""
    kid = {"kid": f"{vault.uri}/keys/{secret.name}/{secret.version}"} if secret.managed else {}
    return {"value": value, **secret_item(vault, secret, versioned=True), **kid}


def deleted_secret(vault: KeyVault, deleted: DeletedSecret, *, versioned: bool) -> dict[str, Any]:
    """A soft-deleted secret and its dates."""
    return {
        **secret_item(vault, deleted.secret.current, versioned=versioned),
        "recoveryId": f"{vault.uri}/deletedsecrets/{deleted.secret.name}",
        "deletedDate": int(deleted.deleted_at.timestamp()),
        "scheduledPurgeDate": int((deleted.deleted_at + vault.retention).timestamp()),
    }


def key_id(vault: KeyVault, key: KeyVersion, *, versioned: bool = True) -> str:
    """`https://<vault>.vault.azure.net/keys/<name>[/<version>]`."""
    unversioned = f"{vault.uri}/keys/{key.name}"
    return f"{unversioned}/{key.version}" if versioned else unversioned


def key_item(vault: KeyVault, key: KeyVersion, *, versioned: bool) -> dict[str, Any]:
    """A key without its public half."""
    return _without_none(
        {
            "kid": key_id(vault, key, versioned=versioned),
            "attributes": _key_attributes(vault, key),
            "tags": key.tags,
            "managed": key.managed or None,
        }
    )


def key_bundle(vault: KeyVault, key: KeyVersion, public_numbers: dict[str, str]) -> dict[str, Any]:
    """A key's public half as a JSON Web Key."""
    jwk = {"kid": key_id(vault, key), "kty": "RSA", "key_ops": list(key.operations), **public_numbers}
    beside = {name: value for name, value in key_item(vault, key, versioned=True).items() if name != "kid"}
    return {"key": jwk, **beside}


def rotation_policy(vault: KeyVault, key: KeyVersion) -> dict[str, Any]:
    """The default rotation policy of a key (azurerm issue 19113): a notice before it expires."""
    notice = {"trigger": {"timeBeforeExpiry": "P30D"}, "action": {"type": "Notify"}}
    return {
        "id": f"{key_id(vault, key, versioned=False)}/rotationpolicy",
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
        "id": _certificate_id(vault, certificate, "certificates", versioned=versioned),
        "x5t": base64url(bytes.fromhex(thumbprint(x509_certificate))),
        "subject": x509_certificate.subject.rfc4514_string(),
        "attributes": {**attributes, **_recovery(vault)},
        **({"tags": certificate.tags} if certificate.tags else {}),
    }


def certificate_bundle(vault: KeyVault, certificate: CertificateVersion) -> dict[str, Any]:
    """A certificate, its policy, and the ids of its key and secret."""
    return {
        **certificate_item(vault, certificate, versioned=True),
        "kid": _certificate_id(vault, certificate, "keys", versioned=True),
        "sid": _certificate_id(vault, certificate, "secrets", versioned=True),
        "cer": certificate.cer,
        "policy": certificate_policy(vault, certificate),
        "pending": {"id": f"{_certificate_id(vault, certificate, 'certificates', versioned=False)}/pending"},
    }


def certificate_policy(vault: KeyVault, certificate: CertificateVersion) -> dict[str, Any]:
    """The policy of a certificate."""
    return {
        **certificate.policy,
        "id": f"{_certificate_id(vault, certificate, 'certificates', versioned=False)}/policy",
    }


def certificate_operation(vault: KeyVault, certificate: CertificateVersion, status: str) -> dict[str, Any]:
    """The operation that created a certificate (CertificateOperation)."""
    name = _certificate_id(vault, certificate, "certificates", versioned=False)
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
    """A soft-deleted certificate and its dates."""
    return {**certificate_bundle(vault, certificate), **_deletion(vault, certificate, deleted)}


def deleted_certificate_item(
    vault: KeyVault, certificate: CertificateVersion, deleted: DeletedSecret
) -> dict[str, Any]:
    """The same without content and policy."""
    return {**certificate_item(vault, certificate, versioned=False), **_deletion(vault, certificate, deleted)}


def _deletion(vault: KeyVault, certificate: CertificateVersion, deleted: DeletedSecret) -> dict[str, Any]:
    return {
        "recoveryId": f"{vault.uri}/deletedcertificates/{certificate.name}",
        "deletedDate": int(deleted.deleted_at.timestamp()),
        "scheduledPurgeDate": int((deleted.deleted_at + vault.retention).timestamp()),
    }


def _certificate_id(vault: KeyVault, certificate: CertificateVersion, kind: str, *, versioned: bool) -> str:
    unversioned = f"{vault.uri}/{kind}/{certificate.name}"
    return f"{unversioned}/{certificate.version}" if versioned else unversioned


def _key_attributes(vault: KeyVault, key: KeyVersion) -> dict[str, Any]:
    dates = _without_none({"nbf": key.nbf, "exp": key.exp})
    return {"enabled": key.enabled, **dates, "created": key.created, "updated": key.created, **_recovery(vault)}


def _recovery(vault: KeyVault) -> dict[str, Any]:
    return {"recoveryLevel": vault.recovery_level, "recoverableDays": vault.retention.days}


def _without_none(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
