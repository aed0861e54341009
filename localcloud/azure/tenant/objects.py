"""The directory's objects: applications, service principals, and the credentials registered on them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, Self

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from localcloud.core import clock
from localcloud.core.store import Document

PrincipalKind = Literal["Application", "ManagedIdentity"]


@dataclass(frozen=True)
class KeyCredential:
    """A certificate registered for sign-in (Graph: keyCredential of type AsymmetricX509Cert, usage Verify).

    Attributes:
        key_id: UUID of the registration.
        certificate: DER.
        start, end: the validity that the registration states, within the certificate's own.
        added_at, removed_at: when the directory added and removed it; each replica follows later.
    """

    key_id: str
    certificate: bytes
    display_name: str | None
    start: datetime
    end: datetime
    added_at: datetime
    removed_at: datetime | None = None

    @classmethod
    def of(
        cls, certificate: x509.Certificate, *, key_id: str | None = None, display_name: str | None = None
    ) -> KeyCredential:
        """A new registration of `certificate`, with the certificate's own dates."""
        return cls(
            key_id=key_id or str(uuid.uuid4()),
            certificate=certificate.public_bytes(Encoding.DER),
            display_name=display_name,
            start=certificate.not_valid_before_utc,
            end=certificate.not_valid_after_utc,
            added_at=clock.now(),
        )

    @property
    def thumbprint(self) -> str:
        """SHA-1 of the certificate, upper-case hex."""
        return hashlib.sha1(self.certificate, usedforsecurity=False).hexdigest().upper()

    def known_at(self, instant: datetime) -> bool:
        """Whether a replica that has seen everything up to `instant` has this registration."""
        return self.added_at <= instant and (self.removed_at is None or instant < self.removed_at)

    def to_document(self) -> Document:
        """The stored form."""
        return {
            "keyId": self.key_id,
            "certificate": base64.b64encode(self.certificate).decode(),
            "displayName": self.display_name,
            "start": self.start.isoformat(),
            "end": self.end.isoformat(),
            "addedAt": self.added_at.isoformat(),
            "removedAt": self.removed_at and self.removed_at.isoformat(),
        }

    @classmethod
    def from_document(cls, document: Document) -> KeyCredential:
        """The inverse of `to_document`."""
        return cls(
            key_id=document["keyId"],
            certificate=base64.b64decode(document["certificate"]),
            display_name=document["displayName"],
            start=datetime.fromisoformat(document["start"]),
            end=datetime.fromisoformat(document["end"]),
            added_at=datetime.fromisoformat(document["addedAt"]),
            removed_at=datetime.fromisoformat(document["removedAt"]) if document["removedAt"] else None,
        )


@dataclass(frozen=True)
class PasswordCredential:
    """A client secret; only its `digest` is kept, as Entra shows the value once."""

    key_id: str
    digest: str
    hint: str
    display_name: str | None
    start: datetime
    end: datetime

    @classmethod
    def issue(cls, display_name: str | None, end: datetime) -> tuple[PasswordCredential, str]:
        """A new client secret and its value."""
        value = secrets.token_urlsafe(30)
        return cls(str(uuid.uuid4()), _digest(value), value[:3], display_name, clock.now(), end), value

    def is_of(self, value: str) -> bool:
        """Whether `value` is this secret's value."""
        return hmac.compare_digest(self.digest, _digest(value))

    def to_document(self) -> Document:
        """The stored form."""
        return {
            "keyId": self.key_id,
            "digest": self.digest,
            "hint": self.hint,
            "displayName": self.display_name,
            "start": self.start.isoformat(),
            "end": self.end.isoformat(),
        }

    @classmethod
    def from_document(cls, document: Document) -> PasswordCredential:
        """The inverse of `to_document`."""
        return cls(
            key_id=document["keyId"],
            digest=document["digest"],
            hint=document["hint"],
            display_name=document["displayName"],
            start=datetime.fromisoformat(document["start"]),
            end=datetime.fromisoformat(document["end"]),
        )


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()


@dataclass(frozen=True)
class DirectoryObject:
    """The common part of applications and service principals.

    Attributes:
        owners: object ids of the service principals that own it.
        keys: certificates, including those removed a moment ago (replicas may still accept them).
        passwords: client secrets.
        properties: the plain properties that were sent to Graph, under Graph's names.
    """

    object_id: str
    app_id: str
    display_name: str
    created_at: datetime
    owners: tuple[str, ...] = ()
    keys: tuple[KeyCredential, ...] = ()
    passwords: tuple[PasswordCredential, ...] = ()
    properties: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key_credentials(self) -> tuple[KeyCredential, ...]:
        """The certificates registered now."""
        return tuple(key for key in self.keys if key.removed_at is None)

    def seen_until(self, instant: datetime) -> Self:
        """The object as a replica shows it that has seen everything up to `instant`. Only certificates are late."""
        return replace(self, keys=tuple(replace(key, removed_at=None) for key in self.keys if key.known_at(instant)))

    def to_document(self) -> Document:
        """The stored form."""
        return {
            "objectId": self.object_id,
            "appId": self.app_id,
            "displayName": self.display_name,
            "createdAt": self.created_at.isoformat(),
            "owners": list(self.owners),
            "keys": [key.to_document() for key in self.keys],
            "passwords": [password.to_document() for password in self.passwords],
            "properties": dict(self.properties),
        }


@dataclass(frozen=True)
class Application(DirectoryObject):
    """An application registration. Display names may repeat, as in Entra.

    `federated` are its federated credentials as Graph prints them.
    """

    federated: tuple[Mapping[str, Any], ...] = ()

    def to_document(self) -> Document:
        """The stored form."""
        return {**super().to_document(), "federated": [dict(credential) for credential in self.federated]}

    @classmethod
    def from_document(cls, document: Document) -> Application:
        """The inverse of `to_document`. Applications of older local clouds have no federation."""
        return cls(**_common(document), federated=tuple(document.get("federated", ())))


@dataclass(frozen=True)
class ServicePrincipal(DirectoryObject):
    """An application's presence in the tenant, or a managed identity.

    Attributes:
        resource_id: ARM id of the managed identity; None for an application's.
        roles: Graph application permissions granted to it, by value (`Application.ReadWrite.OwnedBy`).
    """

    kind: PrincipalKind = "Application"
    resource_id: str | None = None
    roles: tuple[str, ...] = ()

    def to_document(self) -> Document:
        """The stored form."""
        return {
            **super().to_document(),
            "kind": self.kind,
            "resourceId": self.resource_id,
            "roles": list(self.roles),
        }

    @classmethod
    def from_document(cls, document: Document) -> ServicePrincipal:
        """The inverse of `to_document`."""
        return cls(
            **_common(document),
            kind=document["kind"],
            resource_id=document["resourceId"],
            roles=tuple(document["roles"]),
        )


def _common(document: Document) -> dict[str, Any]:
    return {
        "object_id": document["objectId"],
        "app_id": document["appId"],
        "display_name": document["displayName"],
        "created_at": datetime.fromisoformat(document["createdAt"]),
        "owners": tuple(document["owners"]),
        "keys": tuple(KeyCredential.from_document(key) for key in document["keys"]),
        # Objects of older local clouds have none.
        "passwords": tuple(map(PasswordCredential.from_document, document.get("passwords", ()))),
        "properties": document["properties"],
    }
