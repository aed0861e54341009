"""The tenant's directory: applications and service principals, with soft delete and Entra's rules of uniqueness.

Errors are `ServiceError`s with Microsoft Graph's messages, because Graph is the directory's API. Left out:
users, groups, and the lag between a deletion and the replicas (creation and certificates do lag).
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from localcloud.azure.shared.faults import Faults
from localcloud.azure.shared.refusals import refusal
from localcloud.azure.tenant.objects import Application, KeyCredential, ServicePrincipal
from localcloud.core import clock
from localcloud.core.store import Store, from_document, to_document

# The directory is replicated: each request is served by one replica, which learns of a change only after its delay.
#
# That is why one sign-in with a new certificate proves little: the next may meet a replica that answers 700027. And why
# a client that writes a list back to Graph may remove what was added since it read the list.


@dataclass(frozen=True)
class Replica:
    """The replica that serves one request: what happened after `knows_until` has not reached it."""

    name: str
    knows_until: datetime


class Replicas:
    """Chooses a replica for each request, at random (`Faults.random`).

    `delays` gives the seconds that each of them is behind now.
    """

    def __init__(self, delays: Callable[[], Sequence[float]], chance: random.Random) -> None:
        self._delays = delays
        self._chance = chance

    def choose(self) -> Replica:
        """The replica for the request that came in now."""
        delays = self._delays()
        number = self._chance.randrange(len(delays))
        return Replica(f"replica-{number}", clock.now() - timedelta(seconds=delays[number]))


_APPLICATIONS = "entra-application"
_DELETED = "entra-deleted"
# Where the store has each kind; sign-in finds it by application id, under which the second holds {"objectId"}.
_KINDS: Mapping[type[Application | ServicePrincipal], tuple[str, str]] = {
    Application: (_APPLICATIONS, "entra-application-id"),
    ServicePrincipal: ("entra-principal", "entra-principal-id"),
}
Kind = TypeVar("Kind", Application, ServicePrincipal)

RETENTION = timedelta(days=30)
"""How long Entra keeps a deleted application or service principal restorable."""


# A delay that is held while the local cloud runs (`HeldFaults`) may begin after the removal of a certificate.
_LONGEST_HELD = timedelta(hours=1)


@dataclass(frozen=True)
class DeletedObject:
    """An application or service principal in `directory/deletedItems`."""

    entry: Application | ServicePrincipal
    deleted_at: datetime


class Directory:
    """Applications and service principals of the one tenant."""

    def __init__(self, store: Store, faults: Faults) -> None:
        self._store = store
        self._faults = faults

    def create_application(
        self, display_name: str, owners: Sequence[str] = (), properties: Mapping[str, Any] | None = None
    ) -> Application:
        """A new application. Display names may repeat; a `uniqueName` may not, even that of a deleted application."""
        application = Application(
            object_id=str(uuid.uuid4()),
            app_id=str(uuid.uuid4()),
            display_name=display_name,
            created_at=clock.now(),
            owners=tuple(owners),
            properties=dict(properties or {}),
        )
        with self._store.transaction():
            self._refuse_taken_names(application)
            self._save(application)
        return application

    def find(self, kind: type[Kind], object_id: str) -> Kind | None:
        """The application or service principal with this object id, unless deleted."""
        document = self._store.get(_KINDS[kind][0], object_id)
        return from_document(kind, document) if document else None

    def find_by_app(self, kind: type[Kind], app_id: str) -> Kind | None:
        """That of this application (client) id, unless deleted."""
        index = self._store.get(_KINDS[kind][1], app_id.lower())
        return self.find(kind, index["objectId"]) if index else None

    def all(self, kind: type[Kind]) -> list[Kind]:
        """Every one of the kind, deleted ones left out."""
        return [from_document(kind, document) for _, document in self._store.items(_KINDS[kind][0])]

    def application(self, object_id: str) -> Application | None:
        return self.find(Application, object_id)

    def application_by_app(self, app_id: str) -> Application | None:
        return self.find_by_app(Application, app_id)

    def service_principal(self, object_id: str) -> ServicePrincipal | None:
        return self.find(ServicePrincipal, object_id)

    def service_principal_by_app(self, app_id: str) -> ServicePrincipal | None:
        return self.find_by_app(ServicePrincipal, app_id)

    def delete(self, entry: Application | ServicePrincipal) -> None:
        """Move it to the deleted items, an application with its service principal; a managed identity's is purged."""
        with self._store.transaction():
            if isinstance(entry, Application) and (principal := self.service_principal_by_app(entry.app_id)):
                self._bury(principal)
            if isinstance(entry, ServicePrincipal) and entry.kind == "ManagedIdentity":
                self._forget(entry)
            else:
                self._bury(entry)

    def create_service_principal(
        self, app_id: str, owners: Sequence[str] = (), properties: Mapping[str, Any] | None = None
    ) -> ServicePrincipal:
        """The one service principal of an application; raises 400 NoBackingApplicationObject, or 409 for a second."""
        application = self.application_by_app(app_id)
        if application is None:
            raise refusal("NoBackingApplicationObject", app=app_id)
        if self.service_principal_by_app(app_id):
            raise refusal("Request_MultipleObjectsWithSameKeyValue principal", app=app_id)
        principal = ServicePrincipal(
            object_id=str(uuid.uuid4()),
            app_id=application.app_id,
            display_name=application.display_name,
            created_at=clock.now(),
            owners=tuple(owners),
            properties=dict(properties or {}),
        )
        self._save(principal)
        return principal

    def create_managed_identity(
        self, resource_id: str, display_name: str, *, client_id: str | None = None, object_id: str | None = None
    ) -> ServicePrincipal:
        """The principal of a new managed identity; its owner cannot give it a certificate. Azure chooses the ids."""
        principal = ServicePrincipal(
            object_id=object_id or str(uuid.uuid4()),
            app_id=client_id or str(uuid.uuid4()),
            display_name=display_name,
            created_at=clock.now(),
            kind="ManagedIdentity",
            resource_id=resource_id,
        )
        self._save(principal)
        return principal

    def offers(self, resource: str) -> bool:
        """Whether this names an application that has a service principal, by application id or identifier URI."""
        if self.service_principal_by_app(resource.removeprefix("api://")):
            return True
        named = (
            application
            for application in self.all(Application)
            if resource in application.properties.get("identifierUris", ())
        )
        return any(self.service_principal_by_app(application.app_id) for application in named)

    def delete_service_principal(self, object_id: str) -> bool:
        """`delete` by its object id; returns whether it existed."""
        if principal := self.service_principal(object_id):
            self.delete(principal)
        return principal is not None

    def grant(self, object_id: str, role: str) -> None:
        """Grant a service principal a Graph application permission; raises LookupError for an unknown one."""
        principal = self.service_principal(object_id)
        if principal is None:
            raise LookupError(f"no service principal {object_id}")
        self._save(replace(principal, roles=tuple(sorted({*principal.roles, role}))))

    def is_replicated(self, object_id: str) -> bool:
        """Whether ARM finds the principal yet (`principal_delay` after its creation)."""
        principal = self.service_principal(object_id)
        delay = timedelta(seconds=self._faults.principal_delay)
        return principal is not None and principal.created_at + delay <= clock.now()

    def update(self, entry: Application | ServicePrincipal) -> None:
        """Store the changed object; raises ServiceError when a name in it is taken."""
        with self._store.transaction():
            if isinstance(entry, Application):
                self._refuse_taken_names(entry)
            self._save(entry)

    def set_key_credentials(self, object_id: str, credentials: Sequence[KeyCredential]) -> None:
        """Make `credentials` the registered certificates of an application or service principal.

        A registration that stays (same key id) keeps its dates; a removed one is still known to slow replicas.
        Raises LookupError for an unknown object.
        """
        with self._store.transaction():
            entry = self.application(object_id) or self.service_principal(object_id)
            if entry is None:
                raise LookupError(f"no application or service principal {object_id}")
            now = clock.now()
            existing = {key.key_id: key for key in entry.key_credentials}
            wanted = {key.key_id: key for key in credentials}
            kept_until = now - max(
                _LONGEST_HELD, timedelta(seconds=max(*self._faults.replica_delays, *self._faults.graph_delays))
            )
            fading = [key for key in entry.keys if key.removed_at is not None and key.removed_at > kept_until]
            fading += [replace(key, removed_at=now) for key_id, key in existing.items() if key_id not in wanted]
            current = [existing.get(key_id, replace(key, added_at=now)) for key_id, key in wanted.items()]
            self._save(replace(entry, keys=(*current, *fading)))

    def deleted(self) -> list[DeletedObject]:
        """The objects that can be restored: deleted less than `RETENTION` ago."""
        return [
            deleted
            for _, document in self._store.items(_DELETED)
            if (deleted := _deleted(document)).deleted_at + RETENTION > clock.now()
        ]

    def restore(self, object_id: str) -> Application | ServicePrincipal | None:
        """Restore a deleted object, an application with its principal; None without it. Raises 400 for a used name."""
        restorable = {deleted.entry.object_id: deleted.entry for deleted in self.deleted()}
        entry = restorable.get(object_id)
        if entry is None:
            return None
        with self._store.transaction():
            returning = [entry]
            if isinstance(entry, Application):
                self._refuse_taken_names(entry)
                principals = (other for other in restorable.values() if isinstance(other, ServicePrincipal))
                returning += [principal for principal in principals if principal.app_id == entry.app_id]
            elif self.service_principal_by_app(entry.app_id):
                raise refusal("Request_MultipleObjectsWithSameKeyValue principal", app=entry.app_id)
            for returned in returning:
                self._save(returned)
                self._store.delete(_DELETED, returned.object_id)
        return entry

    def purge(self, object_id: str) -> bool:
        """Purge a deleted object; returns whether it existed."""
        return self._store.delete(_DELETED, object_id)

    def _save(self, entry: Application | ServicePrincipal) -> None:
        kind, index = _KINDS[type(entry)]
        self._store.put(kind, entry.object_id, to_document(entry))
        self._store.put(index, entry.app_id, {"objectId": entry.object_id})

    def _forget(self, entry: Application | ServicePrincipal) -> None:
        kind, index = _KINDS[type(entry)]
        self._store.delete(kind, entry.object_id)
        self._store.delete(index, entry.app_id)

    def _bury(self, entry: Application | ServicePrincipal) -> None:
        self._forget(entry)
        document = {"type": _KINDS[type(entry)][0], "deletedAt": clock.now().isoformat(), "entry": to_document(entry)}
        self._store.put(_DELETED, entry.object_id, document)

    def _refuse_taken_names(self, application: Application) -> None:
        others = [other for other in self.all(Application) if other.object_id != application.object_id]
        deleted = [deleted.entry for deleted in self.deleted() if deleted.entry.object_id != application.object_id]
        unique_name = application.properties.get("uniqueName")
        # A deleted application keeps its unique name until it is purged (microsoftgraph/msgraph-bicep-types issue 137).
        if unique_name is not None and any(
            other.properties.get("uniqueName") == unique_name for other in (*others, *deleted)
        ):
            raise refusal("Request_BadRequest name taken", name="uniqueName")
        uris = set(application.properties.get("identifierUris", ()))
        if uris and any(uris & set(other.properties.get("identifierUris", ())) for other in others):
            raise refusal("Request_BadRequest name taken", name="identifierUris")


def _deleted(document: dict[str, Any]) -> DeletedObject:
    shape: type[Application | ServicePrincipal] = Application if document["type"] == _APPLICATIONS else ServicePrincipal
    return DeletedObject(from_document(shape, document["entry"]), datetime.fromisoformat(document["deletedAt"]))
