"""State, vault, dates and Entra ID disagree: which certificate counts, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from identity.credentials.renewal_request import RenewalRequest
from identity.credentials.schedule import (
    BeginsInFutureError,
    ContradictionError,
    Decision,
    Delivery,
    NotDeliveredError,
    NotYetError,
    ObservedSecret,
    Slot,
    Slots,
    TakenOutError,
    decide,
    initial,
)
from tests.unit.identity.credentials.schedules import (
    A1,
    B2,
    DAY,
    FIRST,
    SECOND_LIFE,
    START,
    TERMS,
    VALID_FROM,
    holding,
    terms,
)


@pytest.mark.parametrize("vault", [ObservedSecret(exists=True), holding(B2, VALID_FROM - DAY)])
@pytest.mark.parametrize("known", [B2, A1, None])
def test_an_unknown_secret_is_no_reason_to_take_a_certificate(vault: ObservedSecret, known: Delivery | None) -> None:
    for late in (DAY / 24, DAY, 60 * DAY):
        with pytest.raises(ContradictionError, match=r"it has .*nbf.*, so pods may have been given any of a1 and b2"):
            decide(SECOND_LIFE, vault, known, B2.at + late, TERMS)
    forced = decide(SECOND_LIFE, vault, B2, B2.at + DAY, terms(request=RenewalRequest.FORCE)).slots
    assert (forced.current, forced.b) == ("a", SECOND_LIFE.b)


@pytest.mark.parametrize("vault", [ObservedSecret(exists=True), holding(A1, VALID_FROM - DAY)])
def test_a_secret_that_says_nothing_may_be_the_current_certificate(vault: ObservedSecret) -> None:
    unsure = decide(FIRST, vault, None, START + DAY, TERMS).slots
    assert (unsure.current, unsure.a) == ("b", FIRST.a), "it stays registered"


def test_a_secret_without_tags_is_known_by_its_date() -> None:
    vault = ObservedSecret(True, None, SECOND_LIFE.issued.not_before, B2.at)
    assert decide(SECOND_LIFE, vault, None, B2.at + DAY / 24, TERMS) == Decision(SECOND_LIFE, None, B2)
    renewed = decide(SECOND_LIFE, vault, None, B2.at + DAY, TERMS)
    assert (renewed.slots.current, renewed.slots.b) == ("a", SECOND_LIFE.b)
    assert renewed.why == "slot a, as the vault has b2 without its tags"


@pytest.mark.parametrize("request_", [None, RenewalRequest.RENEW])
@pytest.mark.parametrize("hold", [False, True])
def test_a_vault_that_moved_back_leaves_what_it_shows_and_what_came_since(
    request_: RenewalRequest | None, hold: bool
) -> None:
    for late in (DAY / 24, DAY, 60 * DAY):
        with pytest.raises(
            ContradictionError, match="has a1 again, which is older than b2, delivered at 2026-03-18T09:30"
        ):
            decide(SECOND_LIFE, holding(A1), B2, B2.at + late, terms(hold=hold, request=request_))
    forced = decide(SECOND_LIFE, holding(A1), B2, B2.at + DAY, terms(request=RenewalRequest.FORCE)).slots
    assert (forced.current, forced.b) == ("a", SECOND_LIFE.b), "most pods have b2"


@pytest.mark.parametrize("vault", [holding(A1), ObservedSecret(), ObservedSecret(exists=True)])
def test_nothing_is_withdrawn_unless_the_vault_shows_the_current_certificate(vault: ObservedSecret) -> None:
    with pytest.raises(NotDeliveredError):
        decide(SECOND_LIFE, vault, B2, B2.at + DAY, terms(request=RenewalRequest.WITHDRAW))


def test_a_state_that_is_behind_the_vault_leaves_alone_what_it_does_not_know() -> None:
    behind = decide(FIRST, holding(B2), A1, B2.at + DAY, TERMS)
    assert behind.slots == Slots("b", FIRST.a, Slot(3, VALID_FROM + 47 * DAY, 90))


def test_what_was_taken_out_of_entra_is_replaced_in_its_own_slot() -> None:
    again = decide(GONE, holding(B2), A1, B2.at + DAY, TERMS)
    assert again.slots == Slots("a", Slot(3, VALID_FROM + 47 * DAY, 90), None)
    assert again.why == "slot a, again, as a1 is not registered at Entra ID any more"


def test_a_spare_that_was_taken_out_of_entra_leaves_its_slot() -> None:
    gone = SECOND_LIFE.with_slot("a", replace(FIRST.issued, is_withdrawn=True))
    emptied = decide(gone, holding(B2), None, B2.at + DAY, terms(hold=True))
    assert emptied.slots == Slots("b", None, SECOND_LIFE.b)
    assert emptied.why == "slot a, as a1 is not registered at Entra ID any more"
    assert decide(gone, holding(B2), None, B2.at, terms(request=RenewalRequest.RENEW)).slots.current == "a", (
        "it is free"
    )


@pytest.mark.parametrize("late", [90 * DAY, 800 * DAY], ids=["two renewals", "past the certificates' life"])
def test_a_state_whose_certificates_are_all_retired_goes_on_after_the_vaults(late: timedelta) -> None:
    retired = Slots("b", *(replace(slot, is_withdrawn=True) for slot in (SECOND_LIFE.a, SECOND_LIFE.b) if slot))
    now = START + late
    vault = holding(Delivery("b", 4, now - DAY), now - DAY)
    again = decide(retired, vault, B2, now, TERMS)
    assert again.slots == Slots("b", None, Slot(5, VALID_FROM + late, 90)), "neither of them is registered again"
    assert again.why == "slot b, again, as b2 is not registered at Entra ID any more"


def test_a_secret_older_than_both_certificates_is_followed_by_a_renewal() -> None:
    newer = Slots("a", Slot(3, VALID_FROM + 91 * DAY, 90), SECOND_LIFE.b)
    vault, delivered = holding(A1, VALID_FROM), Delivery("a", 3, START + 91 * DAY)
    with pytest.raises(NotYetError):
        decide(newer, vault, delivered, delivered.at + DAY / 24, TERMS)
    renewed = decide(newer, vault, delivered, delivered.at + DAY, TERMS)
    assert (renewed.slots.current, renewed.slots.a) == ("b", newer.a), "pods sign in with a3"
    assert renewed.why == "slot b, as the vault no longer has a3"


GONE = Slots("a", replace(FIRST.issued, is_withdrawn=True), None)


@pytest.mark.parametrize("hold", [False, True])
def test_what_the_vault_shows_and_somebody_took_out_is_a_persons_decision(hold: bool) -> None:
    with pytest.raises(TakenOutError, match=r"^a1$"):
        decide(GONE, holding(A1), A1, START + DAY, terms(hold=hold))
    returned = decide(GONE, holding(A1), A1, START + DAY, terms(hold=hold, request=RenewalRequest.REGISTER))
    assert returned == Decision(FIRST, None, A1)


@pytest.mark.parametrize("request_", [RenewalRequest.RENEW, RenewalRequest.FORCE, RenewalRequest.REPLACE])
def test_a_renewal_that_is_asked_for_never_registers_it_again(request_: RenewalRequest) -> None:
    both = SECOND_LIFE.with_slot("b", replace(SECOND_LIFE.issued, is_withdrawn=True))
    for slots, shown in ((GONE, A1), (both, B2)):
        renewed = decide(slots, holding(shown), shown, shown.at + DAY, terms(request=request_)).slots
        assert not renewed.have(shown)
        assert not renewed.issued.is_withdrawn


def test_what_is_registered_is_not_issued_for_the_request_to_register_it() -> None:
    assert decide(FIRST, holding(A1), None, START + DAY, terms(request=RenewalRequest.REGISTER)).slots == FIRST


@pytest.mark.parametrize("hold", [False, True])
def test_what_has_ended_is_not_registered_again_although_the_vault_shows_it(hold: bool) -> None:
    again = decide(GONE, holding(A1, VALID_FROM), A1, START + 91 * DAY, terms(hold=hold))
    assert again.slots == Slots("a", Slot(2, VALID_FROM + 91 * DAY, 90), None), "Entra ID registers none that has ended"


@pytest.mark.parametrize("request_", [None, *RenewalRequest])
def test_a_date_in_the_future_is_refused_and_so_is_what_would_follow_it(request_: RenewalRequest | None) -> None:
    far = datetime(2036, 1, 1, tzinfo=UTC)
    with pytest.raises(BeginsInFutureError) as refusal:
        decide(SECOND_LIFE, holding(B2, far), B2, B2.at + DAY, terms(request=request_))
    assert refusal.value.at == far
    with pytest.raises(BeginsInFutureError):
        initial(START, 90, ObservedSecret(True, None, far))


def test_what_a_wrong_clock_issued_counts_only_if_it_was_delivered() -> None:
    far = Slots("a", Slot(1, START + 10 * 365 * DAY, 90), None)
    assert decide(far, ObservedSecret(), None, START, TERMS).slots.a == Slot(2, VALID_FROM, 90)
    failed = Slots("b", FIRST.a, Slot(2, START + 10 * 365 * DAY, 90))
    assert decide(failed, holding(A1, VALID_FROM), None, START + DAY, TERMS).slots.b == Slot(3, VALID_FROM + DAY, 90)
    soon = Slots("a", Slot(1, START + timedelta(minutes=6), 90), None)
    with pytest.raises(BeginsInFutureError):
        decide(soon, holding(A1), None, START, terms(is_stale=True))


@pytest.mark.parametrize(("edited", "number"), [(999_999_999, 3), (10_003, 3), (10_002, 10_003), (7, 8)])
def test_an_edited_number_is_followed_as_far_as_a_restored_state_may_be_behind(edited: int, number: int) -> None:
    vault = holding(Delivery("a", edited, A1.at), VALID_FROM)
    renewed = decide(SECOND_LIFE, ObservedSecret(True, Delivery("a", edited, A1.at)), B2, B2.at + DAY, TERMS).slots
    assert renewed.issued.generation == number
    assert decide(FIRST, vault, None, START, TERMS) == Decision(FIRST, None, A1), "its date tells which it is"
