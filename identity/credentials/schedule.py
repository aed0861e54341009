"""When a certificate slot is issued: a pure rule over two slots, the vault's content, and the time.

An identity has two slots. The *current* one is in its secret, or about to be written there; the other one, the spare,
holds the previous certificate, which pods may use for hours, until they load the new one. A renewal issues the spare
slot again and makes it current.

The vault shows what was delivered, and that decides. A certificate that was issued but never reached the vault is
issued again in its own slot: its key is lost, and no pod has it. The slot that pods use stays as it is.

No witness decides alone. The certificate that the vault shows and a newer delivery on record are both in use, so
neither is issued again; if that leaves no slot, the rule refuses (decision record 0076).
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Final, Literal, Self, TypeAlias

from identity.credentials import rfc3339
from identity.credentials.certificate_rules import CLOCK_SKEW
from identity.credentials.renewal_request import RenewalRequest

# Between two renewals: until then pods may still use the previous certificate, whatever the settings say.
LEAST_AGE: Final = timedelta(days=1)
# The part of the time between two renewals over which the identities are spread: seven and a half days of 45.
SPREAD: Final = Fraction(1, 6)
# The part of a lifetime that is kept for runs that fail (cert-manager renews at two thirds of it), and how many days
# are enough of a long one.
_KEPT: Final = 3
_ENOUGH_DAYS: Final = 30
# A daily run comes up to a day late, and pods may need the previous certificate during the overlap of a third of a day.
_LEAST_DAYS: Final = 2
_BYTES: Final = 8


def age_when_due(valid_days: int, renew_before_days: int, secret_name: str) -> timedelta:
    """How long after its `not_before` a certificate is due, in whole seconds.

    `valid_days` is the lifetime it was issued for, `secret_name` that of its identity's secret in the vault. The age is
    at most `valid_days - renew_before_days`, at most `SPREAD` of that earlier, and never less than `LEAST_AGE`.
    """
    latest = max(timedelta(days=valid_days - renew_before_days), LEAST_AGE)
    earlier = timedelta(seconds=int(latest / timedelta(seconds=1) * SPREAD * share(secret_name)))
    return max(latest - earlier, LEAST_AGE)


def due_at(not_before: datetime, valid_days: int, renew_before_days: int, secret_name: str) -> datetime:
    """When a certificate that begins at `not_before` is due; the other arguments are those of `age_when_due`."""
    return not_before + age_when_due(valid_days, renew_before_days, secret_name)


def least_renew_before_days(lifetime_days: int) -> int:
    """How long before its end a certificate with a lifetime of at least 2 days has to be renewed at the latest.

    With daily runs the previous certificate then outlives the overlap (`identity/credentials/schedule.py`), except
    possibly with a lifetime of 2 days.
    """
    third = math.ceil(Fraction(lifetime_days, _KEPT))
    return min(max(min(third, _ENOUGH_DAYS), _LEAST_DAYS), lifetime_days - 1)


def share(secret_name: str) -> Fraction:
    """The identity's part of the spread, at least 0 and less than 1; Key Vault ignores the case of a secret's name."""
    digest = hashlib.sha256(secret_name.lower().encode()).digest()
    return Fraction(int.from_bytes(digest[:_BYTES]), 256**_BYTES)


SlotName: TypeAlias = Literal["a", "b"]
SLOTS: Final[tuple[SlotName, ...]] = ("a", "b")

# The CSI driver's rotation poll: an hour in ARO's production.
LONGEST_POLL: Final = timedelta(hours=1)
# How long after a delivery a pod may still sign in with the previous certificate: the rotation poll, the upstream
# loader's backstop (msi-dataplane pkg/dataplane/reloadCredentials.go) and the lifetime of its last token (Entra ID: 60
# to 90 minutes).
OVERLAP: Final = LONGEST_POLL + timedelta(hours=6) + timedelta(minutes=90)

# A loader takes a credential only if its not_before is strictly later than the loaded one's, in whole seconds
# (msi-dataplane pkg/dataplane/reloadCredentials.go:165-194).
_STEP: Final = timedelta(seconds=1)
_ALWAYS: Final = datetime.min.replace(tzinfo=UTC)
# A restored state is behind the vault by the renewals since; this many are one a day for 27 years. If a secret is
# further ahead, its tag was edited.
_MOST_AHEAD: Final = 10_000
_GENERATION: Final = re.compile(r"(?P<slot>[ab])(?P<generation>[1-9][0-9]{0,8})")


@dataclass(frozen=True)
class Slot:
    """One certificate: its number for the identity, its start (UTC, whole seconds) and its lifetime.

    `is_withdrawn`: a refresh did not find it at Entra ID, so nobody can sign in with it.
    """

    generation: int
    not_before: datetime
    valid_days: int
    is_withdrawn: bool = False

    def has_ended(self, now: datetime) -> bool:
        """Whether nobody can sign in with it any more; Entra ID registers none that has ended."""
        return self.not_before + timedelta(days=self.valid_days) <= now


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
    """The secret as the vault shows it: whether it exists, its delivery by its tags, its `nbf`, and when the version
    was created (UTC). `is_earlier`: its certificate is of an earlier life of the identity, whatever its name and `nbf`.
    """

    exists: bool = False
    delivery: Delivery | None = None
    not_before: datetime | None = None
    created: datetime | None = None
    is_earlier: bool = False


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

    def shown_by(self, vault: ObservedSecret) -> Delivery | None:
        """Which of the two certificates the vault has, by tags and `nbf`; None for another one, or if they disagree.

        A secret of an earlier life of the identity, recovered from its deletion, may have the same name, and within the
        same hour the same start. If the tags were removed or edited, only the date tells.
        """
        if vault.is_earlier:
            return None
        tagged, start = vault.delivery, vault.not_before
        named = tagged if tagged and self.have(tagged) else None
        if start is None:
            return named
        for name in SLOTS:
            slot = self.slot(name)
            if slot is not None and slot.not_before == start and (named is None or named.slot == name):
                return Delivery(name, slot.generation, tagged.at if tagged else vault.created or start)
        return None

    def with_slot(self, name: SlotName, slot: Slot | None) -> Slots:
        """The slots with one of them replaced."""
        return replace(self, a=slot) if name == "a" else replace(self, b=slot)


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What the decision depends on besides the slots and the vault.

    `lifetime_days` > `renew_before_days` > 0; `secret_name` is the identity's in the vault; `hold` puts off what is
    merely due; `is_stale`: the document in the vault is no longer what the configuration describes; `is_replaced`:
    every certificate that may have been delivered was revoked; `request`: what a person asks for.
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
    """The new slots, why they changed (None if they did not), and the delivery that counts, if there is one."""

    slots: Slots
    why: str | None
    delivered: Delivery | None


class RenewalRefusedError(Exception):
    """No certificate can be issued, or withdrawn, with these witnesses."""


class NotYetError(RenewalRefusedError):
    """Pods may still use both certificates, so neither slot can be issued again. `until` is when the spare is free."""

    def __init__(self, spare: SlotName, until: datetime, reason: str) -> None:
        super().__init__(reason)
        self.spare = spare
        self.until = until
        self.reason = reason


class NotDeliveredError(RenewalRefusedError):
    """The spare cannot be withdrawn: the vault does not show the current certificate."""


class ContradictionError(RenewalRefusedError):
    """The witnesses disagree, and every slot may be in use by pods. The text says how they disagree."""


class TakenOutError(RenewalRefusedError):
    """Somebody took the certificate that the vault shows out of Entra ID. The text is its name (`a2`)."""


class BeginsInFutureError(RenewalRefusedError):
    """A certificate would have to begin later than now, to come after one that begins at `at`."""

    def __init__(self, at: datetime) -> None:
        super().__init__(rfc3339.render(at))
        self.at = at


def initial(now: datetime, lifetime_days: int, vault: ObservedSecret, used: Slot | None = None) -> Decision:
    """The slots of a schedule that the state does not have.

    Pods use the vault's certificate if `used` describes it: it stays, alone. Else one is issued in the slot that the
    vault does not show, later than what an earlier life of the identity left there. Raises BeginsInFutureError, and
    NotYetError while pods may use a certificate of the other slot, of which only the state knew.
    """
    start, delivery = _start(now, [vault.not_before]), vault.delivery
    kept = Slots("b" if delivery is not None and delivery.slot == "b" else "a", None, None)
    if used is not None and delivery is not None:
        if used.generation > 1 and now < delivery.at + OVERLAP:
            raise NotYetError(kept.spare, delivery.at + OVERLAP, "the state has no schedule")
        return Decision(kept.with_slot(kept.current, used), f"{delivery.name} of the vault goes on", delivery)
    first = kept.current if delivery is None else kept.spare
    issued = Slot(_next_number([], vault), start, lifetime_days)
    return Decision(replace(kept, current=first).with_slot(first, issued), "first certificate", None)


def decide(slots: Slots, vault: ObservedSecret, known: Delivery | None, now: datetime, terms: Terms) -> Decision:
    """The slots from `now` on.

    `known` is the last delivery that the stack has recorded. It counts where the vault shows an older one of the two
    certificates, or none: pods still use what they have loaded. Raises NotYetError, Contradiction, BeginsInFutureError,
    TakenOutError, and NotDeliveredError for a withdrawal that would take what pods use.
    """
    _start(now, [vault.not_before])
    issue = _Issue(slots, vault, known, now, terms)
    shown, delivered = issue.shown, issue.delivered
    again = None if shown is None else slots.slot(shown.slot)
    is_out = again is not None and again.is_withdrawn and not again.has_ended(now)
    if terms.request is RenewalRequest.REGISTER:
        if shown is not None and again is not None and is_out:
            slots = slots.with_slot(shown.slot, replace(again, is_withdrawn=False))
        return decide(slots, vault, known, now, replace(terms, request=None))
    if shown is not None and is_out and terms.request is None:
        # Its key may have leaked, or it was a mistake: only a person knows, and nobody signs in with it meanwhile.
        raise TakenOutError(shown.name)
    if terms.request is RenewalRequest.REPLACE:
        alone = issue.in_slot(slots.spare).with_slot(slots.current, None)
        return Decision(replace(alone, current=slots.spare), f"alone, asked for at {rfc3339.render(now)}", None)
    spare = slots.slot(slots.spare)
    if spare is not None and spare.is_withdrawn:
        emptied = decide(slots.with_slot(slots.spare, None), vault, known, now, terms)
        gone = f"slot {slots.spare}, as {slots.spare}{spare.generation} is not registered at Entra ID any more"
        return replace(emptied, why=emptied.why or gone)
    if terms.request is RenewalRequest.WITHDRAW:
        if shown is None or shown != delivered or shown.slot != slots.current:
            raise NotDeliveredError
        withdrawn = None if spare is None else f"slot {slots.spare}, withdrawn at {rfc3339.render(now)}"
        return Decision(slots.with_slot(slots.spare, None), withdrawn, delivered)
    # With an empty slot the next certificate replaces none, and a caller that forces it accepts that.
    replaces = spare is not None and terms.request is not RenewalRequest.FORCE
    # The next certificate might replace one that pods use.
    if replaces and (contradiction := _vault_is_behind(issue) or _vault_was_edited(issue)) is not None:
        raise ContradictionError(contradiction)
    if delivered is None or delivered.slot != slots.current:
        return _undelivered(issue)
    why = _reason(issue)
    if why is None:
        return Decision(slots, None, delivered)
    if now < (free := spare_is_free(slots, delivered)) and terms.request is not RenewalRequest.FORCE:
        # What is due can wait.
        if terms.request is None and not terms.is_stale and shown is not None:
            return Decision(slots, None, delivered)
        raise NotYetError(slots.spare, free, why)
    renewed = replace(issue.in_slot(slots.spare), current=slots.spare)
    return Decision(renewed, f"slot {renewed.current}, {why}", delivered)


def spare_is_free(slots: Slots, delivered: Delivery) -> datetime:
    """When no pod should need the spare's certificate any more; `delivered` is the current one's delivery.

    A slot without a certificate was always free.
    """
    return _ALWAYS if slots.slot(slots.spare) is None else delivered.at + OVERLAP


def due_since(slots: Slots, terms: Terms) -> datetime:
    """When the current certificate is due, by the lifetime it was issued for."""
    return due_at(slots.issued.not_before, slots.issued.valid_days, terms.renew_before_days, terms.secret_name)


@dataclass(frozen=True)
class _Issue:
    """The witnesses, and the slots as they would be issued now."""

    slots: Slots
    vault: ObservedSecret
    known: Delivery | None
    now: datetime
    terms: Terms

    @property
    def current(self) -> str:
        """Slot and generation of the current certificate (`a2`)."""
        return f"{self.slots.current}{self.slots.issued.generation}"

    @property
    def shown(self) -> Delivery | None:
        """Which of the two certificates the vault has."""
        return self.slots.shown_by(self.vault)

    @property
    def delivered(self) -> Delivery | None:
        """The newest delivery of a certificate that can still sign in: the vault's, or a later one on record."""
        recorded = self.known if self.known and self.slots.have(self.known) else None
        deliveries = [delivery for delivery in (self.shown, recorded) if delivery is not None]
        usable = [
            delivery for delivery in deliveries if (slot := self.slots.slot(delivery.slot)) and not slot.is_withdrawn
        ]
        # For one and the same certificate the vault says when.
        return max(usable, key=lambda delivery: delivery.generation, default=None)

    @property
    def may_have_any(self) -> bool:
        """Whether the vault may have either certificate, because it shows neither of the two nor another one."""
        vault = self.vault
        is_another = vault.delivery is not None and not self.slots.have(vault.delivery)
        return vault.exists and self.shown is None and not is_another and not self.terms.is_replaced

    def in_slot(self, name: SlotName) -> Slots:
        """The slots with the one called `name` issued now, later than everything that a loader may have seen."""
        existing = [slot for slot in (self.slots.a, self.slots.b) if slot is not None]
        last = 0 if self.delivered is None else self.delivered.generation
        # A certificate that was never delivered was never loaded; a wrong clock may have issued it.
        seen = [slot.not_before for slot in existing if slot.not_before <= self.now or slot.generation <= last]
        number = _next_number([slot.generation for slot in existing], self.vault)
        start = _start(self.now, [self.vault.not_before, *seen])
        return self.slots.with_slot(name, Slot(number, start, self.terms.lifetime_days))


def _vault_is_behind(issue: _Issue) -> str | None:
    shown, delivered = issue.shown, issue.delivered
    if shown is None or delivered is None or shown.generation >= delivered.generation:
        return None
    return (
        f"has {shown.name} again, which is older than {delivered.name}, delivered at {rfc3339.render(delivered.at)}: "
        f"pods that were there before use {delivered.name}, and pods that have started since use {shown.name}"
    )


def _vault_was_edited(issue: _Issue) -> str | None:
    if not issue.may_have_any:
        return None
    vault = issue.vault
    tags = "no tags of this stack" if vault.delivery is None else f"the tag {vault.delivery.name}"
    start = "no nbf" if vault.not_before is None else f"nbf {rfc3339.render(vault.not_before)}"
    names = (f"{name}{slot.generation}" for name in SLOTS if (slot := issue.slots.slot(name)) is not None)
    return (
        f"was written or edited by somebody else: it has {tags}, and {start}, so pods may have been given any of "
        f"{' and '.join(names)}"
    )


def _reason(issue: _Issue) -> str | None:
    """Why the current certificate, which was delivered, needs a successor; None if it does not."""
    terms, due = issue.terms, due_since(issue.slots, issue.terms)
    if issue.shown is None:
        return f"as the vault no longer has {issue.current}"
    if terms.is_stale:
        return "as the configuration of the credential changed"
    if terms.request is not None:
        return f"asked for at {rfc3339.render(issue.now)}"
    if issue.vault.delivery is None:
        return f"as the vault has {issue.current} without its tags"
    return f"due since {rfc3339.render(due)}" if not terms.hold and issue.now >= due else None


def _undelivered(issue: _Issue) -> Decision:
    """The current certificate never reached the vault: issue it again; on hold go back to the one that did."""
    slots, terms, delivered = issue.slots, issue.terms, issue.delivered
    if delivered is not None and terms.hold and terms.request is None and not terms.is_stale:
        return Decision(replace(slots, current=delivered.slot), "on hold", delivered)
    lost = issue.current
    is_empty = slots.slot(slots.spare) is None
    if delivered is None and is_empty and issue.may_have_any and not slots.issued.is_withdrawn:
        # If it is the current certificate after all, it stays registered.
        renewed = replace(issue.in_slot(slots.spare), current=slots.spare)
        return Decision(renewed, f"slot {renewed.current}, as the vault does not show {lost}", None)
    why = "is not registered at Entra ID any more" if slots.issued.is_withdrawn else "never reached the vault"
    return Decision(issue.in_slot(slots.current), f"slot {slots.current}, again, as {lost} {why}", delivered)


def _next_number(own: Iterable[int], vault: ObservedSecret) -> int:
    """Counted through both slots and the vault, so that no two certificates of an identity have the same name."""
    newest = max(own, default=0)
    in_vault = vault.delivery.generation if vault.delivery else 0
    return max(newest, in_vault if in_vault <= newest + _MOST_AHEAD else 0) + 1


def _start(now: datetime, seen: Iterable[datetime | None]) -> datetime:
    """The start of validity: the hour a little before `now`, and later than everything that a loader may have seen.

    By the hour, so that an update plan of Pulumi's holds until the next one. Raises BeginsInFutureError: Entra ID
    refuses what is not valid yet, and each successor would be later still.
    """
    start = (now.astimezone(UTC) - CLOCK_SKEW).replace(minute=0, second=0, microsecond=0)
    latest = max((moment for moment in seen if moment is not None), default=_ALWAYS)
    if latest + _STEP > now + CLOCK_SKEW:
        raise BeginsInFutureError(latest)
    return max(start, latest + _STEP)
