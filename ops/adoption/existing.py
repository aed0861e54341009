"""The existing resources of the identities in the scripts' files: in ARM, in Graph and in the vault."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from identity import resource_types
from identity.azure.client import AzureClient, AzureObject
from identity.azure.errors import AzureRefusedError
from identity.credentials.document import DATES, DocumentParser
from identity.naming import VAULT_TYPE, ArmId, parse_arm_id, subscription_id
from ops.adoption.files import ControlPlaneFile, ScriptIdentity
from ops.stack.errors import CommandError
from ops.world.azure import federated_credentials, managed_identities_within, read_vault_secret

_PEM_BEGINS: Final = b"-----BEGIN"


@dataclass(frozen=True)
class FoundApplication:
    """An application and its service principal, if there is one."""

    object_id: str
    display_name: str
    principal_id: str | None


@dataclass(frozen=True)
class FoundIdentity:
    """A managed identity; `federated` has the names of its federated credentials by issuer and subject."""

    id: ArmId
    location: str
    principal_id: str
    federated: Mapping[tuple[str, str], str]


@dataclass(frozen=True)
class FoundResources:
    """The existing resources, by field of the HostedCluster API; `vault` is None for a cluster without certificates.

    `secrets` has remarks about each credential's secret and its document.
    """

    subscription: str
    vault: AzureObject | None
    applications: Mapping[str, FoundApplication]
    secrets: Mapping[str, Sequence[str]]
    managed: Mapping[str, FoundIdentity]


def look_up(
    azure: AzureClient,
    subscription: str,
    vault_name: str | None,
    control_plane: ControlPlaneFile,
    client_ids: Mapping[str, str],
) -> FoundResources:
    """Look up everything that the files name; `client_ids` are those of the managed identities, by field.

    `vault_name` is None for a cluster without certificates. Raises AzureRefusedError, and CommandError with all that is
    missing.
    """
    problems: list[str] = []
    vault = None if vault_name is None else _vault(azure, subscription, vault_name)
    if vault is None and vault_name is not None:
        problems.append(f"no key vault {vault_name} in the subscription {subscription}")
    applications = {}
    for field, identity in control_plane.identities.items():
        application = _application(azure, identity.client_id)
        if application is None:
            problems.append(f"{field}: no application with the client id {identity.client_id} in the tenant")
        else:
            applications[field] = application
    managed = dict(_managed_identities(azure, subscription, client_ids))
    problems += [
        f"{field}: no managed identity with the client id {client_id} in the subscription {subscription}"
        for field, client_id in client_ids.items()
        if field not in managed
    ]
    if problems:
        listed = "\n".join(f"- {problem}" for problem in problems)
        of_vault = "" if vault_name is None else ", the name of its vault"
        raise CommandError(
            f"the deployer cannot find these resources:\n{listed}\nUse the files of this cluster{of_vault}, and a "
            "stack with its tenant and subscription"
        )
    vault_id = "" if vault is None else vault["id"]
    secrets = {field: list(_remarks(azure, vault_id, identity)) for field, identity in control_plane.identities.items()}
    return FoundResources(subscription, vault, applications, secrets, managed)


def _vault(azure: AzureClient, subscription: str, name: str) -> AzureObject | None:
    collection = f"{subscription_id(subscription)}/providers/{VAULT_TYPE}"
    return next(
        (
            resource
            for resource in azure.resources(collection, resource_types.KEY_VAULT_API)
            if resource["name"].lower() == name.lower()
        ),
        None,
    )


def _application(azure: AzureClient, client_id: str) -> FoundApplication | None:
    application = azure.directory_object(f"/applications(appId='{client_id}')")
    if application is None:
        return None
    principal = azure.directory_object(f"/servicePrincipals(appId='{client_id}')")
    return FoundApplication(
        object_id=application["id"],
        display_name=application["displayName"],
        principal_id=None if principal is None else principal["id"],
    )


def _remarks(azure: AzureClient, vault_id: str, identity: ScriptIdentity) -> Iterator[str]:
    secret = read_vault_secret(azure, vault_id, identity.secret_name)
    if secret is None:
        yield "no such secret"
        return
    if not secret.expires:
        yield "secret without dates"
    try:
        value = azure.vault(parse_arm_id(vault_id).name, "GET", f"/secrets/{identity.secret_name}")
    except AzureRefusedError:
        # A reader of everything else may lack this right, and the adoption does not need the value.
        yield "document not read: the deployer lacks the right"
        return
    parser = DocumentParser("" if value is None else str(value["value"]), identity.object_encoding)
    if parser.problems:
        # Without their text, which may have parts of a credential.
        yield "document that pods refuse"
        return
    try:
        bundle = base64.b64decode(parser.strings["client_secret"])
    except (binascii.Error, ValueError):
        bundle = b""
    if not bundle.lstrip().startswith(_PEM_BEGINS):
        yield "PKCS#12"
    if missing := [name for name in DATES if name not in parser.dates]:
        yield f"document without {', '.join(missing)}"


def _managed_identities(
    azure: AzureClient, subscription: str, client_ids: Mapping[str, str]
) -> Iterator[tuple[str, FoundIdentity]]:
    existing = managed_identities_within(azure, subscription_id(subscription))
    by_client_id = {identity.client_id.lower(): identity for identity in existing}
    for field, client_id in client_ids.items():
        if identity := by_client_id.get(client_id):
            yield (
                field,
                FoundIdentity(
                    id=parse_arm_id(identity.id),
                    location=identity.location,
                    principal_id=identity.principal_id,
                    federated={
                        (identity.issuer, identity.subject): identity.name
                        for identity in federated_credentials(azure, identity.id)
                    },
                ),
            )
