"""State, vault, tags, dates and Entra ID move apart at random: three invariants of which certificate may sign in."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from identity.credentials.certificate_rules import CLOCK_SKEW
from identity.credentials.renewal_request import RenewalRequest
from identity.credentials.schedule import (
    SLOTS,
    Delivery,
    ObservedSecret,
    RenewalRefusedError,
    Slot,
    SlotName,
    Slots,
    Terms,
    decide,
    initial,
)

START: Final = datetime(2026, 1, 31, 9, 30, 15, tzinfo=UTC)
FAR: Final = datetime(2036, 1, 1, tzinfo=UTC)
TERMS: Final = Terms(lifetime_days=30, renew_before_days=15, secret_name="ingress-hc1-json")
EVENTS: Final = (
    *("run", "run", "run", "hold", "renew", "cut after the plan", "cut after the registration"),
    *("delete", "put back with tags", "put back without tags", "edit nbf", "edit generation", "edit delivery"),
    *("remove tags", "take out by hand", "refresh", "backup", "restore", "lose the registration in the state"),
)


@dataclass(frozen=True)
class Cert:
    """A certificate; two lives of a state may issue two of the same name."""

    slot: SlotName
    generation: int
    not_before: datetime

    @classmethod
    def of(cls, slots: Slots, name: SlotName) -> Cert | None:
        """The certificate of a slot."""
        slot = slots.slot(name)
        return None if slot is None else cls(name, slot.generation, slot.not_before)


@dataclass(frozen=True)
class State:
    """What the stack knows; `registered` are the slots whose registration it has."""

    slots: Slots
    known: Delivery | None = None
    registered: frozenset[SlotName] = frozenset()


@dataclass
class World:
    """`holds` is what the secret's value is, `shows` what its tags and dates say of it."""

    now: datetime = START
    state: State | None = None
    backup: State | None = None
    holds: Cert | None = None
    shows: ObservedSecret = field(default_factory=ObservedSecret)
    written: list[tuple[Cert, ObservedSecret]] = field(default_factory=list)
    registered: set[Cert] = field(default_factory=set)
    withdrawn: set[Cert] = field(default_factory=set)

    def run(self, terms: Terms, ends: str = "") -> bool:
        """One `up`, until it `ends`; whether the schedule took part in it."""
        before = self.state
        try:
            if before is None:
                decision = initial(self.now, terms.lifetime_days, self.shows)
            else:
                decision = decide(before.slots, self.shows, before.known, self.now, terms)
        except RenewalRefusedError:
            return False
        slots, known = decision.slots, decision.delivered or (before.known if before else None)
        old = before or State(Slots(slots.current, None, None))
        kept = frozenset(name for name in SLOTS if _same(old.slots, slots, name))
        self.state = State(slots, known, old.registered & kept)
        if ends == "plan":
            return True
        for name in SLOTS:
            self._register(old, slots, name, kept)
        current = Cert.of(slots, slots.current)
        assert current is not None
        is_new = slots.current not in kept
        if ends != "registration" and is_new and current in self.registered:
            self._deliver(current)
        return True

    def _register(self, old: State, slots: Slots, name: SlotName, kept: frozenset[SlotName]) -> None:
        """What the engine does with a slot: certificate and registration."""
        assert self.state is not None
        cert = Cert.of(slots, name)
        if name not in kept and (gone := Cert.of(old.slots, name)) is not None:
            self.registered.discard(gone)
        if cert is None or name in self.state.registered:
            return
        has_key, is_shown = name not in kept, self.holds == cert and self.shows.not_before == cert.not_before
        if not (has_key or is_shown):
            return  # the hook refuses
        assert cert not in self.withdrawn or is_shown, "what was taken out comes back by the vault's proof alone"
        assert cert.not_before <= self.now + CLOCK_SKEW, "it begins now"
        assert Delivery.named(f"{name}{cert.generation}", self.now), "the next run can read its tag"
        self.registered.add(cert)
        self.state = replace(self.state, registered=self.state.registered | {name})

    def _deliver(self, cert: Cert) -> None:
        delivery = Delivery(cert.slot, cert.generation, self.now)
        self.put(cert, ObservedSecret(True, delivery, cert.not_before, self.now))
        self.written.append((cert, self.shows))
        assert self.state is not None
        self.state = replace(self.state, known=delivery)

    def put(self, cert: Cert | None, shows: ObservedSecret) -> None:
        """The secret has this value from now on."""
        self.holds, self.shows = cert, shows

    def happens(self, event: str, pick: int) -> None:
        """An event that is no run."""
        match event:
            case "delete":
                self.holds, self.shows = None, ObservedSecret()
            case "put back with tags" | "put back without tags" if self.written:
                cert, shows = self.written[pick % len(self.written)]
                tagged = replace(shows, created=self.now)
                self.put(cert, tagged if event.endswith("with tags") else ObservedSecret(True, created=self.now))
            case "edit nbf" if self.shows.exists:
                self.shows = replace(self.shows, not_before=FAR if pick % 2 else self.now - timedelta(days=1))
            case "edit generation" if self.shows.delivery:
                edited = replace(self.shows.delivery, generation=(1, 2, 999_999_999)[pick % 3])
                self.shows = replace(self.shows, delivery=edited)
            case "edit delivery" if self.shows.delivery and self.shows.created:
                # The reader takes the version's creation.
                self.shows = replace(self.shows, delivery=replace(self.shows.delivery, at=self.shows.created))
            case "remove tags":
                self.shows = replace(self.shows, delivery=None)
            case "take out by hand":
                candidates = sorted(self.registered - {self.holds}, key=repr)
                if candidates:
                    leaked = candidates[pick % len(candidates)]
                    self.registered.discard(leaked)
                    self.withdrawn.add(leaked)
            case "refresh" if self.state:
                self._refresh(self.state)
            case "backup":
                self.backup = self.state
            case "restore" if self.backup:
                self.state = self.backup
            case "lose the registration in the state" if self.state:
                self.state = replace(self.state, registered=frozenset())

    def _refresh(self, state: State) -> None:
        slots, found = state.slots, set()
        for name in SLOTS:
            slot, cert = slots.slot(name), Cert.of(slots, name)
            if slot is None or cert is None:
                continue
            if cert in self.registered and name in state.registered:
                found.add(name)
            slots = slots.with_slot(name, replace(slot, is_withdrawn=cert not in self.registered))
        self.state = replace(state, slots=slots, registered=frozenset(found))

    @property
    def needed(self) -> set[Cert]:
        """What nobody may take: what each pod is given that starts, and what was delivered last."""
        newest = self.written[-1][0] if self.written else None
        return {
            certificate
            for certificate in (self.holds, newest)
            if certificate is not None and certificate in self.registered
        }


def _same(before: Slots, after: Slots, name: SlotName) -> bool:
    one, other = before.slot(name), after.slot(name)
    return one is not None and other is not None and _issue(one) == _issue(other)


def _issue(slot: Slot) -> tuple[int, datetime]:
    return slot.generation, slot.not_before


events = st.tuples(st.sampled_from(EVENTS), st.integers(0, 7), st.integers(1, 20 * 24 * 60))


def _play(history: list[tuple[str, int, int]]) -> World:
    world = World()
    world.run(TERMS)
    for event, pick, minutes in history:
        world.now += timedelta(minutes=minutes)
        needed = world.needed
        match event:
            case "run":
                world.run(TERMS)
            case "hold":
                world.run(replace(TERMS, hold=True))
            case "renew":
                world.run(replace(TERMS, request=RenewalRequest.RENEW))
            case "cut after the plan":
                world.run(TERMS, "plan")
            case "cut after the registration":
                world.run(TERMS, "registration")
            case _:
                needed -= world.registered if event == "take out by hand" else set()
                world.happens(event, pick)
        assert needed <= world.registered, f"{event} took what pods use"
    return world


@given(history=st.lists(events, max_size=40))
def test_nothing_in_use_is_taken_and_nothing_withdrawn_comes_back(history: list[tuple[str, int, int]]) -> None:
    _play(history)


@given(history=st.lists(events, max_size=40))
def test_the_way_out_that_is_printed_leads_out(history: list[tuple[str, int, int]]) -> None:
    world = _play(history)
    world.now += timedelta(days=1)
    if world.shows.not_before and world.shows.not_before > world.now:
        world.shows = replace(world.shows, not_before=world.now - timedelta(days=1))  # as the message says

    for _ in range(2):  # an undelivered certificate first, then its successor
        assert world.run(replace(TERMS, request=RenewalRequest.FORCE))
        world.now += timedelta(minutes=5)

    assert world.state is not None
    assert world.holds == Cert.of(world.state.slots, world.state.slots.current)
    assert world.run(TERMS)
    world.happens("refresh", 0)
    assert world.run(TERMS)
    filled = {name for name in SLOTS if world.state.slots.slot(name)}
    assert filled == world.state.registered, "no slot has a certificate that cannot sign in"
