"""Leftovers: what one is, and the applications, managed identities and credentials among them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from identity import resource_types
from identity.azure.client import AzureClient, AzureObject
from identity.azure.records import ManagedIdentityRecord, SecretMetadata
from identity.azure.registered_certificates import registered
from identity.credentials import rfc3339
from identity.credentials.schedule import OVERLAP
from identity.credentials.secret_tags import DELIVERED_AT, THUMBPRINT
from ops.world.azure import CERTIFICATE, added_credentials, federated_credentials


class Swept(StrEnum):
    """The kinds of leftovers, in the order of deletion: assignments before their identities."""

    ROLE_ASSIGNMENT = "role assignment"
    REGISTRATION = "registered certificate"
    CLIENT_SECRET = "client secret"
    FEDERATED_CREDENTIAL = "federated credential"
    APPLICATION = "application"
    SECRET = "secret"
    STORAGE_ACCOUNT = "storage account"
    MANAGED_IDENTITY = "managed identity"
    MACHINE = "virtual machine"
    DISK = "disk"
    INTERFACE = "network interface"
    LOAD_BALANCER = "load balancer"
    PUBLIC_ADDRESS = "public IP address"


@dataclass(frozen=True)
class LeftOver:
    """A leftover: its id (of ARM, or a path in Graph), its name, and why it is listed.

    `not_ours` says why it is not this program's; None if it is. `too_soon` says until when it must stay; None if it may
    be deleted.
    """

    kind: Swept
    id: str
    name: str
    reason: str
    not_ours: str | None = None
    too_soon: str | None = None

    @property
    def is_deleted(self) -> bool:
        """Whether `--yes` deletes it."""
        return self.not_ours is None and self.too_soon is None

    def to_json(self) -> dict[str, Any]:
        """The leftover in the JSON document."""
        found = {"kind": self.kind, "id": self.id, "name": self.name, "reason": self.reason}
        return {**found, "notOurs": self.not_ours, "tooSoon": self.too_soon, "ours": self.not_ours is None}


def find_registrations(
    applications: Iterable[AzureObject],
    secrets: Iterable[SecretMetadata],
    is_named: Callable[[str], bool],
    now: datetime,
) -> Iterator[LeftOver]:
    """The unknown registrations of ours with a successor in the vault, so that pods do not depend on them for long.

    A run may have made a young one, and not yet delivered it.

    Args:
        applications: of stacks, as objects of Graph.
        secrets: the vault's.
        is_named: whether a stack has the certificate with this key id.
        now: with a time zone.
    """
    delivered = dict(_delivered(secrets))
    for application in applications:
        ours = {
            thumbprint: certificate
            for certificate in registered(application)
            if certificate.is_ours and (thumbprint := certificate.thumbprint)
        }
        successors = [
            delivered[thumbprint]
            for thumbprint, certificate in ours.items()
            if thumbprint in delivered and is_named(certificate.key_id)
        ]
        if not successors:
            continue
        for thumbprint, certificate in ours.items():
            if not is_named(certificate.key_id) and thumbprint not in delivered:
                free_at = max(*successors, certificate.begins) + OVERLAP
                yield LeftOver(
                    Swept.REGISTRATION,
                    f"/applications/{application['id']}{CERTIFICATE}{certificate.key_id}",
                    f"{thumbprint} of {application['displayName']}",
                    "no stack has it, and the vault has a newer one",
                    too_soon=f"pods may sign in with it until {rfc3339.render(free_at)}" if now < free_at else None,
                )


def _delivered(secrets: Iterable[SecretMetadata]) -> Iterator[tuple[str, datetime]]:
    """Thumbprint and time of each certificate in the vault, by valid tags; an edited tag makes no time earlier."""
    for secret in secrets:
        with suppress(KeyError, ValueError):
            yield secret.tags[THUMBPRINT], max(rfc3339.parse(secret.tags[DELIVERED_AT]), secret.created)


# kubernetes-sigs/cluster-api-provider-azure api/v1beta1/tags.go, `ClusterTagKey`: on machines and, in newer releases,
# on their interfaces. HyperShift names its Cluster by the infrastructure id (`CAPICluster` in
# hypershift-operator/controllers/manifests/controlplaneoperator/manifests.go).
_MACHINES_TAG: Final = "sigs.k8s.io_cluster-api-provider-azure_cluster_"
_OWNED: Final = "owned"
# cloud-provider-azure pkg/consts/consts.go, on addresses; its `--cluster-name` is the infrastructure id, and so is the
# name of its public load balancer (HyperShift v2/cloud_controller_manager/azure/deployment.go).
_ADDRESS_TAG: Final = "k8s-azure-cluster-name"
_INTERNAL: Final = "-internal"
_NOT_OURS: Final = "HyperShift created it, and its cluster may be unknown to the stacks of this backend"


def find_machines(
    azure: AzureClient, subscription: str, is_living: Callable[[str], bool], infra_ids: Collection[str]
) -> Iterator[LeftOver]:
    """The remains in a subscription (its ARM id) of clusters that no stack has; one list for each type.

    Args:
        is_living: whether a stack has a hosted cluster with this infrastructure id.
        infra_ids: of deleted clusters, from the user; others are found by their machines.

    ARM lists the resources that the deployer may read. Raises AzureRefusedError.
    """

    def listed(kind: Swept) -> list[AzureObject]:
        return azure.resources(
            f"{subscription}/resources", resource_types.RESOURCES_LIST_API, f"resourceType eq '{_TYPES[kind]}'"
        )

    machines = listed(Swept.MACHINE)
    owners = {machine["id"].lower(): infra_id for machine in machines if (infra_id := _tagged(machine))}
    deleted = {infra_id for infra_id in (*owners.values(), *infra_ids) if not is_living(infra_id)}
    if not deleted:
        return
    by_name = {machine["name"].lower(): owners.get(machine["id"].lower()) for machine in machines}

    def of_machine(resource: AzureObject) -> str | None:
        """The infrastructure id of a disk or interface, by its tag, by its machine, or by its name."""
        name = resource["name"].lower()
        stem = name.removesuffix("_osdisk") if name.endswith("_osdisk") else name.partition("-nic")[0]
        return _tagged(resource) or owners.get(str(resource.get("managedBy", "")).lower()) or by_name.get(stem)

    finders: dict[Swept, Callable[[AzureObject], str | None]] = {
        Swept.MACHINE: _tagged,
        Swept.DISK: of_machine,
        Swept.INTERFACE: of_machine,
        Swept.LOAD_BALANCER: lambda balancer: str(balancer["name"]).removesuffix(_INTERNAL),
        Swept.PUBLIC_ADDRESS: lambda address: (address.get("tags") or {}).get(_ADDRESS_TAG) or address["name"],
    }
    for kind, infra_id_of in finders.items():
        for candidate in machines if kind == Swept.MACHINE else listed(kind):
            if (infra_id := infra_id_of(candidate)) in deleted:
                reason = f"it is of the cluster with the infrastructure id {infra_id}, which no stack has"
                yield LeftOver(kind, candidate["id"], candidate["name"], reason, _NOT_OURS)


_TYPES: Final = {
    Swept.MACHINE: "Microsoft.Compute/virtualMachines",
    Swept.DISK: "Microsoft.Compute/disks",
    Swept.INTERFACE: "Microsoft.Network/networkInterfaces",
    Swept.LOAD_BALANCER: "Microsoft.Network/loadBalancers",
    Swept.PUBLIC_ADDRESS: "Microsoft.Network/publicIPAddresses",
}


def _tagged(resource: AzureObject) -> str | None:
    """The infrastructure id in the tag of machines."""
    for name, value in (resource.get("tags") or {}).items():
        if name.startswith(_MACHINES_TAG) and value == _OWNED:
            return str(name.removeprefix(_MACHINES_TAG))
    return None


_NOT_ADDED_BY_US: Final = "this program did not add it"


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
        principal = azure.directory_object(f"/servicePrincipals(appId='{application['appId']}')")
        for added in added_credentials(azure, application, principal):
            if not is_named(added.id):
                reason = f"no stack has it{added.trusts}"
                yield LeftOver(Swept(added.kind), added.path, added.name, reason, _NOT_ADDED_BY_US)


def of_managed_identities(
    azure: AzureClient, identities: Iterable[ManagedIdentityRecord], is_named: Callable[[str], bool]
) -> Iterator[LeftOver]:
    """The foreign federated credentials of the stacks' managed identities; a request for each.

    Raises AzureRefusedError.
    """
    for identity in identities:
        for found in federated_credentials(azure, identity.id):
            if not is_named(found.id):
                reason = f"no stack has it, for {found.subject} of {found.issuer}"
                name = f"{found.name} of {identity.name}"
                yield LeftOver(Swept.FEDERATED_CREDENTIAL, found.id, name, reason, _NOT_ADDED_BY_US)
