"""The rules of the access to the management cluster; see `stack.py`."""

from __future__ import annotations

from typing import Final

from identity.login_kinds import LOGIN_KINDS
from identity.settings.schema.access import AccessSettings
from identity.settings.schema.model import Settings
from identity.settings.schema.problems import ReportedPlace

# The keys that describe a login of any kind.
_LOGIN_ATTRIBUTES: Final = frozenset().union(*(row.needs | row.takes for row in LOGIN_KINDS.values()))


def cluster_is_reached_in_one_way(settings: Settings, root: ReportedPlace) -> None:
    """The kubeconfig is the user's own or the stack's; only the former has a context."""
    cluster = settings.management_cluster
    if cluster is None:
        return
    place = root / "managementCluster" / "kubeconfig"
    if cluster.kubeconfig is not None and "access" in cluster.model_fields_set:
        accepted = "nothing with managementCluster.access, with which the stack makes a kubeconfig of its own"
        place.refuse(cluster.kubeconfig, rule="kubeconfig-beside-access", accepted=accepted)
    if cluster.context is not None and cluster.kubeconfig is None:
        at = root / "managementCluster" / "context"
        fix = f"{at.to_remove()}, or {place.to_set('<path>')}"
        accepted = "nothing without managementCluster.kubeconfig: it is a context of that file"
        at.refuse(cluster.context, rule="context-without-kubeconfig", accepted=accepted, fix=fix)


def login_is_described(settings: Settings, root: ReportedPlace) -> None:
    """The login has its required keys, and no others than it accepts."""
    access = settings.management_cluster.access if settings.management_cluster else None
    if access is None:
        return
    place = root / "managementCluster" / "access"
    row = LOGIN_KINDS[access.login]
    for name, field in AccessSettings.model_fields.items():
        if name not in _LOGIN_ATTRIBUTES:
            continue
        at, value = place / str(field.alias), getattr(access, name)
        if value is None and name in row.needs:
            blank = "<uuid>" if name == "client_id" else "<path>"
            accepted = f"a value with login: {access.login}"
            at.refuse(None, rule="login-key-missing", accepted=accepted, fix=at.to_set(blank))
        if value is not None and name not in row.needs | row.takes:
            at.refuse(value, rule="login-key-unused", accepted=f"nothing with login: {access.login}")
