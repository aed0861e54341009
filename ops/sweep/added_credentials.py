"""Foreign credentials of the stacks' identities, which allow others to sign in as the identity.

This program registers certificates at applications, with its own key ids, and adds federated credentials to managed
identities. It creates no client secret, and adds no credential to a service principal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from identity.azure.client import AzureClient, AzureObject
from identity.azure.records import ManagedIdentityRecord
from identity.azure.registered_certificates import RegisteredKey, registered
from ops.sweep.model import CERTIFICATE, LeftOver, Swept
from ops.world.azure import federated_credentials

_NOT_OURS: Final = "this program did not add it"
_FEDERATED: Final = "federatedIdentityCredentials"


def of_applications(
    azure: AzureClient, applications: Iterable[AzureObject], is_named: Callable[[str], bool]
) -> Iterator[LeftOver]:
    """The foreign credentials of applications and their service principals; two requests for each application.

    Args:
        applications: of stacks, as objects of Graph.
        is_named: whether a stack has the credential with this id.

    Raises AzureRefusedError.
    """
    for application in applications:
        path, owner = f"/applications/{application['id']}", application["displayName"]
        foreign = [certificate for certificate in registered(application) if not certificate.is_ours]
        yield from _keys(path, owner, foreign, application.get("passwordCredentials"), is_named)
        for credential in (azure.directory_object(f"{path}/{_FEDERATED}") or {}).get("value", ()):
            if not is_named(credential["id"]):
                at = f"{path}/{_FEDERATED}/{credential['id']}"
                yield _federated(at, owner, credential["name"], credential.get("subject"), credential.get("issuer"))
        principal = azure.directory_object(f"/servicePrincipals(appId='{application['appId']}')")
        if principal is not None:
            path, owner = f"/servicePrincipals/{principal['id']}", f"the service principal of {owner}"
            yield from _keys(path, owner, registered(principal), principal.get("passwordCredentials"), is_named)


def of_managed_identities(
    azure: AzureClient, identities: Iterable[ManagedIdentityRecord], is_named: Callable[[str], bool]
) -> Iterator[LeftOver]:
    """The foreign federated credentials of the stacks' managed identities; a request for each.

    Raises AzureRefusedError.
    """
    for identity in identities:
        for credential in federated_credentials(azure, identity.id):
            if not is_named(credential.id):
                yield _federated(credential.id, identity.name, credential.name, credential.subject, credential.issuer)


def _keys(
    path: str,
    owner: str,
    certificates: Iterable[RegisteredKey],
    passwords: Iterable[AzureObject] | None,
    is_named: Callable[[str], bool],
) -> Iterator[LeftOver]:
    for certificate in certificates:
        if not is_named(certificate.key_id):
            name = certificate.thumbprint or certificate.key_id
            yield _added(Swept.REGISTRATION, f"{path}{CERTIFICATE}{certificate.key_id}", f"{name} of {owner}")
    for password in passwords or ():
        if not is_named(password["keyId"]):
            name = password.get("displayName") or password["keyId"]
            yield _added(Swept.CLIENT_SECRET, f"{path}/password/{password['keyId']}", f"{name} of {owner}")


def _federated(path: str, owner: str, name: str, subject: str | None, issuer: str | None) -> LeftOver:
    return _added(Swept.FEDERATED_CREDENTIAL, path, f"{name} of {owner}", f", for {subject} of {issuer}")


def _added(kind: Swept, path: str, name: str, subject: str = "") -> LeftOver:
    return LeftOver(kind, path, name, f"no stack has it{subject}", _NOT_OURS)
