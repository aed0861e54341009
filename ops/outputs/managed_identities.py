"""Managed identities without a credential in the vault in a stack's outputs, compared with Azure.

They are the optional ones, and those of clusters that sign in by workload identities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from identity import resource_types
from identity.azure.client import AzureObject
from identity.azure.errors import AccessError
from identity.catalogue import FEDERATED_AUDIENCE, OPTIONAL, WORKLOAD
from identity.catalogue_rows import DataPlaneIdentity, OptionalManagedIdentity
from identity.naming import parse_arm_id
from identity.outputs import HostedClusterOutput, ManagedIdentityOutput, StackOutputs

# Reads a resource of ARM by its id and API version; None if there is none.
ResourceOf: TypeAlias = Callable[[str, str], AzureObject | None]
# `replaced`: there is one of the same name with another client id, which no role assignment of the stack names.
State: TypeAlias = Literal["exists", "missing", "replaced", "not known"]

_ROWS: Final[tuple[OptionalManagedIdentity | DataPlaneIdentity, ...]] = (*OPTIONAL, *WORKLOAD)


@dataclass(frozen=True)
class FederatedCredential:
    """A service account that may use an identity, and the state of the credential that says so."""

    name: str  # what tells it from the others of the identity
    subject: str
    state: State


@dataclass(frozen=True)
class ManagedIdentityRow:
    """One managed identity of one hosted cluster; `role` is Azure's display name of it, of each role set."""

    cluster: str
    identity: str
    client_id: str
    resource_id: str
    role: str
    state: State
    federated: tuple[FederatedCredential, ...]

    @property
    def is_wrong(self) -> bool:
        """Whether Azure does not have what the stack made; what could not be read is not wrong."""
        return any(state in ("missing", "replaced") for state in (self.state, *(each.state for each in self.federated)))

    def to_json(self) -> dict[str, Any]:
        """The row for scripts."""
        return {
            "cluster": self.cluster,
            "identity": self.identity,
            "kind": "managed-identity",
            "clientID": self.client_id,
            "resourceID": self.resource_id,
            "role": self.role,
            "state": self.state,
            "federatedCredentials": [{"subject": each.subject, "state": each.state} for each in self.federated],
        }


@dataclass(frozen=True)
class ManagedIdentities:
    """A row for each such managed identity; `unread` has what could not be read, each with its reason."""

    rows: tuple[ManagedIdentityRow, ...] = ()
    unread: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Rows and what was not read, for scripts."""
        return {"rows": [row.to_json() for row in self.rows], "unread": list(self.unread)}


def read(outputs: StackOutputs[str], resource_of: ResourceOf | None) -> ManagedIdentities:
    """Read each from ARM, in the catalogue's order; None: ARM cannot be asked, so that no state is known.

    Nothing is raised: what cannot be read is named.
    """
    unread: list[str] = []
    rows = [
        _row(cluster, row, output, _issuer(described), resource_of, unread)
        for cluster, described in outputs.get("hostedClusters", {}).items()
        for row in _ROWS
        if (output := described.get("managedIdentities", {}).get(row.field)) is not None
    ]
    return ManagedIdentities(tuple(rows), tuple(unread))


def _issuer(described: HostedClusterOutput[str]) -> str:
    return described["hostedClusterSpec"]["issuerURL"] if "hostedClusterSpec" in described else ""


def _row(
    cluster: str,
    row: OptionalManagedIdentity | DataPlaneIdentity,
    output: ManagedIdentityOutput[str],
    issuer: str,
    resource_of: ResourceOf | None,
    unread: list[str],
) -> ManagedIdentityRow:
    resource_id = output["resourceID"]
    state: State = "not known"
    federated = tuple(FederatedCredential(subject.word, subject.subject, "not known") for subject in row.subjects)
    if resource_of is not None:
        try:
            state = _state(resource_of(resource_id, resource_types.MANAGED_IDENTITY_API), output["clientID"])
            federated = tuple(
                _federated(row, resource_id, resource_of)
                if isinstance(row, OptionalManagedIdentity)
                else _trusted(row, issuer, resource_id, resource_of)
            )
        except AccessError as error:
            unread.append(f"{row.field} of {cluster}: {error}")
    return ManagedIdentityRow(
        cluster,
        row.field,
        output["clientID"],
        resource_id,
        _roles(row),
        state,
        federated,
    )


def _roles(row: OptionalManagedIdentity | DataPlaneIdentity) -> str:
    if isinstance(row, OptionalManagedIdentity):
        return ", ".join(grant.role.name for grant in row.grants)
    return " or ".join(dict.fromkeys(each.role.name for each in (row.hypershift, row.builtin)))


def _state(found: AzureObject | None, client_id: str) -> State:
    if found is None:
        return "missing"
    return "exists" if found["properties"]["clientId"] == client_id else "replaced"


def _federated(
    row: OptionalManagedIdentity, resource_id: str, resource_of: ResourceOf
) -> Iterator[FederatedCredential]:
    """Each by its name; a credential of that name that trusts another service account is `replaced`."""
    for subject in row.subjects:
        name = f"{parse_arm_id(resource_id).name}-{subject.suffix}"
        found = resource_of(f"{resource_id}/federatedIdentityCredentials/{name}", resource_types.MANAGED_IDENTITY_API)
        state: State = "missing"
        if found is not None:
            state = "exists" if found["properties"]["subject"] == subject.subject else "replaced"
        yield FederatedCredential(subject.suffix, subject.subject, state)


def _trusted(
    row: DataPlaneIdentity, issuer: str, resource_id: str, resource_of: ResourceOf
) -> Iterator[FederatedCredential]:
    """Each by what it trusts, whatever its name is: adopted ones have names of their own.

    One that trusts the subject of another issuer, or for another audience, is `replaced`: Entra ID compares all three.
    """
    found = resource_of(f"{resource_id}/federatedIdentityCredentials", resource_types.MANAGED_IDENTITY_API) or {}
    trusted = [each["properties"] for each in found.get("value", ())]
    for subject in row.subjects:
        own = [one for one in trusted if one["subject"] == subject.subject]
        fits = any(one["issuer"] == issuer and FEDERATED_AUDIENCE in one["audiences"] for one in own)
        yield FederatedCredential(subject.word, subject.subject, "exists" if fits else "replaced" if own else "missing")
