"""Credentials that somebody else added to the stacks' applications: whoever has one signs in as the identity.

This program registers certificates, each under a key id of its own, and adds neither client secrets nor federated
credentials to an application.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from identity.access.azure_client import AzureClient, AzureObject
from identity.access.registered_certificates import thumbprint, thumbprint_of_ours
from ops.sweep.model import CERTIFICATE, LeftOver, Swept

_NOT_OURS: Final = "this program did not add it"


def find(
    azure: AzureClient, applications: Iterable[AzureObject], is_named: Callable[[str], bool]
) -> Iterator[LeftOver]:
    """Those that no stack has; one request for each application.

    Args:
        applications: of stacks, as Graph gives them.
        is_named: whether a stack has the credential with this id.

    Raises AzureRefused.
    """
    for application in applications:
        path, owner = f"/applications/{application['id']}", application["displayName"]
        for each in application.get("keyCredentials") or ():
            if thumbprint_of_ours(each) is None and not is_named(each["keyId"]):
                name = thumbprint(each) or each["keyId"]
                yield _added(Swept.REGISTRATION, f"{path}{CERTIFICATE}{each['keyId']}", f"{name} of {owner}")
        for each in application.get("passwordCredentials") or ():
            if not is_named(each["keyId"]):
                name = each.get("displayName") or each["keyId"]
                yield _added(Swept.CLIENT_SECRET, f"{path}/password/{each['keyId']}", f"{name} of {owner}")
        federated = f"{path}/federatedIdentityCredentials"
        for each in (azure.directory_object(federated) or {}).get("value", ()):
            if not is_named(each["id"]):
                who = f"{each.get('subject')} of {each.get('issuer')}"
                name = f"{each['name']} of {owner}"
                yield _added(Swept.FEDERATED_CREDENTIAL, f"{federated}/{each['id']}", name, f", for {who}")


def _added(kind: Swept, path: str, name: str, whom: str = "") -> LeftOver:
    return LeftOver(kind, path, name, f"no stack has it{whom}", _NOT_OURS)
