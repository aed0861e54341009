"""What a renewal before its time would touch: the schedules in a stack's state, and who still signs in with what."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from identity.catalogue import CONTROL_PLANE
from identity.catalogue_rows import ControlPlaneIdentity
from identity.credentials import rfc3339
from identity.credentials.schedule import Slot, Slots, spare_is_free
from identity.naming import control_plane_identity_name
from ops.stack.errors import CommandError

_SCHEDULE: Final = "idstack:index:RenewalSchedule"


@dataclass(frozen=True)
class Rotatable:
    """One identity whose certificates the stack issues.

    `urns` are all resources of the identity, its schedule's name is `schedule`.
    """

    cluster: str
    row: ControlPlaneIdentity
    schedule: str
    slots: Slots
    urns: tuple[str, ...]

    @property
    def name(self) -> str:
        """What `--identity` takes and messages show: `hc1/ingress`."""
        return f"{self.cluster}/{self.row.field}"

    @property
    def free(self) -> datetime:
        """From when on no pod should need the certificate that a renewal replaces."""
        return spare_is_free(self.slots)

    @property
    def pods(self) -> list[str]:
        """Container and Deployment of every consumer."""
        return [f"{mount.container} in {mount.deployment}" for mount in self.row.mounts]


def rotatable(outputs: Mapping[str, Any], resources: Iterable[Mapping[str, Any]]) -> list[Rotatable]:
    """The identities of the stack that have a schedule, in the order of clusters and catalogue."""
    by_urn = {each["urn"]: each for each in resources}
    schedules = [each for each in by_urn.values() if each["type"] == _SCHEDULE]
    found = []
    for cluster, described in outputs.get("hostedClusters", {}).items():
        for row in CONTROL_PLANE:
            component = control_plane_identity_name(cluster, row.field)
            for schedule in schedules:
                if row.field in described["controlPlane"] and component in map(_name, _ancestors(schedule, by_urn)):
                    urns = [
                        urn for urn, each in by_urn.items() if component in map(_name, (urn, *_ancestors(each, by_urn)))
                    ]
                    found.append(Rotatable(cluster, row, _name(schedule["urn"]), _slots(schedule), tuple(urns)))
    return found


def chosen(every: Collection[Rotatable], identities: Collection[str]) -> list[Rotatable]:
    """The ones that `identities` name (`ingress`, or `hc1/ingress` for one cluster's), all if it is empty.

    Raises CommandError for a name that has no certificate issued here.
    """
    if not every:
        raise CommandError("the stack issues no certificate: there is nothing to rotate")
    names = {name for each in every for name in (each.name, each.row.field)}
    if unknown := sorted(set(identities) - names):
        raise CommandError(
            f"no certificate is issued by this stack for {', '.join(unknown)}; it issues those of "
            f"{', '.join(each.name for each in every)}. A credential issued elsewhere is renewed there: put the new "
            "document where the configuration says and run `make up`"
        )
    return [each for each in every if not identities or {each.name, each.row.field} & set(identities)]


def _ancestors(resource: Mapping[str, Any], by_urn: Mapping[str, Mapping[str, Any]]) -> list[str]:
    ancestors = []
    while (urn := resource.get("parent")) and urn in by_urn:
        ancestors.append(urn)
        resource = by_urn[urn]
    return ancestors


def _name(urn: str) -> str:
    return urn.rsplit("::", 1)[-1]


def _slots(schedule: Mapping[str, Any]) -> Slots:
    written = schedule["inputs"]
    return Slots(written["current"], *(_slot(written[name]) for name in ("a", "b")))


def _slot(written: Mapping[str, Any]) -> Slot:
    return Slot(written["generation"], rfc3339.parse(written["notBefore"]))
