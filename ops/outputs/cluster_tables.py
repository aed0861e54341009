"""The tables of `status` behind the credentials: managed identities, conditions, and versions of mounted secrets."""

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


def managed_identities(found: Sequence[ManagedIdentityRow], width: int) -> Table:
    """A line for each optional managed identity, for `width` columns; what Azure does not have is red."""
    return fitted([_managed_identity(each) for each in found], _MANAGED_IDENTITIES, width)


def conditions(found: Sequence[HostedClusterCondition], width: int) -> Table:
    """The conditions to show of each HostedCluster, for `width` columns; one that is not as expected is red."""
    return fitted([_condition(each) for each in found if each.is_shown], _CONDITIONS, width)


def mounts(found: Sequence[MountedVersion], width: int) -> Table:
    """A line for each pod and identity, for `width` columns; `state` compares the version with the vault's."""
    return fitted([_mount(each) for each in found], _MOUNTS, width)


def _managed_identity(row: ManagedIdentityRow) -> Line:
    return {
        "cluster": Text(row.cluster),
        "managed identity": Text(row.identity),
        "client id": Text(row.client_id),
        "role": Text(row.role),
        "in Azure": Text(row.state, _STYLES[row.state]),
        "federated credentials": Text(", ").join(_federated(each) for each in row.federated),
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
