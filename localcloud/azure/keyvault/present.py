"""How the data plane prints what a vault holds (Key Vault REST 7.4: SecretBundle, DeletedSecretBundle, KeyBundle)."""

from __future__ import annotations

from typing import Any, Final

from localcloud.azure.keyvault.certificates import CertificateVersion
from localcloud.azure.keyvault.keys import KeyVersion, base64url
from localcloud.azure.keyvault.secrets import DeletedSecret, SecretVersion
from localcloud.azure.keyvault.vaults import KeyVault
from localcloud.core.certificates import thumbprint

_KEY_OPERATIONS: Final = ("encrypt", "decrypt", "wrapKey", "unwrapKey")


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
        }
    )


def secret_bundle(vault: KeyVault, secret: SecretVersion, value: str) -> dict[str, Any]:
    """A version with its value in clear."""
    return {"value": value, **secret_item(vault, secret, versioned=True)}


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
    return {"kid": key_id(vault, key, versioned=versioned), "attributes": _key_attributes(vault, key)}


def key_bundle(vault: KeyVault, key: KeyVersion, public_numbers: dict[str, str]) -> dict[str, Any]:
    """A key's public half as a JSON Web Key."""
    jwk = {"kid": key_id(vault, key), "kty": "RSA", "key_ops": list(_KEY_OPERATIONS), **public_numbers}
    return {"key": jwk, "attributes": _key_attributes(vault, key)}


def certificate_item(vault: KeyVault, found: CertificateVersion, *, versioned: bool) -> dict[str, Any]:
    """A certificate without its content."""
    certificate = found.certificate
    attributes = {
        "enabled": True,
        "nbf": int(certificate.not_valid_before_utc.timestamp()),
        "exp": int(certificate.not_valid_after_utc.timestamp()),
        "created": found.created,
        "updated": found.created,
    }
    return {
        "id": _certificate_id(vault, found, "certificates", versioned=versioned),
        "x5t": base64url(bytes.fromhex(thumbprint(certificate))),
        "subject": certificate.subject.rfc4514_string(),
        "attributes": {**attributes, **_recovery(vault)},
    }


def certificate_bundle(vault: KeyVault, found: CertificateVersion) -> dict[str, Any]:
    """A certificate, its policy, and where its key and its secret are."""
    policy_id = f"{_certificate_id(vault, found, 'certificates', versioned=False)}/policy"
    return {
        **certificate_item(vault, found, versioned=True),
        "kid": _certificate_id(vault, found, "keys", versioned=True),
        "sid": _certificate_id(vault, found, "secrets", versioned=True),
        "cer": found.cer,
        "policy": {**found.policy, "id": policy_id},
        "pending": {"id": f"{_certificate_id(vault, found, 'certificates', versioned=False)}/pending"},
    }


def certificate_operation(vault: KeyVault, found: CertificateVersion, status: str) -> dict[str, Any]:
    """The operation that has made a certificate (CertificateOperation)."""
    name = _certificate_id(vault, found, "certificates", versioned=False)
    return {
        "id": f"{name}/pending",
        "issuer": {"name": "Self"},
        "csr": "",
        "cancellation_requested": False,
        "status": status,
        "status_details": None,
        "request_id": found.version,
        **({"target": name} if status == "completed" else {}),
    }


def deleted_certificate(vault: KeyVault, found: CertificateVersion, deleted: DeletedSecret) -> dict[str, Any]:
    """A soft-deleted certificate and its dates."""
    return {
        **certificate_bundle(vault, found),
        "recoveryId": f"{vault.uri}/deletedcertificates/{found.name}",
        "deletedDate": int(deleted.deleted_at.timestamp()),
        "scheduledPurgeDate": int((deleted.deleted_at + vault.retention).timestamp()),
    }


def _certificate_id(vault: KeyVault, found: CertificateVersion, kind: str, *, versioned: bool) -> str:
    unversioned = f"{vault.uri}/{kind}/{found.name}"
    return f"{unversioned}/{found.version}" if versioned else unversioned


def _key_attributes(vault: KeyVault, key: KeyVersion) -> dict[str, Any]:
    return {"enabled": True, "created": key.created, "updated": key.created, **_recovery(vault)}


def _recovery(vault: KeyVault) -> dict[str, Any]:
    return {"recoveryLevel": vault.recovery_level, "recoverableDays": vault.retention.days}


def _without_none(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
