"""The directory's objects: applications, service principals, and the credentials registered on them."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar, Literal, Self

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from localcloud.core import clock
from localcloud.core.store import STORED, Store, StoredBytes, from_document, to_document

# Users and groups of the tenant, for sign-ins with a device code and the `groups` claim of tokens for AKS.
#
# Left out: passwords (the sign-in page of the local cloud, on loopback, asks for none), nested groups. Graph serves a
# user's groups and nothing else about users.

_USERS = "entra-user"
_USER_NAMES = "entra-user-name"
_GROUPS = "entra-group"


@dataclass(frozen=True)
class User:
    """A member of the tenant. Sessions from before `sessions_valid_from` are over, as after a change of password."""

    __pydantic_config__: ClassVar = STORED

    object_id: str
    user_principal_name: str
    display_name: str
    sessions_valid_from: datetime


class People:
    """The tenant's users, and its security groups with users and service principals in them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def create_user(self, user_principal_name: str, display_name: str, *, object_id: str | None = None) -> User:
        """Create a user, or return the existing one of that name."""
        with self._store.transaction():
            existing = self.user_by_name(user_principal_name)
            if existing is not None:
                return existing
            user = User(object_id or str(uuid.uuid4()), user_principal_name, display_name, clock.now())
            self._store.put(_USERS, user.object_id, to_document(user))
            self._store.put(_USER_NAMES, user_principal_name.lower(), {"objectId": user.object_id})
        return user

    def user(self, object_id: str) -> User | None:
        document = self._store.get(_USERS, object_id)
        return None if document is None else from_document(User, document)

    def user_by_name(self, user_principal_name: str) -> User | None:
        index = self._store.get(_USER_NAMES, user_principal_name.lower())
        return self.user(index["objectId"]) if index else None

    def end_sessions(self, object_id: str) -> None:
        """Invalidate every refresh token of the user; raises LookupError for an unknown user."""
        user = self.user(object_id)
        if user is None:
            raise LookupError(f"no user {object_id}")
        self._store.put(_USERS, object_id, to_document(replace(user, sessions_valid_from=clock.now())))

    def create_group(self, display_name: str, members: Iterable[str], *, object_id: str | None = None) -> str:
        """Create a security group or add these object ids to the existing one; returns its object id."""
        group_id = object_id or str(uuid.uuid4())
        with self._store.transaction():
            existing = self._store.get(_GROUPS, group_id) or {"members": []}
            everybody = sorted({*existing["members"], *members})
            self._store.put(_GROUPS, group_id, {"displayName": display_name, "members": everybody})
        return group_id

    def groups_of(self, object_id: str) -> list[str]:
        """Object ids of the groups that a user or service principal is in."""
        return [key for key, group in self._store.items(_GROUPS) if object_id in group["members"]]


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

    __pydantic_config__: ClassVar = STORED

    key_id: str
    certificate: StoredBytes
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


@dataclass(frozen=True)
class PasswordCredential:
    """A client secret; only its `digest` is kept, as Entra shows the value once."""

    __pydantic_config__: ClassVar = STORED

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
        return hmac.compare_digest(self.digest, _digest(value))


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

    __pydantic_config__: ClassVar = STORED

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


@dataclass(frozen=True)
class Application(DirectoryObject):
    """An application registration. Display names may repeat, as in Entra.

    `federated` are its federated credentials as Graph prints them.
    """

    federated: tuple[Mapping[str, Any], ...] = ()


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
