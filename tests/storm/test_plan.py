"""Plans of storms: drawn by a seed, chosen by name, written as text, read again."""

from __future__ import annotations

from itertools import chain, pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.storm.fault_daemon import ANY, Step
from tests.storm.plan import (
    COMMANDS,
    TAMPERING,
    Disturbance,
    Kind,
    Meeting,
    Operation,
    Recovery,
    Victim,
    drawn,
    parsed,
    written,
)
from tests.storm.plans import PLANS, named
from tests.storm.tampering import FAULTS
from tests.storm.test_storm import DAYS, KILLS, OPERATIONS

_arguments = st.from_regex(r"[\w-]*", fullmatch=True)
_points = (st.sampled_from(Victim), st.integers(1), st.sampled_from(Recovery))
_disturbances = (
    st.builds(Disturbance, *_points)
    | st.builds(Disturbance, st.just(Victim.MACHINE), *_points[1:], st.integers(0, 100))
    | st.builds(Disturbance, *_points, moment=st.sampled_from(["before", "after"]), step=st.sampled_from(Step))
)
_others = st.builds(Operation, st.sampled_from(Kind), _arguments)
_meetings = st.builds(Meeting, st.integers(1), _others, st.integers(0))
_operations = st.builds(Operation, st.sampled_from(Kind), _arguments, st.none() | _disturbances, st.none() | _meetings)
_NAMED = {name: named(name) for name in PLANS}


@given(st.lists(_operations) | st.lists(st.sampled_from([Operation(Kind.UP), Operation(Kind.DAY)])))
def test_a_plan_is_read_as_it_was_written(plan: list[Operation]) -> None:
    assert parsed(written(plan)) == plan


@pytest.mark.parametrize(
    "text",
    [
        "sideways",
        "up@3+",
        "up@3+sideways",
        "up+renew",
        "up/engine",
        "up/engine@x/again",
        "up/nobody@3/again",
        "renew up/",
        "up*x",
        "up*",
    ],
)
def test_what_is_no_operation_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no operation|is not a valid"):
        parsed(text)


@given(st.integers(0))
def test_a_nightly_storm_is_as_long_as_it_should_be(seed: int) -> None:
    plan = drawn(seed, OPERATIONS, KILLS, DAYS)

    assert plan == drawn(seed, OPERATIONS, KILLS, DAYS)
    assert len([row for row in plan if row != Operation(Kind.UP)]) <= 300 <= len(plan), "`up` after a `down`"
    assert sum(row.meeting is not None for row in plan) >= 5
    assert sum(row.disturbance is not None for row in plan) >= 200
    assert sum(row.kind is Kind.RENEW for row in plan) == 60, "simulated days"
    assert {row.disturbance.victim for row in plan if row.disturbance} == set(Victim)
    assert {row.kind for row in plan} | {*TAMPERING, Kind.SWEEP, Kind.DAY, Kind.FAULT} == set(Kind)
    assert sum(row.kind in TAMPERING for row in plan) >= 10
    assert not any(row.disturbance for row in plan if row.kind in TAMPERING)


@given(st.integers(0), st.integers(1, 60))
def test_without_a_stack_the_next_operation_is_up(seed: int, operations: int) -> None:
    plan = drawn(seed, operations, operations // 2, DAYS)

    assert plan[0].kind is Kind.UP
    assert all(after.kind is Kind.UP for before, after in pairwise(plan) if before.kind is Kind.DOWN)


def test_a_name_that_no_plan_has_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"NAME=yaer is no plan; accepted: kill-up-down, .* year"):
        named("yaer")


def test_the_named_kills_are_at_every_step_with_every_victim_and_recovery() -> None:
    kills = [row.disturbance for row in chain.from_iterable(_NAMED.values()) if row.disturbance]
    aimed = [kill for kill in kills if kill.step != ANY]

    assert len(kills) == 125
    assert len(aimed) == 50
    victims = (Victim.ENGINE, Victim.PLUGIN, Victim.DAEMON)
    points = [*product(["before"], Step), ("after", Step.REGISTER), ("after", Step.DELIVER)]
    assert {((kill.moment, kill.step), kill.victim) for kill in aimed} == {*product(points, victims)}
    assert {kill.recovery for kill in aimed} == {*Recovery}
    assert {(kill.victim, kill.moment) for kill in kills if kill.step == ANY} == {
        *product(victims, ("before", "after"))
    }


def test_every_two_commands_meet_in_a_named_plan() -> None:
    met = [row for row in chain.from_iterable(_NAMED.values()) if row.meeting]

    pairs = {(row.kind, row.meeting.other.kind) for row in met if row.meeting}
    assert pairs == {*product([parsed(command)[0].kind for command in COMMANDS], repeat=2)}


def test_the_named_faults_are_all_that_there_are_and_last_for_days() -> None:
    named = [row for row in chain.from_iterable(_NAMED.values()) if row.kind is Kind.FAULT]

    assert {row.argument for row in named} == {*FAULTS}
    assert len(named) == 6 * 2 + 6 * 6 + 2 * 2


def test_the_year_has_365_days_with_a_lost_week_an_outage_and_a_leak() -> None:
    days = [row for row in _NAMED["year"] if row.kind in (Kind.DAY, Kind.FAULT, Kind.RENEW)]

    assert len(days) == 365
    assert [number for number, row in enumerate(days, start=1) if row.argument == "lost"] == [*range(168, 175)]
    assert [number for number, row in enumerate(days, start=1) if row.argument == "entra"] == [261, 262]
    assert [row.argument for row in _NAMED["year"] if row.kind is Kind.REVOKE] == ["cloudProvider"]
