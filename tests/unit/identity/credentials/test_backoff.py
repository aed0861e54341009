"""The pauses between the tries of one thing."""

from __future__ import annotations

import pytest

from identity.credentials.backoff import Backoff


def test_pauses_double_up_to_the_longest_and_stay_there() -> None:
    backoff = Backoff(0.5, 5)

    assert [backoff.next() for _ in range(6)] == [0.5, 1, 2, 4, 5, 5]


def test_after_a_success_the_pauses_begin_again() -> None:
    backoff = Backoff(1, 4)
    assert [backoff.next(), backoff.next()] == [1, 2]

    backoff.reset()

    assert [backoff.next() for _ in range(4)] == [1, 2, 4, 4]


@pytest.mark.parametrize(("first", "longest"), [(0, 5), (6, 5)])
def test_pauses_that_could_not_grow_are_refused(first: float, longest: float) -> None:
    with pytest.raises(ValueError, match="first <= longest"):
        Backoff(first, longest)
