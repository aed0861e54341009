"""The order of a rotation of signing keys: published before it signs, kept after it has signed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from identity.credentials.signing_key_rotation import (
    KEPT_AFTER,
    PUBLISHED_BEFORE,
    Publication,
    TooEarlyError,
    changed,
    first,
)

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(hours: float) -> datetime:
    return START + timedelta(hours=hours)


def step(before: Publication, published: list[int], signing: int, hours: float, *leaked: int) -> Publication:
    return changed(before, published, signing, at(hours), leaked=leaked)


def refusal(before: Publication, published: list[int], signing: int, hours: float) -> str:
    with pytest.raises(TooEarlyError) as refused:
        step(before, published, signing, hours)
    return str(refused.value)


def test_a_new_issuers_key_signs_at_once() -> None:
    assert first([1], 1, START) == Publication({1: START}, 1, START)
    assert first([1, 2], 2, START).signing == 2
    assert step(first([1, 2], 1, START), [1, 2], 1, 100) == first([1, 2], 1, START), "nothing changes without a step"


def test_a_rotation_has_three_steps() -> None:
    published = step(first([1], 1, START), [1, 2], 1, 10)
    assert published == Publication({1: START, 2: at(10)}, 1, START)

    switched = step(published, [1, 2], 2, 34)
    assert switched == Publication({1: START, 2: at(10)}, 2, at(34))

    assert step(switched, [2], 2, 58) == Publication({2: at(10)}, 2, at(34))
    assert step(published, [1], 1, 10.1) == first([1], 1, START), "a key that never signed may go at once"


def test_a_key_signs_a_day_after_it_was_published() -> None:
    assert timedelta(hours=24) == PUBLISHED_BEFORE
    published = step(first([1], 1, START), [1, 2], 1, 10)

    assert refusal(published, [1, 2], 2, 33.9) == (
        "key 2 has been published since 2026-01-01T10:00:00Z, and Entra ID may not know it yet; let it sign after "
        "2026-01-02T10:00:00Z"
    )
    assert refusal(first([1], 1, START), [1, 2], 2, 100) == (
        "key 2 is not published yet; publish it first, with key 1 still signing, and let it sign 24 hours later"
    )


def test_a_key_is_kept_a_day_after_it_signed() -> None:
    assert timedelta(hours=24) == KEPT_AFTER
    published = step(first([1], 1, START), [1, 2], 1, 0)
    switched = step(published, [1, 2], 2, 34)

    assert refusal(published, [2], 2, 34) == (
        "tokens of key 1 are still in use; keep it published until 24 hours after key 2 has begun to sign"
    )
    assert refusal(switched, [2], 2, 57.9) == (
        "tokens of key 1 are in use until 2026-01-03T10:00:00Z; keep it published until then"
    )


def test_a_key_that_was_switched_back_is_kept_a_day_as_well() -> None:
    published = step(first([1], 1, START), [1, 2], 1, 1)
    back = step(step(published, [1, 2], 2, 30), [1, 2], 1, 60)

    assert refusal(back, [1], 1, 83) == (
        "tokens of key 2 are in use until 2026-01-04T12:00:00Z; keep it published until then"
    )
    assert step(back, [1], 1, 84).since == {1: START}


def test_a_leak_does_not_wait_and_lets_no_other_key_go_before_its_time() -> None:
    before = first([1], 1, START)
    switched = step(step(before, [1, 2], 1, 1), [1, 2], 2, 30)

    assert step(before, [2], 2, 1, 1) == Publication({2: at(1)}, 2, at(1))
    with pytest.raises(TooEarlyError, match="key 2 is not published yet"):
        step(before, [1, 2], 2, 1, 7)
    with pytest.raises(TooEarlyError, match="tokens of key 1 are in use"):
        step(switched, [3], 3, 31, 2)
    assert step(switched, [1, 3], 3, 31, 2).signing == 3
