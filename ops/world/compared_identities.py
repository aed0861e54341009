"""The managed identities in a stack's outputs without a credential in the vault, compared with Azure.

They are the optional ones, and those of clusters with workload identities.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from identity.azure.client import AzureClient
from identity.azure.errors import AccessError
from identity.azure.records import FederatedCredentialRecord
from identity.catalogue import FEDERATED_AUDIENCE, OPTIONAL, WORKLOAD
from identity.catalogue_rows import DataPlaneIdentity, OptionalManagedIdentity
from identity.naming import parse_arm_id
from identity.outputs import ManagedIdentityOutput, StackOutputs
from ops.access.azure import deployer
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.world.azure import federated_credentials, read_managed_identity

# `replaced`: one of the same name with another client id, for which the stack has no role assignment.
State: TypeAlias = Literal["exists", "missing", "replaced", "not known"]

_ROWS: Final[tuple[OptionalManagedIdentity | DataPlaneIdentity, ...]] = (*OPTIONAL, *WORKLOAD)


@dataclass(frozen=True)
class FederatedCredential:
    """A service account that may use an identity, and the state of its federated credential."""

    name: str  # unique for the identity
    subject: str
    state: State


@dataclass(frozen=True)
class ManagedIdentityRow:
    """One managed identity of one hosted cluster; `role` has Azure's display names of its roles."""

    cluster: str
    identity: str
    client_id: str
    resource_id: str
    role: str
    state: State
    federated: tuple[FederatedCredential, ...]

    @property
    def is_wrong(self) -> bool:
        """Whether the identity or a federated credential is missing or replaced; an unread one is not wrong."""
        return any(
            state in ("missing", "replaced")
            for state in (self.state, *(credential.state for credential in self.federated))
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "cluster": self.cluster,
            "identity": self.identity,
            "kind": "managed-identity",
            "clientID": self.client_id,
            "resourceID": self.resource_id,
            "role": self.role,
            "state": self.state,
            "federatedCredentials": [
                {"subject": credential.subject, "state": credential.state} for credential in self.federated
            ],
        }


@dataclass(frozen=True)
class ManagedIdentities:
    """A row for each such managed identity; `unread` has the reason for each one that could not be read."""

    rows: tuple[ManagedIdentityRow, ...] = ()
    unread: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"rows": [row.to_json() for row in self.rows], "unread": list(self.unread)}


def read_managed_identities(engine: Engine, outputs: StackOutputs[str]) -> ManagedIdentities:
    """The managed identities now, in the catalogue's order. Errors are in `unread`, not raised."""
    if not any(cluster.get("managedIdentities") for cluster in outputs.get("hostedClusters", {}).values()):
        return ManagedIdentities()
    try:
        with deployer(engine) as clients:
            return _read(outputs, clients)
    except (AccessError, CommandError) as error:
        return replace(_read(outputs, None), unread=(f"the managed identities: {error}",))


def _read(outputs: StackOutputs[str], azure: AzureClient | None) -> ManagedIdentities:
    """Read each from ARM; without a client no state is known."""
    unread: list[str] = []
    rows = [
        _row(cluster, row, output, described.get("hostedClusterSpec", {}).get("issuerURL", ""), azure, unread)
        for cluster, described in outputs.get("hostedClusters", {}).items()
        for row in _ROWS
        if (output := described.get("managedIdentities", {}).get(row.field)) is not None
    ]
    return ManagedIdentities(tuple(rows), tuple(unread))


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
            managed = read_managed_identity(azure, resource_id)
            if managed is None:
                state = "missing"
            else:
                state = "exists" if managed.client_id == output["clientID"] else "replaced"
            credentials = federated_credentials(azure, resource_id) if row.subjects else []
            federated = tuple(
                _named(row, resource_id, credentials)
                if isinstance(row, OptionalManagedIdentity)
                else _trusted(row, issuer, credentials)
            )
        except AccessError as error:
            unread.append(f"{row.field} of {cluster}: {error}")
    if isinstance(row, OptionalManagedIdentity):
        roles = ", ".join(grant.role.name for grant in row.grants)
    else:
        roles = " or ".join(dict.fromkeys(grant.role.name for grant in (row.hypershift, row.builtin)))
    return ManagedIdentityRow(cluster, row.field, output["clientID"], resource_id, roles, state, federated)


def _named(
    row: OptionalManagedIdentity, resource_id: str, credentials: Sequence[FederatedCredentialRecord]
) -> Iterator[FederatedCredential]:
    """The federated credentials by name; one that trusts another service account is `replaced`."""
    registered = {credential.name: credential.subject for credential in credentials}
    for subject in row.subjects:
        trusted = registered.get(f"{parse_arm_id(resource_id).name}-{subject.suffix}")
        state: State = "missing" if trusted is None else "exists" if trusted == subject.subject else "replaced"
        yield FederatedCredential(subject.suffix, subject.subject, state)


def _trusted(
    row: DataPlaneIdentity, issuer: str, credentials: Sequence[FederatedCredentialRecord]
) -> Iterator[FederatedCredential]:
    """The federated credentials by their trust, with any name: adopted ones have names of their own.

    One with another issuer or audience for the subject is `replaced`: Entra ID compares all three.
    """
    for subject in row.subjects:
        own = [credential for credential in credentials if credential.subject == subject.subject]
        fits = any(credential.issuer == issuer and FEDERATED_AUDIENCE in credential.audiences for credential in own)
        yield FederatedCredential(subject.word, subject.subject, "exists" if fits else "replaced" if own else "missing")
