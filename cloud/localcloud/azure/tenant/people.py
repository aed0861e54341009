"""Users and groups of the tenant, for sign-ins with a device code and the `groups` claim of tokens for AKS.

Left out: passwords (the sign-in page of the local cloud, on loopback, asks for none), nested groups. Graph
serves a user's groups and nothing else about users.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar

from localcloud.core import clock
from localcloud.core.documents import STORED, from_document, to_document
from localcloud.core.store import Store

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
        """The user with this object id."""
        document = self._store.get(_USERS, object_id)
        return None if document is None else from_document(User, document)

    def user_by_name(self, user_principal_name: str) -> User | None:
        """The user with this user principal name."""
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
