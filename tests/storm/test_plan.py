"""Plans of storms: drawn by a seed, written as text, read again."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.storm.plan import TAMPERING, Disturbance, Kind, Operation, Recovery, Victim, drawn, parsed, written
from tests.storm.test_storm import DAYS, KILLS, OPERATIONS

_arguments = st.from_regex(r"[\w-]*", fullmatch=True)
_disturbances = st.builds(Disturbance, st.sampled_from(Victim), st.integers(1), st.sampled_from(Recovery)) | st.builds(
    Disturbance, st.just(Victim.MACHINE), st.integers(1), st.sampled_from(Recovery), st.integers(0, 100)
)
_operations = st.builds(Operation, st.sampled_from(Kind), _arguments, st.none() | _disturbances)


@given(st.lists(_operations))
def test_a_plan_is_read_as_it_was_written(plan: list[Operation]) -> None:
    assert parsed(written(plan)) == plan


@pytest.mark.parametrize("text", ["sideways", "up/engine", "up/engine@x/again", "up/nobody@3/again", "renew up/"])
def test_what_is_no_operation_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no operation|is not a valid"):
        parsed(text)


@given(st.integers(0))
def test_a_nightly_storm_is_as_long_as_it_should_be(seed: int) -> None:
    plan = drawn(seed, OPERATIONS, KILLS, DAYS)

    assert plan == drawn(seed, OPERATIONS, KILLS, DAYS)
    assert len(plan) == 300
    assert sum(row.disturbance is not None for row in plan) >= 200
    assert sum(row.kind is Kind.RENEW for row in plan) == 60, "simulated days"
    assert {row.disturbance.victim for row in plan if row.disturbance} == set(Victim)
    assert {row.kind for row in plan} | {*TAMPERING} == set(Kind)
    assert sum(row.kind in TAMPERING for row in plan) >= 10
    assert not any(row.disturbance for row in plan if row.kind in TAMPERING)


@given(st.integers(0), st.integers(1, 60))
def test_without_a_stack_the_next_operation_is_up(seed: int, operations: int) -> None:
    plan = drawn(seed, operations, operations // 2, DAYS)

    assert plan[0].kind is Kind.UP
    assert all(after.kind is Kind.UP for before, after in pairwise(plan) if before.kind is Kind.DOWN)
