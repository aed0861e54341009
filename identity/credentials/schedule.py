"""When which certificate slot is issued: a pure rule over two slots, what the vault holds, and the time.

An identity has two slots. The *current* one is in its secret, or about to be written there; the other one, the spare,
holds the certificate before it, as pods may use that one for hours, until they load the new one. A renewal issues the
spare's slot anew and makes it current.

What was delivered decides, and only the vault shows that. A certificate that was issued but never reached the vault is
issued again in its own slot: its key is lost, and no pod has it. The slot that pods use stays as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, Self, TypeAlias

from identity.credentials import rfc3339
from identity.credentials.certificate import CLOCK_SKEW
from identity.credentials.renewal_date import age_when_due
from identity.credentials.renewal_request import RenewalRequest

SlotName: TypeAlias = Literal["a", "b"]

# The CSI driver's rotation poll: an hour in ARO's production.
LONGEST_POLL: Final = timedelta(hours=1)
# How long after a delivery a pod may still sign in with the certificate before: the rotation poll, the upstream
# loader's backstop (msi-dataplane pkg/dataplane/reloadCredentials.go) and the lifetime of its last token (Entra ID: 60
# to 90 minutes).
OVERLAP: Final = LONGEST_POLL + timedelta(hours=6) + timedelta(minutes=90)

# A loader takes a credential only if its not_before is strictly later than the loaded one's, in whole seconds
# (msi-dataplane pkg/dataplane/reloadCredentials.go:165-194).
_STEP: Final = timedelta(seconds=1)
_ALWAYS: Final = datetime.min.replace(tzinfo=UTC)
_GENERATION: Final = re.compile(r"(?P<slot>[ab])(?P<generation>[1-9][0-9]{0,8})")


@dataclass(frozen=True)
class Slot:
    """One certificate: the how-many-eth of its identity, from when (UTC, whole seconds) and how long it lives."""

    generation: int
    not_before: datetime
    valid_days: int


@dataclass(frozen=True)
class Delivery:
    """A certificate that was written to the vault: its slot and generation, and when (UTC)."""

    slot: SlotName
    generation: int
    at: datetime

    @property
    def name(self) -> str:
        """Slot and generation (`a2`), as the secret's tag has them."""
        return f"{self.slot}{self.generation}"

    @classmethod
    def named(cls, name: str, at: datetime) -> Self | None:
        """The delivery with this name; None if it is not one."""
        match = _GENERATION.fullmatch(name)
        if match is None:
            return None
        return cls("a" if match["slot"] == "a" else "b", int(match["generation"]), at)


@dataclass(frozen=True)
class ObservedSecret:
    """What the vault shows of the secret: whether there is one, whose certificate, and its `nbf` if it has one."""

    exists: bool = False
    delivery: Delivery | None = None
    not_before: datetime | None = None


@dataclass(frozen=True)
class Slots:
    """The two slots, and which of them is current. A slot without a certificate is None; the current one has one."""

    current: SlotName
    a: Slot | None
    b: Slot | None

    def slot(self, name: SlotName) -> Slot | None:
        """The slot of that name."""
        return self.a if name == "a" else self.b

    @property
    def spare(self) -> SlotName:
        """The name of the slot that is not current."""
        return "b" if self.current == "a" else "a"

    @property
    def issued(self) -> Slot:
        """The current slot."""
        current = self.slot(self.current)
        if current is None:
            raise AssertionError("the current slot has a certificate")
        return current

    def have(self, delivery: Delivery) -> bool:
        """Whether the certificate that was delivered is one of the two."""
        slot = self.slot(delivery.slot)
        return slot is not None and slot.generation == delivery.generation

    def with_slot(self, name: SlotName, slot: Slot | None) -> Slots:
        """The slots with one of them replaced."""
        return replace(self, a=slot) if name == "a" else replace(self, b=slot)


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What decides besides the slots and the vault.

    `lifetime_days` > `renew_before_days` > 0; `secret_name` is the identity's in the vault; `hold` puts off what is
    merely due; `is_stale`: the document in the vault is no longer what the configuration describes; `is_replaced`:
    every certificate that may have been delivered was taken out of use; `request`: what a person asks for.
    """

    lifetime_days: int
    renew_before_days: int
    secret_name: str
    hold: bool = False
    is_stale: bool = False
    is_replaced: bool = False
    request: RenewalRequest | None = None


@dataclass(frozen=True)
class Decision:
    """The slots from now on, why they changed (None if they did not), and the delivery that counts, if there is one."""

    slots: Slots
    why: str | None
    delivered: Delivery | None


class NotYet(Exception):
    """Pods may still use both certificates, so neither slot can be issued anew. `until` is when the spare is free."""

    def __init__(self, spare: SlotName, until: datetime, reason: str) -> None:
        super().__init__(reason)
        self.spare = spare
        self.until = until
        self.reason = reason


class NotDelivered(Exception):
    """The spare cannot be withdrawn: its certificate is the one that pods have."""


def initial(now: datetime, lifetime_days: int, vault: ObservedSecret) -> Decision:
    """Slot `a` issued now. It comes after whatever an earlier life of the identity left in the vault."""
    generation = vault.delivery.generation + 1 if vault.delivery else 1
    slot = Slot(generation, _later(now, vault.not_before), lifetime_days)
    return Decision(Slots("a", slot, None), "first certificate", None)


def decide(slots: Slots, vault: ObservedSecret, known: Delivery | None, now: datetime, terms: Terms) -> Decision:
    """What becomes of the slots at `now`.

    `known` is the last delivery that the stack knows of. It counts only where the vault shows none of the two
    certificates: after somebody deleted or overwrote the secret, pods still use what they have loaded. Raises NotYet,
    and NotDelivered for a withdrawal that would take what pods use.
    """
    if terms.request is RenewalRequest.REPLACE:
        alone = _issued(slots, slots.spare, vault, now, terms.lifetime_days).with_slot(slots.current, None)
        return Decision(replace(alone, current=slots.spare), f"alone, asked for at {rfc3339.render(now)}", None)
    in_vault = vault.delivery if _is_shown(vault, slots) else None
    delivered = in_vault or (known if known and slots.have(known) else None)
    if delivered is None or delivered.slot != slots.current:
        return _undelivered(slots, vault, delivered, now, terms)
    if terms.request is RenewalRequest.WITHDRAW:
        is_empty = slots.slot(slots.spare) is None
        why = None if is_empty else f"slot {slots.spare}, withdrawn at {rfc3339.render(now)}"
        return Decision(slots.with_slot(slots.spare, None), why, delivered)
    why = _reason(slots, terms, now, is_in_vault=in_vault is not None)
    if why is None:
        return Decision(slots, None, delivered)
    if now < (free := spare_is_free(slots, delivered)) and terms.request is not RenewalRequest.FORCE:
        # A secret that somebody else wrote, and what is due, can wait.
        if terms.request is None and not terms.is_stale and (in_vault or vault.exists):
            return Decision(slots, None, delivered)
        raise NotYet(slots.spare, free, why)
    renewed = replace(_issued(slots, slots.spare, vault, now, terms.lifetime_days), current=slots.spare)
    return Decision(renewed, f"slot {renewed.current}, {why}", delivered)


def spare_is_free(slots: Slots, delivered: Delivery) -> datetime:
    """From when on no pod should need the spare's certificate; `delivered` is the current one's delivery.

    A slot without a certificate was free all the time.
    """
    return _ALWAYS if slots.slot(slots.spare) is None else delivered.at + OVERLAP


def due_since(slots: Slots, terms: Terms) -> datetime:
    """From when on the current certificate is due: counted by the lifetime it was issued for."""
    issued = slots.issued
    return issued.not_before + age_when_due(issued.valid_days, terms.renew_before_days, terms.secret_name)


def _reason(slots: Slots, terms: Terms, now: datetime, *, is_in_vault: bool) -> str | None:
    """Why the current certificate, which was delivered, needs a successor; None if it needs none."""
    if not is_in_vault:
        return f"as the vault no longer has {slots.current}{slots.issued.generation}"
    if terms.is_stale:
        return "as the configuration of the credential changed"
    if terms.request is not None:
        return f"asked for at {rfc3339.render(now)}"
    due = due_since(slots, terms)
    return f"due since {rfc3339.render(due)}" if not terms.hold and now >= due else None


def _undelivered(
    slots: Slots, vault: ObservedSecret, delivered: Delivery | None, now: datetime, terms: Terms
) -> Decision:
    """The current certificate never reached the vault: issue it again; on hold go back to the one that did."""
    if terms.request is RenewalRequest.WITHDRAW:
        raise NotDelivered
    if delivered is not None and terms.hold and terms.request is None and not terms.is_stale:
        return Decision(replace(slots, current=delivered.slot), "on hold", delivered)
    lost = f"{slots.current}{slots.issued.generation}"
    is_unknown = vault.exists and vault.delivery is None and not terms.is_replaced
    if delivered is None and is_unknown and slots.slot(slots.spare) is None:
        # Nobody can tell what this secret holds. If it is the current certificate after all, it stays registered.
        renewed = replace(_issued(slots, slots.spare, vault, now, terms.lifetime_days), current=slots.spare)
        return Decision(renewed, f"slot {renewed.current}, as the vault does not show {lost}", None)
    again = _issued(slots, slots.current, vault, now, terms.lifetime_days)
    return Decision(again, f"slot {slots.current}, again, as {lost} never reached the vault", delivered)


def _is_shown(vault: ObservedSecret, slots: Slots) -> bool:
    """Whether the vault has one of the two certificates.

    A secret of another life of the identity, recovered from its deletion, may have the same name and begins at another
    second.
    """
    if vault.delivery is None or not slots.have(vault.delivery):
        return False
    slot = slots.slot(vault.delivery.slot)
    return vault.not_before is None or (slot is not None and slot.not_before == vault.not_before)


def _issued(slots: Slots, name: SlotName, vault: ObservedSecret, now: datetime, lifetime_days: int) -> Slots:
    """The slots with the one called `name` issued at `now`, later than everything that a loader may have seen."""
    there = [each for each in (slots.a, slots.b) if each is not None]
    # Counted through both slots and the vault, so that no two certificates of an identity have the same name.
    numbered: list[Slot | Delivery] = [*there, *([vault.delivery] if vault.delivery else [])]
    generation = max(each.generation for each in numbered) + 1
    start = _later(now, vault.not_before, *(each.not_before for each in there))
    return slots.with_slot(name, Slot(generation, start, lifetime_days))


def _later(now: datetime, *than: datetime | None) -> datetime:
    """The time of issue: valid a little before `now`, and later than all of `than`."""
    start = (now.astimezone(UTC) - CLOCK_SKEW).replace(microsecond=0)
    return max([start, *(each + _STEP for each in than if each is not None)])
