"""The principals that work on the local cloud: the deployer's application, and the subscription's owner."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from cryptography import x509

from localcloud.azure.authorization import built_in_roles
from localcloud.azure.graph.permissions import WRITE_ALL, WRITE_OWNED
from localcloud.azure.resource_store import Resources
from localcloud.azure.tenant.directory import Directory
from localcloud.azure.tenant.objects import Application, KeyCredential, ServicePrincipal
from localcloud.core import clock
from localcloud.core.arm_ids import role_definition_id, subscription_id
from localcloud.core.certificates import CLOCK_SKEW, issue
from localcloud.core.files import write_private
from localcloud.core.store import Document, Store

_DEPLOYER, _OWNER = "deployer", "owner"
# The roles of an administrator of a subscription and its vaults.
_OWNERS_ROLES = ("Owner", "Key Vault Administrator")
_LIFETIME = timedelta(days=365)
_RENEWED_BEFORE = timedelta(days=30)
# It and its certificate are backdated by this much, so that every replica knows both from the start.
_SINCE = timedelta(days=1)


def ensure_deployer(store: Store, directory: Directory, credential: Path) -> ServicePrincipal:
    """The deployer's service principal, created on the first call, with Graph's `Application.ReadWrite.OwnedBy`.

    Writes key and certificate to `credential` (PEM, 0600), again when it is lost or about to expire; the certificate
    registered before is then removed.
    """
    return _ensure(_DEPLOYER, WRITE_OWNED, store, directory, credential)


def ensure_owner(store: Store, directory: Directory, subscription: str, credential: Path) -> ServicePrincipal:
    """The owner's service principal, created on the first call, with the roles of an owner on the subscription and
    Graph's `Application.ReadWrite.All`. Its credential is kept as the deployer's is.
    """
    with store.transaction():
        principal = _ensure(_OWNER, WRITE_ALL, store, directory, credential)
        for role in _OWNERS_ROLES:
            Resources(store).put(role_assignment(subscription, principal.object_id, role))
    return principal


def role_assignment(subscription: str, principal: str, role: str, condition: str | None = None) -> Document:
    """A built-in role of a service principal on the subscription, long in effect; raises KeyError for another."""
    guids = {role.role_name: guid for guid, role in built_in_roles().items()}
    scope, since = subscription_id(subscription), (clock.now() - _SINCE).isoformat()
    type_name, name = (
        "Microsoft.Authorization/roleAssignments",
        str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{principal}-{role}")),
    )
    return {
        "id": f"{scope}/providers/{type_name}/{name}",
        "name": name,
        "type": type_name,
        "seeded": True,
        "properties": {
            "principalId": principal,
            "principalType": "ServicePrincipal",
            "roleDefinitionId": role_definition_id(subscription, guids[role]),
            "scope": scope,
            "description": None,
            "condition": condition,
            "conditionVersion": None if condition is None else "2.0",
            "createdOn": since,
            "updatedOn": since,
            "createdBy": "",
            "updatedBy": "",
        },
    }


def _ensure(name: str, permission: str, store: Store, directory: Directory, credential: Path) -> ServicePrincipal:
    with store.transaction():
        known = store.get(name, name)
        principal = directory.service_principal(known["objectId"]) if known else None
        if principal is None:
            principal = _create(directory, name, permission)
            store.put(name, name, {"objectId": principal.object_id})
        application = directory.application_by_app(principal.app_id)
        if application is None:
            raise LookupError(f"no application {principal.app_id}")
        if not _is_good(credential, application):
            _register(directory, application, credential)
    return principal


def _create(directory: Directory, name: str, permission: str) -> ServicePrincipal:
    application = directory.create_application(name)
    principal = directory.create_service_principal(application.app_id)
    since = clock.now() - _SINCE
    directory.update(replace(application, created_at=since))
    directory.update(replace(principal, created_at=since))
    directory.grant(principal.object_id, permission)
    return principal


def _register(directory: Directory, application: Application, credential: Path) -> None:
    name = application.display_name
    issued = issue(name, not_before=clock.now() - CLOCK_SKEW, lifetime=_LIFETIME)
    key = KeyCredential.of(issued.certificate, display_name=name)
    directory.update(replace(application, keys=(replace(key, added_at=clock.now() - _SINCE),)))
    write_private(credential, issued.pem())


def _is_good(credential: Path, application: Application) -> bool:
    if not credential.exists():
        return False
    key = KeyCredential.of(x509.load_pem_x509_certificate(credential.read_bytes()))
    registered = {key.thumbprint for key in application.key_credentials}
    return key.thumbprint in registered and key.end - _RENEWED_BEFORE > clock.now()
