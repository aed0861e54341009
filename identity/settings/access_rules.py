"""What must fit together in the way to the management cluster; see `rules.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from identity.settings.model import Settings
from identity.settings.problems import ProblemReport, to_remove, to_set


def cluster_is_reached_in_one_way(settings: Settings, report: ProblemReport) -> None:
    """A kubeconfig of the user's own, or the stack's; a context belongs to the former."""
    cluster = settings.management_cluster
    if cluster is None:
        return
    place = ("managementCluster", "kubeconfig")
    if cluster.kubeconfig is not None and "access" in cluster.model_fields_set:
        accepted = "nothing with managementCluster.access, by which the stack makes a kubeconfig of its own"
        report.refuse(place, cluster.kubeconfig, accepted=accepted, fix=to_remove(place))
    if cluster.context is not None and cluster.kubeconfig is None:
        at = ("managementCluster", "context")
        fix = f"{to_remove(at)}, or {to_set(place, '<path>')}"
        accepted = "nothing without managementCluster.kubeconfig: it is a context of that file"
        report.refuse(at, cluster.context, accepted=accepted, fix=fix)


def login_is_described(settings: Settings, report: ProblemReport) -> None:
    """What the login needs is given, and nothing that it has no use for."""
    access = settings.management_cluster.access if settings.management_cluster else None
    if access is None:
        return
    place = ("managementCluster", "access")
    given = {
        "clientId": access.client_id,
        "certificate": access.certificate,
        "clientSecretFile": access.client_secret_file,
        "federatedTokenFile": access.federated_token_file,
    }
    needs, takes = _LOGINS[access.login]
    for key, value in given.items():
        if value is None and key in needs:
            blank = "<uuid>" if key == "clientId" else "<path>"
            report.refuse(
                (*place, key), None, accepted=f"given with login: {access.login}", fix=to_set((*place, key), blank)
            )
        if value is not None and key not in (*needs, *takes):
            accepted = f"nothing with login: {access.login}"
            report.refuse((*place, key), value, accepted=accepted, fix=to_remove((*place, key)))


# What each login needs, and what it may have besides.
_LOGINS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "arm": ((), ("clientId",)),
    "certificate": (("certificate",), ("clientId",)),
    "secret": (("clientId", "clientSecretFile"), ()),
    "workload-identity": (("clientId", "federatedTokenFile"), ()),
    "github": (("clientId",), ()),
    "managed-identity": ((), ("clientId",)),
    "azure-cli": ((), ()),
}
