"""The identities that `rotate` renews, and the pods that may fail."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Final, cast

from identity.catalogue import CONTROL_PLANE
from identity.credentials import rfc3339
from identity.credentials.schedule import Delivery, Slot, Slots, spare_is_free
from identity.plugin_schema import CertificateSlot, CredentialSecretState, RenewalScheduleState
from identity.similar import similar
from ops.renewal.guard import Renewable
from ops.stack.errors import CommandError

_MOUNTS: Final = {row.field: row.mounts for row in CONTROL_PLANE}


def free_at(identity: Renewable) -> datetime | None:
    """When no pod needs the certificate any more that a renewal replaces; None if no pod has one yet."""
    delivered = _delivered(identity)
    return None if delivered is None else spare_is_free(slots(identity), delivered)


def pods(identity: Renewable) -> str:
    """Container and Deployment of every consumer."""
    return ", ".join(f"{mount.container} in {mount.deployment}" for mount in _MOUNTS[identity.owner.identity])


def slots(identity: Renewable) -> Slots:
    """The certificates of an identity by its schedule."""
    written = cast(RenewalScheduleState, identity.schedule["inputs"])
    return Slots(written["current"], _slot(written.get("a")), _slot(written.get("b")))


def chosen(stack: str, candidates: Collection[Renewable], identities: Collection[str]) -> list[Renewable]:
    """The stack's candidates that `identities` names (`ingress`, or `hc1/ingress` for one cluster); all without any.

    Raises CommandError for a name without a certificate of this stack, and if no identity has one.
    """
    if not candidates:
        raise CommandError(f"the stack {stack} issues no certificate: there is nothing to rotate")
    names = {name for candidate in candidates for name in (candidate.name, candidate.owner.identity)}
    if unknown := sorted(set(identities) - names):
        raise CommandError(
            f"the stack {stack} issues no certificate for "
            f"{', '.join(candidate + _meant(candidate, names) for candidate in unknown)}; it issues those of "
            f"{', '.join(candidate.name for candidate in candidates)}. A credential that is issued elsewhere is "
            f"renewed there: put the new document where the configuration names it and run `make up STACK={stack}`"
        )
    return [
        candidate
        for candidate in candidates
        if not identities or {candidate.name, candidate.owner.identity} & set(identities)
    ]


def _meant(unknown: str, names: Collection[str]) -> str:
    close = similar(unknown, names)
    return "" if close is None else f" (did you mean {close}?)"


def _slot(written: CertificateSlot | None) -> Slot | None:
    if written is None:
        return None
    return Slot(written["generation"], rfc3339.parse(written["notBefore"]), written["validDays"])


def _delivered(identity: Renewable) -> Delivery | None:
    """The last delivery to the vault, None without any."""
    if identity.secret is None:
        return None
    written = cast(CredentialSecretState, identity.secret.get("outputs", {}))
    return Delivery.named(written.get("generation", ""), rfc3339.parse(written["deliveredAt"]))
