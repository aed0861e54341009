"""What exists in Azure of the identities that HyperShift's scripts name: at ARM, in Graph and in the vault."""

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
from identity.naming import ArmId, parse_arm_id, subscription_id
from ops.adoption.files import ControlPlaneFile, ScriptIdentity
from ops.stack.errors import CommandError
from ops.world import managed_identities, vault_secrets

_PEM_BEGINS: Final = b"-----BEGIN"


@dataclass(frozen=True)
class FoundApplication:
    """An application and its service principal, by object ids; `principal_id` is None if it has none.

    `certificates` is how many are registered.
    """

    object_id: str
    display_name: str
    certificates: int
    principal_id: str | None


@dataclass(frozen=True)
class FoundSecret:
    """A credential's secret; None for an `id` that does not exist. `remarks` are what its document lacks or is."""

    id: str | None
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class FoundIdentity:
    """A managed identity; `federated` are names of its federated credentials by issuer and subject."""

    id: ArmId
    location: str
    principal_id: str
    federated: Mapping[tuple[str, str], str]


@dataclass(frozen=True)
class FoundResources:
    """Everything that was found, by field of the HostedCluster API.

    `vault` is ARM's answer, None for a cluster without certificates.
    """

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
        """The vault's id, taken apart."""
        return parse_arm_id(self.known_vault["id"])


def look_up(
    azure: AzureClient,
    subscription: str,
    vault_name: str,
    control_plane: ControlPlaneFile,
    data_plane: Mapping[str, str],
) -> FoundResources:
    """Look everything up that the files name.

    Raises CommandError with all that does not exist, and AzureRefusedError for a service that refuses or does not
    answer.
    """
    problems: list[str] = []
    vault = _vault(azure, subscription, vault_name)
    if vault is None:
        problems.append(f"no key vault {vault_name} in the subscription {subscription}")
    applications = {}
    for field, given in control_plane.identities.items():
        found = _application(azure, given.client_id)
        if found is None:
            problems.append(f"{field}: no application with the client id {given.client_id} in the tenant")
        else:
            applications[field] = found
    managed = dict(_managed_identities(azure, subscription, data_plane))
    problems += [
        f"{field}: no managed identity with the client id {client_id} in the subscription"
        for field, client_id in data_plane.items()
        if field not in managed
    ]
    if vault is None or problems:
        listed = "\n".join(f"- {each}" for each in problems)
        raise CommandError(
            f"these do not exist, as far as the deployer can see:\n{listed}\nGive the files of this cluster, the name "
            "of its vault, and a stack with its tenant and subscription"
        )
    secrets = {field: _secret(azure, vault["id"], given) for field, given in control_plane.identities.items()}
    return FoundResources(subscription, vault, applications, secrets, managed)


def look_up_identities(azure: AzureClient, subscription: str, named: Mapping[str, str]) -> FoundResources:
    """Look up the managed identities with these client ids, by field; raises as `look_up`."""
    managed = dict(_managed_identities(azure, subscription, named))
    if missing := [f"- {field}: {client_id}" for field, client_id in named.items() if field not in managed]:
        listed = "\n".join(missing)
        raise CommandError(
            f"the subscription {subscription} has no managed identity with these client ids, as far as the deployer "
            f"can see:\n{listed}\nGive the file of this cluster, and a stack with its tenant and subscription"
        )
    return FoundResources(subscription, None, {}, {}, managed)


def _vault(azure: AzureClient, subscription: str, name: str) -> AzureObject | None:
    collection = f"{subscription_id(subscription)}/providers/Microsoft.KeyVault/vaults"
    return next(
        (
            each
            for each in azure.resources(collection, resource_types.KEY_VAULT_API)
            if each["name"].lower() == name.lower()
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


def _secret(azure: AzureClient, vault_id: str, given: ScriptIdentity) -> FoundSecret:
    found = vault_secrets.read_one(azure, vault_id, given.secret_name)
    if found is None:
        return FoundSecret(None, ("no such secret",))
    remarks = [] if found.expires else ["secret without dates"]
    try:
        value = azure.vault(parse_arm_id(vault_id).name, "GET", f"/secrets/{given.secret_name}")
    except AzureRefusedError:
        # Whoever may look at everything may still read no secret; the adoption does not need it.
        return FoundSecret(found.id, (*remarks, "document not read: the deployer may not"))
    text = "" if value is None else str(value["value"])
    return FoundSecret(found.id, (*remarks, *_remarks(text, given.object_encoding)))


def _remarks(value: str, object_encoding: str) -> Iterator[str]:
    parser = DocumentParser(value, object_encoding)
    if parser.problems:
        # Not their text: it is about a credential.
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
    azure: AzureClient, subscription: str, wanted: Mapping[str, str]
) -> Iterator[tuple[str, FoundIdentity]]:
    every = managed_identities.within(azure, subscription_id(subscription))
    by_client_id = {each.client_id.lower(): each for each in every}
    for field, client_id in wanted.items():
        if identity := by_client_id.get(client_id):
            yield (
                field,
                FoundIdentity(
                    id=parse_arm_id(identity.id),
                    location=identity.location,
                    principal_id=identity.principal_id,
                    federated={
                        (each.issuer, each.subject): each.name
                        for each in managed_identities.federated(azure, identity.id)
                    },
                ),
            )
