"""The other tables of `status`: managed identities, conditions, and versions of mounted secrets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.table import Table
from rich.text import Text

from ops.outputs.tables import Line, fitted
from ops.world.cluster_state import HostedClusterCondition, MountedVersion
from ops.world.compared_identities import FederatedCredential, ManagedIdentityRow

# If not every value can have a column; the last takes 80 columns.
_CONDITIONS: Final = (
    (("cluster", "condition"), ("status", "reason"), ("message",)),
    (("cluster", "condition", "status"), ("reason", "message")),
)
_MOUNTS: Final = (
    (("cluster", "identity"), ("pod", "mounted version"), ("state",)),
    (("cluster", "identity", "state"), ("pod", "mounted version")),
)
_MANAGED_IDENTITIES: Final = (
    (("cluster", "managed identity"), ("client id", "role"), ("in Azure", "federated credentials")),
    (("cluster", "managed identity", "in Azure"), ("client id", "role", "federated credentials")),
)
_STYLES: Final = {
    **{"current": "green", "old": "yellow", "not mounted": "red", "not known": ""},
    **{"exists": "green", "missing": "red", "replaced": "red"},
}


def managed_identities(rows: Sequence[ManagedIdentityRow], width: int) -> Table:
    """A line for each optional managed identity, for `width` columns; missing ones are red."""
    return fitted([_managed_identity(row) for row in rows], _MANAGED_IDENTITIES, width)


def conditions(every: Sequence[HostedClusterCondition], width: int) -> Table:
    """The visible conditions of each HostedCluster, for `width` columns; unexpected ones are red."""
    return fitted([_condition(condition) for condition in every if condition.is_shown], _CONDITIONS, width)


def mounts(versions: Sequence[MountedVersion], width: int) -> Table:
    """A line for each pod and identity, for `width` columns; `state` compares the version with the vault's."""
    return fitted([_mount(mount) for mount in versions], _MOUNTS, width)


def _managed_identity(row: ManagedIdentityRow) -> Line:
    return {
        "cluster": Text(row.cluster),
        "managed identity": Text(row.identity),
        "client id": Text(row.client_id),
        "role": Text(row.role),
        "in Azure": Text(row.state, _STYLES[row.state]),
        "federated credentials": Text(", ").join(_federated(credential) for credential in row.federated),
    }


def _federated(credential: FederatedCredential) -> Text:
    return Text.assemble(credential.name, " ", (credential.state, _STYLES[credential.state]))


def _condition(condition: HostedClusterCondition) -> Line:
    style = "green" if condition.is_expected else "red"
    return {
        "cluster": Text(condition.cluster),
        "condition": Text(condition.type),
        "status": Text(condition.status, style),
        "reason": Text(condition.reason),
        "message": Text("" if condition.is_expected else condition.message),
    }


def _mount(mount: MountedVersion) -> Line:
    return {
        "cluster": Text(mount.cluster),
        "identity": Text(mount.identity),
        "pod": Text(mount.pod),
        "mounted version": Text(mount.version),
        "state": Text(mount.state, _STYLES[mount.state]),
    }
