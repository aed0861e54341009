"""When a certificate is issued, delivered and taken out, and when it is due."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from identity.catalogue import CONTROL_PLANE
from identity.credentials.certificate_rules import CLOCK_SKEW
from identity.credentials.renewal_request import RenewalRequest
from identity.credentials.schedule import (
    LEAST_AGE,
    OVERLAP,
    SPREAD,
    Decision,
    Delivery,
    NotYetError,
    ObservedSecret,
    RenewalRefusedError,
    Slot,
    Slots,
    Terms,
    age_when_due,
    decide,
    due_since,
    initial,
    least_renew_before_days,
    share,
    spare_is_free,
)
from tests.unit.identity.credentials.schedules import (
    A1,
    B2,
    DAY,
    FIRST,
    PUNCTUAL,
    SECOND,
    SECOND_LIFE,
    START,
    TERMS,
    VALID_FROM,
    holding,
    terms,
)

moments = st.datetimes(datetime(2020, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))


@st.composite
def lives(draw: st.DrawFn) -> Terms:
    """Lifetime and renewal as the settings accept them."""
    lifetime = draw(st.integers(2, 730))
    before = draw(st.integers(least_renew_before_days(lifetime), lifetime - 1))
    name = draw(st.text(max_size=20))
    return Terms(lifetime_days=lifetime, renew_before_days=before, secret_name=name)


@pytest.mark.parametrize("minutes", [0, 34])
def test_at_first_one_slot_is_issued_the_same_for_an_hour(minutes: int) -> None:
    decision = initial(START + timedelta(minutes=minutes), 90, ObservedSecret())
    assert decision == Decision(FIRST, "first certificate", None), "the engine applies no other plan"


def test_a_new_life_comes_after_what_an_earlier_one_left_in_the_vault() -> None:
    left = ObservedSecret(True, Delivery("b", 7, START), START.replace(microsecond=0))
    slots = initial(START, 90, left).slots
    assert slots.a == Slot(8, START.replace(microsecond=0) + SECOND, 90), "loaders and the schedule tell them apart"
    assert initial(START + DAY, 90, holding(A1)).slots.current == "b", "what pods use stays registered for longer"


def test_the_defaults_renew_b_at_day_45_a_at_day_90_and_b_again_at_day_135() -> None:
    slots, vault, history = FIRST, holding(A1), []
    for day in range(136):
        now = START + day * DAY
        decision = decide(slots, vault, None, now, TERMS)
        if decision.why:
            slots = decision.slots
            delivery = Delivery(slots.current, slots.issued.generation, now)
            vault = holding(delivery)
            history.append((day, delivery.name))
    assert history == [(45, "b2"), (90, "a3"), (135, "b4")]


def test_nothing_is_due_a_second_too_early() -> None:
    moment = VALID_FROM + 45 * DAY
    assert decide(FIRST, holding(A1), None, moment - SECOND, TERMS) == Decision(FIRST, None, A1)
    assert decide(FIRST, holding(A1), None, moment, TERMS).why == "slot b, due since 2026-03-17T09:00:00Z"


@given(zone=st.timezones())
def test_a_machines_time_zone_changes_nothing(zone: tzinfo) -> None:
    moment = VALID_FROM + 45 * DAY
    assert initial(START.astimezone(zone), 90, ObservedSecret()) == initial(START, 90, ObservedSecret())
    for now in (moment - SECOND, moment):
        assert decide(FIRST, holding(A1), None, now.astimezone(zone), TERMS) == decide(
            FIRST, holding(A1), None, now, TERMS
        )


def test_each_identity_is_due_at_its_own_time_before_that() -> None:
    moment = VALID_FROM + age_when_due(90, 45, "ingress-hc1-json")
    mine = terms(secret_name="ingress-hc1-json")
    assert moment < VALID_FROM + 45 * DAY
    assert decide(FIRST, holding(A1), None, moment - SECOND, mine).why is None
    assert decide(FIRST, holding(A1), None, moment, mine).why == "slot b, due since 2026-03-12T00:46:38Z"


def test_due_is_counted_by_the_lifetime_it_was_issued_for() -> None:
    shorter = terms(lifetime_days=30, renew_before_days=15)
    assert decide(FIRST, holding(A1), None, START + 74 * DAY, shorter).why is None
    renewed = decide(FIRST, holding(A1), None, START + 75 * DAY, shorter).slots
    assert renewed.b is not None
    assert renewed.b.valid_days == 30


def test_at_least_a_day_lies_between_two_renewals() -> None:
    assert due_since(FIRST, terms(renew_before_days=200)) == VALID_FROM + DAY


def test_a_renewal_on_hold_waits_and_one_that_is_asked_for_does_not() -> None:
    now = START + 60 * DAY
    assert decide(FIRST, holding(A1), None, now, terms(hold=True)).slots == FIRST
    asked = decide(FIRST, holding(A1), None, now, terms(hold=True, request=RenewalRequest.RENEW))
    assert asked.slots.current == "b"


def test_a_changed_document_takes_another_certificate_on_hold_as_well() -> None:
    changed = decide(FIRST, holding(A1), None, START + DAY, terms(hold=True, is_stale=True))
    assert (changed.slots.current, changed.slots.a) == ("b", FIRST.a)
    assert changed.why == "slot b, as the configuration of the credential changed"


@pytest.mark.parametrize("hold", [False, True])
def test_the_first_certificate_that_never_arrived_is_issued_again_in_its_slot(hold: bool) -> None:
    later = START + timedelta(minutes=3)
    again = decide(FIRST, ObservedSecret(), None, later, terms(hold=hold))
    assert again.slots == Slots("a", Slot(2, VALID_FROM + SECOND, 90), None), "later than the one before"
    assert again.why == "slot a, again, as a1 never reached the vault"


def test_a_renewal_that_never_arrived_leaves_the_delivered_slot_alone() -> None:
    for day in range(47, 57):
        again = decide(SECOND_LIFE, holding(A1), None, START + day * DAY, TERMS)
        assert (again.slots.current, again.slots.a) == ("b", FIRST.a), "pods sign in with a1"
        assert again.slots.b == Slot(3, VALID_FROM + day * DAY, 90)
        assert again.delivered == A1


def test_an_interrupted_renewal_on_hold_goes_back_to_what_was_delivered() -> None:
    held = decide(SECOND_LIFE, holding(A1), None, START + 47 * DAY, terms(hold=True))
    assert held.slots == replace(SECOND_LIFE, current="a")


def test_the_overlap_counts_from_the_delivery() -> None:
    late = replace(B2, at=START + 60 * DAY)
    assert spare_is_free(SECOND_LIFE, late) == late.at + OVERLAP
    soon = terms(renew_before_days=89)
    early = decide(SECOND_LIFE, holding(late), None, late.at + OVERLAP - SECOND, soon)
    assert early.why is None, "it is due since long, but pods may still use a1"
    assert decide(SECOND_LIFE, holding(late), None, late.at + OVERLAP, soon).slots.current == "a"


def test_what_is_asked_for_within_the_overlap_is_refused_and_force_is_not() -> None:
    now = B2.at + timedelta(hours=8, minutes=29)
    with pytest.raises(NotYetError) as refusal:
        decide(SECOND_LIFE, holding(B2), None, now, terms(request=RenewalRequest.RENEW))
    assert (refusal.value.spare, refusal.value.until) == ("a", B2.at + OVERLAP)
    assert decide(SECOND_LIFE, holding(B2), None, now, terms(request=RenewalRequest.FORCE)).slots.current == "a"
    with pytest.raises(NotYetError, match="the configuration of the credential changed"):
        decide(SECOND_LIFE, holding(B2), None, B2.at + DAY / 24, terms(is_stale=True))
    with pytest.raises(NotYetError):  # the deleted secret has to be recovered
        decide(SECOND_LIFE, ObservedSecret(), B2, B2.at + DAY / 24, TERMS)


def test_a_slot_without_a_certificate_is_free_at_once() -> None:
    behind = A1.at - timedelta(minutes=4)  # another machine's clock than the one that delivered
    assert decide(FIRST, holding(A1), None, behind, terms(request=RenewalRequest.RENEW)).slots.current == "b"


def test_a_deleted_secret_leaves_the_certificate_that_pods_have_loaded() -> None:
    restored = decide(FIRST, ObservedSecret(), A1, START + DAY, TERMS)
    assert (restored.slots.current, restored.slots.a) == ("b", FIRST.a)
    assert restored.why == "slot b, as the vault no longer has a1"
    again = decide(restored.slots, ObservedSecret(), A1, START + DAY, TERMS)
    assert (again.slots.current, again.slots.a) == ("b", FIRST.a), "as often as it fails"


def test_a_recovered_secret_of_another_life_is_not_this_ones() -> None:
    recovered = holding(replace(A1, generation=7), VALID_FROM - DAY)
    again = decide(FIRST, recovered, None, START, TERMS)
    assert again.slots == Slots("a", Slot(8, VALID_FROM + SECOND, 90), None)
    assert decide(FIRST, holding(A1, VALID_FROM), None, START, TERMS).why is None


def test_withdrawing_empties_the_spare_slot_once() -> None:
    now = B2.at + timedelta(minutes=1)
    withdrawn = decide(SECOND_LIFE, holding(B2), None, now, terms(request=RenewalRequest.WITHDRAW))
    assert withdrawn.slots == Slots("b", None, SECOND_LIFE.b)
    again = decide(withdrawn.slots, holding(B2), None, now, terms(request=RenewalRequest.WITHDRAW))
    assert (again.slots, again.why) == (withdrawn.slots, None)


@pytest.mark.parametrize(
    "slots",
    [
        SECOND_LIFE,
        Slots("b", None, SECOND_LIFE.b),
        Slots("a", SECOND_LIFE.a, None),
        Slots("b", *(slot and replace(slot, is_withdrawn=True) for slot in (SECOND_LIFE.a, SECOND_LIFE.b))),
    ],
)
@pytest.mark.parametrize("held", [A1, B2, None])
def test_a_replacement_leaves_the_new_certificate_alone(slots: Slots, held: Delivery | None) -> None:
    now = B2.at + timedelta(minutes=1)
    vault = ObservedSecret(exists=True, delivery=held)

    replaced = decide(slots, vault, None, now, terms(request=RenewalRequest.REPLACE))

    assert (replaced.slots.current, replaced.slots.slot(slots.current)) == (slots.spare, None)
    assert replaced.slots.issued.generation > max(issued.generation for issued in (slots.a, slots.b) if issued)
    # It is not delivered: whatever the next runs do, what was replaced does not come back.
    again = decide(replaced.slots, vault, held, now + timedelta(hours=1), terms(is_replaced=True))
    assert again.delivered is None
    if held is None or not replaced.slots.have(held):
        # Its key is lost, so nothing could prove it once more.
        assert (again.slots.current, again.slots.slot(again.slots.spare)) == (replaced.slots.current, None)
    assert not ({slots.a, slots.b} - {None}) & {again.slots.a, again.slots.b}


@pytest.mark.parametrize("name", ["", "a", "a0", "c1", "a-1", "a1.0", "a01", "1a", "b9999999999", "a\u0661"])
def test_what_is_no_name_of_a_delivery_is_none(name: str) -> None:
    assert Delivery.named(name, START) is None


@given(generation=st.integers(1, 999_999_999), slot=st.sampled_from(["a", "b"]))
def test_a_delivery_is_read_by_its_name(generation: int, slot: str) -> None:
    found = Delivery.named(f"{slot}{generation}", START)
    assert found is not None
    assert (found.slot, found.generation, found.name) == (slot, generation, f"{slot}{generation}")


@st.composite
def runs(draw: st.DrawFn) -> tuple[timedelta, Terms, bool, str]:
    """The time since the last run, its terms, whether it delivers, and what somebody does to the secret before."""
    lifetime = draw(st.integers(2, 60))
    settings = Terms(
        lifetime_days=lifetime,
        renew_before_days=draw(st.integers(least_renew_before_days(lifetime), lifetime - 1)),
        secret_name=draw(st.sampled_from([PUNCTUAL, "ingress-hc1-json", "kms-hc1-json"])),
        hold=draw(st.integers(0, 5)) == 0,
        is_stale=draw(st.integers(0, 9)) == 0,
        request=draw(st.sampled_from([None, None, None, None, RenewalRequest.RENEW, RenewalRequest.WITHDRAW])),
    )
    pause = timedelta(minutes=draw(st.integers(1, 3 * 24 * 60)))
    return (
        pause,
        settings,
        draw(st.booleans()),
        draw(st.sampled_from(["", "", "", "deleted", "overwritten", "restored"])),
    )


@given(history=st.lists(runs(), min_size=1, max_size=40))
def test_whatever_fails_no_certificate_that_pods_may_use_is_issued_again(
    history: list[tuple[timedelta, Terms, bool, str]],
) -> None:
    now = START
    slots = initial(now, 90, ObservedSecret()).slots
    vault, last, known = ObservedSecret(), ObservedSecret(), None
    used: dict[str, datetime] = {}  # what pods may use, until when
    for pause, settings, arrives, meddling in history:
        now += pause
        vault = {"deleted": ObservedSecret(), "overwritten": ObservedSecret(last.exists), "restored": last}.get(
            meddling, vault
        )
        try:
            decision = decide(slots, vault, known, now, settings)
        except RenewalRefusedError:
            continue
        kept = {f"{name}{slot.generation}" for name in ("a", "b") if (slot := decision.slots.slot(name))}
        if settings.request is RenewalRequest.WITHDRAW:
            used = {name: until for name, until in used.items() if name in kept}
        assert {name for name, until in used.items() if until > now} <= kept
        newest = max(issued.not_before for issued in (slots.a, slots.b) if issued)
        if decision.slots.issued not in (slots.a, slots.b):
            assert decision.slots.issued.not_before >= newest + SECOND, "loaders keep the old one otherwise"
        known = decision.delivered or known
        slots = decision.slots
        name = f"{slots.current}{slots.issued.generation}"
        if arrives and not (vault.delivery and vault.delivery.name == name):
            used = {earlier: min(until, now + OVERLAP) for earlier, until in used.items()} | {
                name: datetime.max.replace(tzinfo=UTC)
            }
            delivery = Delivery(slots.current, slots.issued.generation, now)
            last = vault = holding(delivery, slots.issued.not_before)
            known = last.delivery


@given(start=moments, settings=lives(), late=st.lists(st.integers(0, 24 * 3600), min_size=1, max_size=300))
def test_under_daily_runs_renew_before_less_two_days_is_left(start: datetime, settings: Terms, late: list[int]) -> None:
    slots = initial(start, settings.lifetime_days, ObservedSecret()).slots
    vault = holding(Delivery("a", 1, start))
    for day, seconds in enumerate(late):
        run = start + (day + 1) * DAY - timedelta(seconds=seconds)
        left = slots.issued.not_before + settings.lifetime_days * DAY - run
        # Two runs of "daily" lie up to two days apart here: late one day, early the next.
        assert left >= (settings.renew_before_days - 2) * DAY - CLOCK_SKEW
        decision = decide(slots, vault, None, run, settings)
        if decision.why:
            slots = decision.slots
            vault = holding(Delivery(slots.current, slots.issued.generation, run))


@given(
    lifetime=st.integers(3, 9) | st.integers(3, 60),
    data=st.data(),
    name=st.sampled_from([PUNCTUAL, "ingress-hc1-json", "kms-hc1-json"]),
    hour=st.integers(1, 24),
    outcomes=st.lists(st.sampled_from(["delivers", "issues", "does not run"]), min_size=1, max_size=150),
)
def test_daily_runs_that_fail_leave_pods_certificates_that_sign_in(
    lifetime: int, data: st.DataObject, name: str, hour: int, outcomes: list[str]
) -> None:
    """For two days less than `renewBeforeDays`, and for a pod that loads at the end of the overlap as well."""
    least = least_renew_before_days(lifetime)
    before = data.draw(st.just(least) | st.integers(least, lifetime - 1))
    settings = Terms(lifetime_days=lifetime, renew_before_days=before, secret_name=name)
    slots = initial(START, lifetime, ObservedSecret()).slots
    delivered, failures = Delivery("a", 1, START), 0
    for day, outcome in enumerate(outcomes):
        now = START + day * DAY + timedelta(hours=hour)
        previous = slots.slot(delivered.slot)
        assert previous is not None
        assert not previous.has_ended(now), "what the vault has signs in at any time"
        decision = decide(slots, holding(delivered), None, now, settings)
        if now < due_since(replace(slots, current=delivered.slot), settings):
            assert decision.why is None
            continue
        if outcome != "delivers" and failures < before - 2:
            failures += 1
            slots = slots if outcome == "does not run" else decision.slots
            assert slots.slot(delivered.slot) == previous, "a renewal that fails leaves what was delivered"
            continue
        slots, failures = decision.slots, 0
        delivered = Delivery(slots.current, slots.issued.generation, now)
        assert slots.slot(slots.spare) == previous, "pods that load late have it"
        assert not previous.has_ended(now + OVERLAP)


names = st.text(max_size=127)
lifetimes = st.integers(2, 730)


@given(lifetimes, st.data(), names)
def test_no_identity_is_due_later_than_the_settings_say(lifetime: int, data: st.DataObject, name: str) -> None:
    before = data.draw(st.integers(1, lifetime - 1))
    age = age_when_due(lifetime, before, name)
    assert age <= (lifetime - before) * DAY
    assert age >= (lifetime - before) * DAY * 5 / 6
    assert age.microseconds == 0, "dates have whole seconds"


@given(st.integers(1, 730), st.integers(1, 729), names)
def test_never_while_pods_may_use_the_certificate_before(lifetime: int, before: int, name: str) -> None:
    """As well for a certificate that was issued under other settings than those of today."""
    earliest = timedelta(days=lifetime - before) * float(1 - SPREAD)
    assert age_when_due(lifetime, before, name) >= max(earliest, LEAST_AGE) > OVERLAP


@given(lifetimes)
def test_a_third_of_the_lifetime_is_kept_for_renewals_that_fail(lifetime: int) -> None:
    least = least_renew_before_days(lifetime)
    assert 1 <= least < lifetime
    assert least >= min(lifetime / 3, 30)
    assert least <= (lifetime + 1) / 2, "what was accepted before"


@pytest.mark.parametrize(
    ("lifetime", "least"), [(2, 1), (3, 2), (4, 2), (6, 2), (7, 3), (60, 20), (90, 30), (91, 30), (730, 30)]
)
def test_the_latest_renewal_that_is_accepted(lifetime: int, least: int) -> None:
    assert least_renew_before_days(lifetime) == least


@given(names)
def test_a_name_has_the_same_share_in_any_letter_case(name: str) -> None:
    assume(name.lower() == name.upper().lower())
    assert 0 <= share(name) == share(name.upper()) < 1


def test_the_dates_stay_the_same_in_every_release() -> None:
    """A credential's `renewAfter` and its schedule may be computed by two releases."""
    assert age_when_due(90, 45, "ingress-hc1-json") == timedelta(days=39, hours=15, minutes=46, seconds=38)
    assert age_when_due(90, 45, "kms-hc1-json") == timedelta(days=41, hours=14, minutes=31, seconds=32)


def test_two_hundred_clusters_of_one_day_are_spread_over_a_week() -> None:
    ages = [
        age_when_due(90, 45, f"{row.secret_stem}-c{cluster}-json") for cluster in range(200) for row in CONTROL_PLANE
    ]
    nights = Counter(age.days for age in ages)
    assert set(nights) == set(range(37, 45))
    assert max(nights.values()) < 1.25 * len(ages) / 7.5
