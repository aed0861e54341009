"""The rules of the access to the management cluster; see `stack.py`."""

from __future__ import annotations

from typing import Final

from identity.login_kinds import LOGIN_KINDS
from identity.settings.schema.access import AccessSettings
from identity.settings.schema.model import Settings
from identity.settings.schema.problems import ProblemReport, to_remove, to_set

# The keys that describe a login of any kind.
_LOGIN_ATTRIBUTES: Final = frozenset().union(*(row.needs | row.takes for row in LOGIN_KINDS.values()))


def cluster_is_reached_in_one_way(settings: Settings, report: ProblemReport) -> None:
    """The kubeconfig is the user's own or the stack's; only the former has a context."""
    cluster = settings.management_cluster
    if cluster is None:
        return
    place = ("managementCluster", "kubeconfig")
    if cluster.kubeconfig is not None and "access" in cluster.model_fields_set:
        accepted = "nothing with managementCluster.access, by which the stack makes a kubeconfig of its own"
        report.refuse(place, cluster.kubeconfig, rule="kubeconfig-beside-access", accepted=accepted)
    if cluster.context is not None and cluster.kubeconfig is None:
        at = ("managementCluster", "context")
        fix = f"{to_remove(at)}, or {to_set(place, '<path>')}"
        accepted = "nothing without managementCluster.kubeconfig: it is a context of that file"
        report.refuse(at, cluster.context, rule="context-without-kubeconfig", accepted=accepted, fix=fix)


def login_is_described(settings: Settings, report: ProblemReport) -> None:
    """The login has its required keys, and no others than it accepts."""
    access = settings.management_cluster.access if settings.management_cluster else None
    if access is None:
        return
    place = ("managementCluster", "access")
    row = LOGIN_KINDS[access.login]
    for name, field in AccessSettings.model_fields.items():
        if name not in _LOGIN_ATTRIBUTES:
            continue
        at, value = (*place, str(field.alias)), getattr(access, name)
        if value is None and name in row.needs:
            blank = "<uuid>" if name == "client_id" else "<path>"
            report.refuse(
                at, None, rule="login-key-missing", accepted=f"given with login: {access.login}", fix=to_set(at, blank)
            )
        if value is not None and name not in row.needs | row.takes:
            report.refuse(at, value, rule="login-key-unused", accepted=f"nothing with login: {access.login}")
