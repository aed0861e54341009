"""The existing resources of the identities in the scripts' files: in ARM, in Graph and in the vault."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from identity import resource_types
from identity.access.azure_client import AzureClient, AzureObject
from identity.access.errors import AzureRefusedError
from identity.access.registered_certificates import registered
from identity.credentials.document_parser import DATES, DocumentParser
from identity.naming import VAULT_TYPE, ArmId, parse_arm_id, subscription_id
from ops.adoption.files import ControlPlaneFile, ScriptIdentity
from ops.stack.errors import CommandError
from ops.world import managed_identities, vault_secrets

_PEM_BEGINS: Final = b"-----BEGIN"


@dataclass(frozen=True)
class FoundApplication:
    """An application and its service principal, if there is one; `certificates` counts the registered ones."""

    object_id: str
    display_name: str
    certificates: int
    principal_id: str | None


@dataclass(frozen=True)
class FoundSecret:
    """A credential's secret, with remarks about its document; `id` is None if it does not exist."""

    id: str | None
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class FoundIdentity:
    """A managed identity; `federated` has the names of its federated credentials by issuer and subject."""

    id: ArmId
    location: str
    principal_id: str
    federated: Mapping[tuple[str, str], str]


@dataclass(frozen=True)
class FoundResources:
    """The existing resources, by field of the HostedCluster API; `vault` is None for a cluster without certificates."""

    subscription: str
    vault: AzureObject | None
    applications: Mapping[str, FoundApplication]
    secrets: Mapping[str, FoundSecret]
    managed: Mapping[str, FoundIdentity]

    @property
    def known_vault(self) -> AzureObject:
        """The vault of a cluster with certificates."""
        if self.vault is None:
            raise AssertionError("a cluster with certificates has a vault")
        return self.vault

    @property
    def vault_id(self) -> ArmId:
        """The parts of the vault's id."""
        return parse_arm_id(self.known_vault["id"])


def look_up(
    azure: AzureClient,
    subscription: str,
    vault_name: str,
    control_plane: ControlPlaneFile,
    data_plane: Mapping[str, str],
) -> FoundResources:
    """Look up everything that the files name; raises AzureRefusedError, and CommandError with all that is missing."""
    problems: list[str] = []
    vault = _vault(azure, subscription, vault_name)
    if vault is None:
        problems.append(f"no key vault {vault_name} in the subscription {subscription}")
    applications = {}
    for field, identity in control_plane.identities.items():
        application = _application(azure, identity.client_id)
        if application is None:
            problems.append(f"{field}: no application with the client id {identity.client_id} in the tenant")
        else:
            applications[field] = application
    managed = dict(_managed_identities(azure, subscription, data_plane))
    problems += [
        f"{field}: no managed identity with the client id {client_id} in the subscription"
        for field, client_id in data_plane.items()
        if field not in managed
    ]
    if vault is None or problems:
        listed = "\n".join(f"- {problem}" for problem in problems)
        raise CommandError(
            f"the deployer cannot find these resources:\n{listed}\nUse the files of this cluster, the name of its "
            "vault, and a stack with its tenant and subscription"
        )
    secrets = {field: _secret(azure, vault["id"], identity) for field, identity in control_plane.identities.items()}
    return FoundResources(subscription, vault, applications, secrets, managed)


def look_up_identities(azure: AzureClient, subscription: str, named: Mapping[str, str]) -> FoundResources:
    """Look up the managed identities with these client ids, by field; raises as `look_up`."""
    managed = dict(_managed_identities(azure, subscription, named))
    if missing := [f"- {field}: {client_id}" for field, client_id in named.items() if field not in managed]:
        listed = "\n".join(missing)
        raise CommandError(
            f"the deployer cannot find managed identities with these client ids in the subscription {subscription}:\n"
            f"{listed}\nUse the file of this cluster, and a stack with its tenant and subscription"
        )
    return FoundResources(subscription, None, {}, {}, managed)


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
        certificates=len(registered(application)),
        principal_id=None if principal is None else principal["id"],
    )


def _secret(azure: AzureClient, vault_id: str, identity: ScriptIdentity) -> FoundSecret:
    secret = vault_secrets.read_one(azure, vault_id, identity.secret_name)
    if secret is None:
        return FoundSecret(None, ("no such secret",))
    remarks = [] if secret.expires else ["secret without dates"]
    try:
        value = azure.vault(parse_arm_id(vault_id).name, "GET", f"/secrets/{identity.secret_name}")
    except AzureRefusedError:
        # A reader of everything else may lack this right, and the adoption does not need the value.
        return FoundSecret(secret.id, (*remarks, "document not read: the deployer lacks the right"))
    text = "" if value is None else str(value["value"])
    return FoundSecret(secret.id, (*remarks, *_remarks(text, identity.object_encoding)))


def _remarks(value: str, object_encoding: str) -> Iterator[str]:
    parser = DocumentParser(value, object_encoding)
    if parser.problems:
        # Without their text, which may have parts of a credential.
        yield "document that pods refuse"
        return
    try:
        secret = base64.b64decode(parser.strings["client_secret"])
    except (binascii.Error, ValueError):
        secret = b""
    if not secret.lstrip().startswith(_PEM_BEGINS):
        yield "PKCS#12"
    if missing := [name for name in DATES if name not in parser.dates]:
        yield f"document without {', '.join(missing)}"


def _managed_identities(
    azure: AzureClient, subscription: str, client_ids: Mapping[str, str]
) -> Iterator[tuple[str, FoundIdentity]]:
    existing = managed_identities.within(azure, subscription_id(subscription))
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
                        for identity in managed_identities.federated(azure, identity.id)
                    },
                ),
            )
