"""When which certificate slot is renewed: a pure rule over two slots and the time.

Two certificates are registered for an identity. The *current* one is in its secret; the other is the spare. When the
current one has reached the age `lifetime - renew before`, the spare's slot is renewed and becomes current. The slot
that was current until then is left alone: pods may use its certificate for hours, until they load the new one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, TypeAlias

from identity.credentials.certificate import CLOCK_SKEW

SlotName: TypeAlias = Literal["a", "b"]

# The CSI driver's rotation poll: an hour in ARO's production.
LONGEST_POLL: Final = timedelta(hours=1)
# How long after a renewal a pod may still sign in with the certificate before: the rotation poll, the upstream loader's
# backstop (msi-dataplane pkg/dataplane/reloadCredentials.go) and the lifetime of its last token (Entra ID: 60 to 90
# minutes).
OVERLAP: Final = LONGEST_POLL + timedelta(hours=6) + timedelta(minutes=90)

# A loader takes a credential only if its not_before is strictly later than the loaded one's, in whole seconds
# (msi-dataplane pkg/dataplane/reloadCredentials.go:165-194).
_STEP = timedelta(seconds=1)


@dataclass(frozen=True)
class Slot:
    """One certificate: the how-many-eth of its slot (from 1), and from when it is valid (UTC, whole seconds)."""

    generation: int
    not_before: datetime


@dataclass(frozen=True)
class Slots:
    """The two slots, and which of them is in the secret."""

    current: SlotName
    a: Slot
    b: Slot

    def slot(self, name: SlotName) -> Slot:
        """The slot of that name."""
        return self.a if name == "a" else self.b

    @property
    def spare(self) -> SlotName:
        """The name of the slot that is not current."""
        return "b" if self.current == "a" else "a"


@dataclass(frozen=True)
class Renewal:
    """A renewal that is due: of which slot, and since when (UTC)."""

    slot: SlotName
    due_since: datetime


def initial(now: datetime) -> Slots:
    """Both slots issued now. `a` is current, so `b` is the older: no loader would take an older one later."""
    start = _issue_time(now)
    return Slots(current="a", a=Slot(1, start), b=Slot(1, start - _STEP))


def due(slots: Slots, now: datetime, lifetime_days: int, renew_before_days: int) -> Renewal | None:
    """The renewal that is due at `now`, if any: always of the spare, whatever its own age.

    Expects 0 < `renew_before_days` < `lifetime_days`. With less than half of the lifetime the spare expires long before
    its turn.
    """
    due_since = slots.slot(slots.current).not_before + timedelta(days=lifetime_days - renew_before_days)
    return Renewal(slots.spare, due_since) if now >= due_since else None


def spare_is_free(slots: Slots) -> datetime:
    """From when on no pod should need the spare's certificate any more, so that its slot may be renewed.

    The first spare was never in a secret: it is free at once.
    """
    never_used = slots.current == "a" and slots.b.generation == 1
    issued = slots.slot(slots.current).not_before + CLOCK_SKEW
    return issued if never_used else issued + OVERLAP


def with_fresh_spare(slots: Slots) -> Slots:
    """The slots with the spare renewed, older than the current one, which stays: the end of a revocation."""
    spare = Slot(slots.slot(slots.spare).generation + 1, slots.slot(slots.current).not_before - _STEP)
    return replace(slots, a=spare) if slots.spare == "a" else replace(slots, b=spare)


def renewed(slots: Slots, renewal: Renewal, now: datetime) -> Slots:
    """The slots once `renewal` is carried out at `now`: its slot is renewed, later than the other, and current."""
    newest = max(slots.a.not_before, slots.b.not_before)
    issued = Slot(slots.slot(renewal.slot).generation + 1, max(_issue_time(now), newest + _STEP))
    if renewal.slot == "a":
        return replace(slots, current="a", a=issued)
    return replace(slots, current="b", b=issued)


def _issue_time(now: datetime) -> datetime:
    return (now.astimezone(UTC) - CLOCK_SKEW).replace(microsecond=0)
