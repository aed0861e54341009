"""What a renewal before its time would touch: the schedules in a stack's state, and the pods that may fail."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from identity import resource_types
from identity.catalogue import CONTROL_PLANE
from identity.catalogue_rows import ControlPlaneIdentity
from identity.credentials import rfc3339
from identity.credentials.schedule import Delivery, Slot, Slots, spare_is_free
from identity.naming import control_plane_identity_name
from identity.outputs import StackOutputs
from identity.similar import similar
from ops.stack.errors import CommandError
from ops.stack.state import StateResource, name_of


@dataclass(frozen=True)
class Rotatable:
    """One identity whose certificates the stack issues.

    `schedule` is the name of its schedule in the program; `delivered` is what the stack last wrote to the vault, None
    if it never did.
    """

    cluster: str
    row: ControlPlaneIdentity
    schedule: str
    slots: Slots
    delivered: Delivery | None

    @property
    def name(self) -> str:
        """Cluster and field (`hc1/ingress`), as `--identity` takes it and messages show it."""
        return f"{self.cluster}/{self.row.field}"

    @property
    def free(self) -> datetime | None:
        """From when on no pod should need the certificate that a renewal replaces; None if no pod has one yet."""
        return None if self.delivered is None else spare_is_free(self.slots, self.delivered)

    @property
    def pods(self) -> list[str]:
        """Container and Deployment of every consumer."""
        return [f"{mount.container} in {mount.deployment}" for mount in self.row.mounts]


def rotatable(outputs: StackOutputs[str], resources: Iterable[StateResource]) -> list[Rotatable]:
    """The identities of the stack that have a schedule, in the order of clusters and catalogue."""
    by_urn = {resource["urn"]: resource for resource in resources}
    schedules = [each for each in by_urn.values() if each["type"] == resource_types.RENEWAL_SCHEDULE]
    found = []
    for name, cluster in outputs.get("hostedClusters", {}).items():
        for row in CONTROL_PLANE:
            component = control_plane_identity_name(name, row.field)
            for schedule in schedules:
                if row.field in cluster["controlPlane"] and component in map(name_of, _ancestors(schedule, by_urn)):
                    delivered = next((_delivery(secret) for secret in _secrets(by_urn, component)), None)
                    found.append(Rotatable(name, row, name_of(schedule["urn"]), _slots(schedule), delivered))
    return found


def chosen(every: Collection[Rotatable], identities: Collection[str]) -> list[Rotatable]:
    """Those of `every` that `identities` name (`ingress`, or `hc1/ingress` for one cluster's); all if it is empty.

    Raises CommandError for a name without a certificate of this stack, and if no identity has one.
    """
    if not every:
        raise CommandError("the stack issues no certificate: there is nothing to rotate")
    names = {name for each in every for name in (each.name, each.row.field)}
    if unknown := sorted(set(identities) - names):
        raise CommandError(
            f"this stack issues no certificate for {', '.join(each + _meant(each, names) for each in unknown)}; it "
            f"issues those of {', '.join(each.name for each in every)}. A credential that is issued elsewhere "
            "is renewed there: put the new document where the configuration names it and run `make up`"
        )
    return [each for each in every if not identities or {each.name, each.row.field} & set(identities)]


def _meant(unknown: str, names: Collection[str]) -> str:
    close = similar(unknown, names)
    return "" if close is None else f" (did you mean {close}?)"


def _secrets(by_urn: Mapping[str, StateResource], component: str) -> list[StateResource]:
    """The vault secret of an identity, if it was written."""
    secrets = (each for each in by_urn.values() if each["type"] == resource_types.CREDENTIAL_SECRET)
    return [secret for secret in secrets if component in map(name_of, _ancestors(secret, by_urn))]


def _ancestors(resource: StateResource, by_urn: Mapping[str, StateResource]) -> list[str]:
    """URNs of its parent, the parent's parent and so on."""
    ancestors = []
    while (urn := resource.get("parent")) and urn in by_urn:
        ancestors.append(urn)
        resource = by_urn[urn]
    return ancestors


def _slots(schedule: StateResource) -> Slots:
    written = schedule["inputs"]
    return Slots(written["current"], *(_slot(written.get(name)) for name in ("a", "b")))


def _slot(written: Mapping[str, Any] | None) -> Slot | None:
    if written is None:
        return None
    return Slot(written["generation"], rfc3339.parse(written["notBefore"]), written["validDays"])


def _delivery(secret: StateResource) -> Delivery | None:
    written = secret.get("outputs", {})
    return Delivery.named(written.get("generation", ""), rfc3339.parse(written["deliveredAt"]))
