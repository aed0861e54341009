"""What must fit together in the workloads of a hosted cluster; see `rules.py`."""

from __future__ import annotations

from contextlib import suppress

from identity.catalogue import CONTROL_PLANE
from identity.mounts import MountsCollide, side_by_side
from identity.settings.model import HostedClusterSettings, Settings
from identity.settings.problems import Place, Report, path_of, to_remove, to_set
from identity.settings.refused import PartRefused
from identity.settings.workloads import TolerationSettings, WorkloadSettings

_ROWS = {row.field: row for row in CONTROL_PLANE}


def judge_workloads(settings: Settings, cluster: HostedClusterSettings, place: Place, report: Report) -> None:
    """Apply every rule to the workloads at `place`."""
    if cluster.workloads and settings.cluster_side != "stack":
        report.refuse(
            place,
            list(cluster.workloads),
            accepted="nothing with clusterSide: hypershift, where HyperShift's operators make all objects",
            mend=f"{to_remove(place)}, or {to_set(('clusterSide',), 'stack')}",
        )
        return
    with suppress(PartRefused):
        _workloads_are_told_apart(cluster, place, report)
    for index, workload in enumerate(cluster.workloads):
        with suppress(PartRefused):
            _identities_are_there(cluster, workload, (*place, index, "identities"), report)
        with suppress(PartRefused):
            for number, toleration in enumerate(workload.tolerations):
                with suppress(PartRefused):
                    _toleration_is_whole(toleration, (*place, index, "tolerations", number), report)


def _workloads_are_told_apart(cluster: HostedClusterSettings, place: Place, report: Report) -> None:
    taken = {row.probe_name(mount): "a credential probe" for row in CONTROL_PLANE for mount in row.mounts}
    for index, workload in enumerate(cluster.workloads):
        with suppress(PartRefused):
            at = (*place, index, "name")
            if (owner := taken.get(workload.name)) is not None:
                accepted = f"another name than {owner} has: both would be the same Deployment"
                report.refuse(at, workload.name, accepted=accepted, mend=to_set(at, "<name>"))
            taken.setdefault(workload.name, path_of(at))


def _identities_are_there(
    cluster: HostedClusterSettings, workload: WorkloadSettings, place: Place, report: Report
) -> None:
    fields = workload.identities
    if not fields:
        accepted = "the fields of one or more identities: a workload without one has no place in this stack"
        report.refuse(place, fields, accepted=accepted, mend=to_set((*place, 0), "<identity>"), reason="it is empty")
    for index, field in enumerate(fields):
        at = (*place, index)
        if field in fields[:index]:
            report.refuse(at, field, accepted="each identity once", mend=to_remove(at))
        with suppress(PartRefused):
            if not cluster.identity(_ROWS[field]).enabled:
                report.refuse(
                    at, field, accepted="an identity that is on; this one is switched off", mend=to_remove(at)
                )
    try:
        side_by_side([_ROWS[field] for field in dict.fromkeys(fields)])
    except MountsCollide as error:
        report.refuse(
            place,
            fields,
            accepted="identities that fit into one container: each is mounted as in its own consumer's pod",
            mend=f"give {error.first} and {error.second} a workload each",
            reason=str(error),
        )


def _toleration_is_whole(toleration: TolerationSettings, place: Place, report: Report) -> None:
    if toleration.operator == "Equal" and toleration.key is None:
        at = (*place, "key")
        mend = f"{to_set(at, '<taint>')}, or {to_set((*place, 'operator'), 'Exists')} to tolerate every taint"
        report.refuse(at, None, accepted="the key of a taint with operator: Equal", mend=mend)
    if toleration.operator == "Exists" and toleration.value:
        at = (*place, "value")
        report.refuse(at, toleration.value, accepted="nothing with operator: Exists", mend=to_remove(at))
    if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        at = (*place, "tolerationSeconds")
        mend = f"{to_remove(at)}, or {to_set((*place, 'effect'), 'NoExecute')}"
        report.refuse(at, toleration.toleration_seconds, accepted="nothing without effect: NoExecute", mend=mend)
