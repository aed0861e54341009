"""Credentials that somebody else added to the stacks' identities: whoever has one signs in as the identity.

This program registers certificates at applications, each under a key id of its own, and adds federated credentials to
managed identities. It makes no client secret, and adds nothing to a service principal, whose own credentials sign in as
its application's do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from identity.access.azure_client import AzureClient, AzureObject
from identity.access.records import ManagedIdentityRecord
from identity.access.registered_certificates import RegisteredKey, registered
from ops.sweep.model import CERTIFICATE, LeftOver, Swept
from ops.world import managed_identities

_NOT_OURS: Final = "this program did not add it"
_FEDERATED: Final = "federatedIdentityCredentials"


def of_applications(
    azure: AzureClient, applications: Iterable[AzureObject], is_named: Callable[[str], bool]
) -> Iterator[LeftOver]:
    """Those of applications and of their service principals; two requests for each application.

    Args:
        applications: of stacks, as Graph gives them.
        is_named: whether a stack has the credential with this id.

    Raises AzureRefusedError.
    """
    for application in applications:
        path, owner = f"/applications/{application['id']}", application["displayName"]
        others = [each for each in registered(application) if not each.is_ours]
        yield from _keys(path, owner, others, application.get("passwordCredentials"), is_named)
        for each in (azure.directory_object(f"{path}/{_FEDERATED}") or {}).get("value", ()):
            if not is_named(each["id"]):
                at = f"{path}/{_FEDERATED}/{each['id']}"
                yield _federated(at, owner, each["name"], each.get("subject"), each.get("issuer"))
        principal = azure.directory_object(f"/servicePrincipals(appId='{application['appId']}')")
        if principal is not None:
            path, owner = f"/servicePrincipals/{principal['id']}", f"the service principal of {owner}"
            yield from _keys(path, owner, registered(principal), principal.get("passwordCredentials"), is_named)


def of_managed_identities(
    azure: AzureClient, identities: Iterable[ManagedIdentityRecord], is_named: Callable[[str], bool]
) -> Iterator[LeftOver]:
    """Federated credentials of managed identities, which are of stacks, as ARM gives them; a request for each.

    Raises AzureRefusedError.
    """
    for identity in identities:
        for each in managed_identities.federated(azure, identity.id):
            if not is_named(each.id):
                yield _federated(each.id, identity.name, each.name, each.subject, each.issuer)


def _keys(
    path: str,
    owner: str,
    certificates: Iterable[RegisteredKey],
    passwords: Iterable[AzureObject] | None,
    is_named: Callable[[str], bool],
) -> Iterator[LeftOver]:
    for each in certificates:
        if not is_named(each.key_id):
            name = each.thumbprint or each.key_id
            yield _added(Swept.REGISTRATION, f"{path}{CERTIFICATE}{each.key_id}", f"{name} of {owner}")
    for password in passwords or ():
        if not is_named(password["keyId"]):
            name = password.get("displayName") or password["keyId"]
            yield _added(Swept.CLIENT_SECRET, f"{path}/password/{password['keyId']}", f"{name} of {owner}")


def _federated(path: str, owner: str, name: str, subject: str | None, issuer: str | None) -> LeftOver:
    whom = f", for {subject} of {issuer}"
    return _added(Swept.FEDERATED_CREDENTIAL, path, f"{name} of {owner}", whom)


def _added(kind: Swept, path: str, name: str, whom: str = "") -> LeftOver:
    return LeftOver(kind, path, name, f"no stack has it{whom}", _NOT_OURS)
