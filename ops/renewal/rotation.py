"""The identities that `rotate` can renew, by the schedules in a stack's state, and the pods that may fail."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from identity import resource_types
from identity.catalogue import CONTROL_PLANE
from identity.catalogue_rows import ControlPlaneIdentity
from identity.credentials import rfc3339
from identity.credentials.schedule import Delivery, Slot, Slots, spare_is_free
from identity.outputs import StackOutputs
from identity.plugin_schema import CertificateSlot, CredentialSecretState, RenewalScheduleState
from identity.similar import similar
from ops.stack.errors import CommandError
from ops.stack.state import StateResource, name_of
from ops.world.ownership import ResourceOwner, by_owner


@dataclass(frozen=True)
class Rotatable:
    """One identity whose certificates the stack issues.

    `schedule` is the name of its schedule in the program; `delivered` is the last delivery to the vault, None without
    any.
    """

    cluster: str
    row: ControlPlaneIdentity
    schedule: str
    slots: Slots
    delivered: Delivery | None

    @property
    def name(self) -> str:
        """Cluster and field (`hc1/ingress`), as in `--identity` and messages."""
        return f"{self.cluster}/{self.row.field}"

    @property
    def free(self) -> datetime | None:
        """When no pod needs the certificate any more that a renewal replaces; None if no pod has one yet."""
        return None if self.delivered is None else spare_is_free(self.slots, self.delivered)

    @property
    def pods(self) -> list[str]:
        """Container and Deployment of every consumer."""
        return [f"{mount.container} in {mount.deployment}" for mount in self.row.mounts]


def rotatable(outputs: StackOutputs[str], resources: Collection[StateResource]) -> list[Rotatable]:
    """The identities of the stack with a schedule, in the order of clusters and catalogue."""
    schedules = by_owner(resources, resource_types.RENEWAL_SCHEDULE)
    secrets = by_owner(resources, resource_types.CREDENTIAL_SECRET)
    return [
        Rotatable(owner.cluster, row, name_of(schedule["urn"]), _slots(schedule), _delivery(secrets.get(owner, ())))
        for name, cluster in outputs.get("hostedClusters", {}).items()
        for row in CONTROL_PLANE
        if row.field in cluster["controlPlane"]
        for owner in (ResourceOwner(name, row.field),)
        for schedule in schedules.get(owner, ())
    ]


def chosen(candidates: Collection[Rotatable], identities: Collection[str]) -> list[Rotatable]:
    """The candidates that `identities` names (`ingress`, or `hc1/ingress` for one cluster); all without any names.

    Raises CommandError for a name without a certificate of this stack, and if no identity has one.
    """
    if not candidates:
        raise CommandError("the stack issues no certificate: there is nothing to rotate")
    names = {name for candidate in candidates for name in (candidate.name, candidate.row.field)}
    if unknown := sorted(set(identities) - names):
        raise CommandError(
            "this stack issues no certificate for "
            f"{', '.join(candidate + _meant(candidate, names) for candidate in unknown)}; it issues those of "
            f"{', '.join(candidate.name for candidate in candidates)}. A credential that is issued elsewhere is "
            "renewed there: put the new document where the configuration names it and run `make up`"
        )
    return [
        candidate
        for candidate in candidates
        if not identities or {candidate.name, candidate.row.field} & set(identities)
    ]


def _meant(unknown: str, names: Collection[str]) -> str:
    close = similar(unknown, names)
    return "" if close is None else f" (did you mean {close}?)"


def _slots(schedule: StateResource) -> Slots:
    written = cast(RenewalScheduleState, schedule["inputs"])
    return Slots(written["current"], _slot(written.get("a")), _slot(written.get("b")))


def _slot(written: CertificateSlot | None) -> Slot | None:
    if written is None:
        return None
    return Slot(written["generation"], rfc3339.parse(written["notBefore"]), written["validDays"])


def _delivery(secrets: Sequence[StateResource]) -> Delivery | None:
    """The last delivery of the identity's vault secret, None without any."""
    for secret in secrets:
        written = cast(CredentialSecretState, secret.get("outputs", {}))
        return Delivery.named(written.get("generation", ""), rfc3339.parse(written["deliveredAt"]))
    return None
