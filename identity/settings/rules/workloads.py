"""The rules of a hosted cluster's workloads; see `stack.py`."""

from __future__ import annotations

from identity.catalogue import CONTROL_PLANE
from identity.catalogue_rows import MountCollisionError, side_by_side
from identity.settings.schema.base import apply, unless_refused
from identity.settings.schema.hosted_clusters import HostedClusterSettings
from identity.settings.schema.model import Settings
from identity.settings.schema.problems import ReportedPlace, to_set
from identity.settings.schema.workloads import TolerationSettings, WorkloadSettings

_ROWS = {row.field: row for row in CONTROL_PLANE}


def validate_workloads(settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    """Apply every rule to the workloads of the hosted cluster at `place`."""
    place = place / "workloads"
    if cluster.workloads and settings.cluster_side != "stack":
        place.refuse(
            cluster.workloads,
            rule="workloads-with-hypershift-side",
            accepted="nothing with clusterSide: hypershift, where HyperShift's operators make all objects",
            fix=f"{place.to_remove()}, or {to_set(('clusterSide',), 'stack')}",
        )
        return
    apply((_workloads_have_names_of_their_own,), cluster, place)
    for index, workload in enumerate(cluster.workloads):
        apply((_identities_are_there,), cluster, workload, place / index / "identities")
        with unless_refused():
            for number, toleration in enumerate(workload.tolerations):
                apply((_toleration_is_whole,), toleration, place / index / "tolerations" / number)


def _workloads_have_names_of_their_own(cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    taken = {row.probe_name(mount): "a credential probe" for row in CONTROL_PLANE for mount in row.mounts}
    for index, workload in enumerate(cluster.workloads):
        with unless_refused():
            at = place / index / "name"
            if (owner := taken.get(workload.name)) is not None:
                accepted = f"another name than {owner} has: both would be the same Deployment"
                fix = at.to_set("<name>")
                at.refuse(workload.name, rule="duplicate-workload-name", accepted=accepted, fix=fix)
            taken.setdefault(workload.name, str(at))


def _identities_are_there(cluster: HostedClusterSettings, workload: WorkloadSettings, place: ReportedPlace) -> None:
    fields = workload.identities
    if not fields:
        accepted = "the fields of one or more identities: a workload without one has no place in this stack"
        place.refuse(
            fields,
            rule="workload-without-identity",
            accepted=accepted,
            fix=(place / 0).to_set("<identity>"),
            reason="it is empty",
        )
    for index, field in enumerate(fields):
        at = place / index
        if field in fields[:index]:
            at.refuse(field, rule="duplicate-workload-identity", accepted="each identity once")
        with unless_refused():
            if not cluster.identity(_ROWS[field]).enabled:
                at.refuse(
                    field,
                    rule="workload-identity-disabled",
                    accepted="an identity that is on; this one is switched off",
                )
    try:
        side_by_side([_ROWS[field] for field in dict.fromkeys(fields)])
    except MountCollisionError as error:
        place.refuse(
            fields,
            rule="workload-mounts-collide",
            accepted="identities that fit into one container: each is mounted as in its own consumer's pod",
            fix=f"give {error.first} and {error.second} a workload each",
            reason=str(error),
        )


def _toleration_is_whole(toleration: TolerationSettings, place: ReportedPlace) -> None:
    if toleration.operator == "Equal" and toleration.key is None:
        at = place / "key"
        fix = f"{at.to_set('<taint>')}, or {(place / 'operator').to_set('Exists')} to tolerate every taint"
        accepted = "the key of a taint with operator: Equal"
        at.refuse(None, rule="toleration-without-key", accepted=accepted, fix=fix)
    if toleration.operator == "Exists" and toleration.value:
        at = place / "value"
        at.refuse(
            toleration.value,
            rule="toleration-value-unused",
            accepted="nothing with operator: Exists",
        )
    if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        at = place / "tolerationSeconds"
        fix = f"{at.to_remove()}, or {(place / 'effect').to_set('NoExecute')}"
        at.refuse(
            toleration.toleration_seconds,
            rule="toleration-seconds-unused",
            accepted="nothing without effect: NoExecute",
            fix=fix,
        )
