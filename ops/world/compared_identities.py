"""Managed identities without a credential in the vault in a stack's outputs, compared with Azure.

They are the optional ones, and those of clusters that sign in by workload identities.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from identity.access.azure_client import AzureClient
from identity.access.errors import AccessError
from identity.access.records import FederatedCredentialRecord, ManagedIdentityRecord
from identity.catalogue import FEDERATED_AUDIENCE, OPTIONAL, WORKLOAD
from identity.catalogue_rows import DataPlaneIdentity, OptionalManagedIdentity
from identity.naming import parse_arm_id
from identity.outputs import HostedClusterOutput, ManagedIdentityOutput, StackOutputs
from ops.access.azure import deployer
from ops.stack import local_cloud
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.world import managed_identities

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


def read_managed_identities(engine: Engine, outputs: StackOutputs[str]) -> ManagedIdentities:
    """What can be read now, in the catalogue's order; a stack without any asks nobody.

    Nothing is raised: what cannot be read is named.
    """
    if not any(each.get("managedIdentities") for each in outputs.get("hostedClusters", {}).values()):
        return ManagedIdentities()
    try:
        with deployer(engine.stack, engine.configured(), local_cloud.of(engine.stack)) as clients:
            return _read(outputs, clients)
    except CommandError as error:
        return replace(_read(outputs, None), unread=(f"the managed identities: {error}",))


def _read(outputs: StackOutputs[str], azure: AzureClient | None) -> ManagedIdentities:
    """Read each from ARM; None: ARM cannot be asked, so that no state is known."""
    unread: list[str] = []
    rows = [
        _row(cluster, row, output, _issuer(described), azure, unread)
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
    azure: AzureClient | None,
    unread: list[str],
) -> ManagedIdentityRow:
    resource_id = output["resourceID"]
    state: State = "not known"
    federated = tuple(FederatedCredential(subject.word, subject.subject, "not known") for subject in row.subjects)
    if azure is not None:
        try:
            state = _state(managed_identities.read(azure, resource_id), output["clientID"])
            found = managed_identities.federated(azure, resource_id) if row.subjects else []
            federated = tuple(
                _named(row, resource_id, found)
                if isinstance(row, OptionalManagedIdentity)
                else _trusted(row, issuer, found)
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


def _state(found: ManagedIdentityRecord | None, client_id: str) -> State:
    if found is None:
        return "missing"
    return "exists" if found.client_id == client_id else "replaced"


def _named(
    row: OptionalManagedIdentity, resource_id: str, found: Sequence[FederatedCredentialRecord]
) -> Iterator[FederatedCredential]:
    """Each by its name; a credential of that name that trusts another service account is `replaced`."""
    registered = {credential.name: credential.subject for credential in found}
    for subject in row.subjects:
        theirs = registered.get(f"{parse_arm_id(resource_id).name}-{subject.suffix}")
        state: State = "missing" if theirs is None else "exists" if theirs == subject.subject else "replaced"
        yield FederatedCredential(subject.suffix, subject.subject, state)


def _trusted(
    row: DataPlaneIdentity, issuer: str, found: Sequence[FederatedCredentialRecord]
) -> Iterator[FederatedCredential]:
    """Each by what it trusts, whatever its name is: adopted ones have names of their own.

    One that trusts the subject of another issuer, or for another audience, is `replaced`: Entra ID compares all three.
    """
    for subject in row.subjects:
        own = [credential for credential in found if credential.subject == subject.subject]
        fits = any(one.issuer == issuer and FEDERATED_AUDIENCE in one.audiences for one in own)
        yield FederatedCredential(subject.word, subject.subject, "exists" if fits else "replaced" if own else "missing")
