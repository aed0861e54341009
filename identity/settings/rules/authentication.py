"""The rules of a hosted cluster's `authentication`; see `hosted_cluster.py`.

Source: openshift/hypershift at 3ee9615, api/hypershift/v1beta1/azure.go:362-366, 1006-1051, whose rules would refuse
the object only after everything else exists.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from identity.catalogue import CONTROL_PLANE
from identity.outputs import StackOutputs, is_managed_cluster
from identity.settings.schema.base import apply, unless_refused
from identity.settings.schema.hosted_clusters import AUTHENTICATION_TYPES, HostedClusterSettings
from identity.settings.schema.model import Settings
from identity.settings.schema.problems import ConfigurationError, Place, Problem, to_set
from identity.settings.schema.schema_node import ReportedPlace

_MANAGED, _WORKLOAD = AUTHENTICATION_TYPES
# Rules whose fixes are no use to a cluster that was made with the other type.
OF_ONE_TYPE: Final = ("key-of-other-authentication", "topology-missing")
# The keys that only one of the two types uses.
_KEYS_OF: Final = {
    _MANAGED: ("objectEncoding", "identities", "dataPlaneIdentities", "workloads"),
    _WORKLOAD: ("workloadIdentities",),
}


def validate_authentication(cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    """Apply every rule to the hosted cluster at `place`."""
    apply((_other_way_has_no_keys, _topology_is_given, _workload_identities_are_used), cluster, place)


def applied_clusters_sign_in_in_one_way(settings: Settings, root: ReportedPlace) -> None:
    """HyperShift's operator has one way for all HostedClusters of a management cluster.

    `MANAGED_SERVICE` of its Deployment decides (support/azureutil/azureutil.go:305).
    """
    first: tuple[int, str] | None = None
    for index, cluster in enumerate(settings.hosted_clusters):
        with unless_refused():
            if cluster.hosted_cluster is None:
                continue
            first = first or (index, cluster.authentication)
            if cluster.authentication != first[1]:
                place = root / "hostedClusters" / index / "hostedCluster"
                place.refuse(
                    "hosted-clusters-of-both-ways",
                    fix=f"{place.to_remove()}, and apply it on a management cluster of its own",
                    authentication=cluster.authentication,
                    first=root / "hostedClusters" / first[0],
                    way=first[1],
                )


def refuse_changed_authentication(ways: Iterable[tuple[str, str | None]], last: StackOutputs[Any]) -> None:
    """Raise ConfigurationError for every hosted cluster that signed in the other way in the `last` complete run.

    `ways` has the name and the `authentication` of each one in the configuration, None for the default.
    """
    before = last.get("hostedClusters") or {}
    problems = []
    for index, (name, authentication) in enumerate(ways):
        known = before.get(name)
        if known is None or "hostedClusterSpec" not in known:
            continue
        was = _MANAGED if is_managed_cluster(known) else _WORKLOAD
        if was != (authentication or _MANAGED):
            place: Place = ("hostedClusters", index, "authentication")
            problems.append(
                Problem(
                    place=place,
                    rule="authentication-changed",
                    found=f"{authentication}, but {name} was made with {was}",
                    accepted=f"{was}: HyperShift never changes how a HostedCluster signs in",
                    fix=f"{to_set(place, was)}; a new cluster with another name and infraID can sign in the other "
                    "way (docs/guides/self-managed.md)",
                )
            )
    if problems:
        raise ConfigurationError(problems)


def _other_way_has_no_keys(cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    [other] = _KEYS_OF.keys() - {cluster.authentication}
    given = {HostedClusterSettings.model_fields[name].alias for name in cluster.model_fields_set}
    for at in (place / key for key in _KEYS_OF[other] if key in given):
        if at.value:
            at.refuse(
                "key-of-other-authentication",
                otherwise=(place / "authentication").to_set(other),
                authentication=cluster.authentication,
            )


def _topology_is_given(cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    if cluster.authentication == _WORKLOAD and cluster.topology is None:
        (place / "topology").require("topology-missing", "Public", workload=_WORKLOAD)


def _workload_identities_are_used(cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    for row in CONTROL_PLANE:
        if row.field not in cluster.workload_identities or row.setting is None:
            continue
        if getattr(cluster, row.setting) is None:
            (place / "workloadIdentities" / row.field).refuse(
                "workload-identity-without-purpose",
                otherwise=f"write {place / row.setting} in the stack file",
                setting=place / row.setting,
            )
