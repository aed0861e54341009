"""The order of a fleet's stacks, what stops it, and how it goes on."""

from __future__ import annotations

import os
import signal
from datetime import timedelta

import pytest

from tests.unit.ops.fleet.rollouts import START, FakeStacks, Watched

ORDER = ["shared-prod", "hc3-prod", "hc1-prod", "hc2-prod", "hc4-prod", "hc5-prod"]


def test_the_shared_stack_comes_first_then_the_canaries_then_the_waves() -> None:
    watched = Watched(FakeStacks(), parallel=1)
    assert watched.run() == dict.fromkeys(ORDER, "up")
    assert list(watched.stacks.runs) == ORDER


@pytest.mark.parametrize(("parallel", "most"), [(1, 1), (3, 3), (8, 4)])
def test_of_a_wave_no_more_stacks_run_at_once_than_asked_for(parallel: int, most: int) -> None:
    watched = Watched(FakeStacks(), parallel=parallel, size=None)
    watched.run()
    assert max(watched.at_once) == most


def test_a_wave_begins_after_the_last_stack_of_the_one_before() -> None:
    watched = Watched(FakeStacks(looks={"hc1-prod": 50}))
    watched.run()
    ended = [name for name, _, _ in watched.stacks.outcomes]
    assert ended.index("hc1-prod") < ended.index("hc4-prod")


@pytest.mark.parametrize("first", ["shared-prod", "hc3-prod"])
def test_a_canary_that_fails_keeps_every_wave_from_beginning(first: str) -> None:
    watched = Watched(FakeStacks(codes={first: 1}))
    behind = ORDER[ORDER.index(first) + 1 :]
    outcomes = watched.run()
    assert outcomes[first] == "failed"
    assert {outcomes[name] for name in behind} == {"left out"}
    assert not watched.stacks.runs.keys() & set(behind)
    assert (first, False, f"newest of {first}") in watched.stacks.outcomes


def test_what_runs_beside_a_failure_ends_and_is_not_interrupted() -> None:
    watched = Watched(FakeStacks(codes={"hc1-prod": 1}, looks={"hc2-prod": 30}), parallel=2, size=None)
    outcomes = watched.run()
    assert (outcomes["hc1-prod"], outcomes["hc2-prod"]) == ("failed", "up")
    assert (outcomes["hc4-prod"], outcomes["hc5-prod"]) == ("left out", "left out")
    assert watched.stacks.runs["hc2-prod"].interrupts == 0
    assert [progress.tail for progress in watched.rollout.failed] == ["end of hc1-prod"]


def test_a_state_that_cannot_be_read_is_a_failure_and_what_runs_beside_it_ends() -> None:
    stacks = FakeStacks(unreadable=frozenset({"hc1-prod"}), looks={"hc2-prod": 30})
    watched = Watched(stacks, parallel=2, size=None)
    outcomes = watched.run()
    assert (outcomes["hc1-prod"], outcomes["hc2-prod"]) == ("failed", "up")
    assert [progress.tail for progress in watched.rollout.failed] == [
        "it came up, but its state cannot be read: the backend does not answer"
    ]


def test_what_is_up_and_unchanged_is_left_alone() -> None:
    watched = Watched(FakeStacks(unchanged=frozenset({"shared-prod", "hc3-prod", "hc1-prod"})))
    outcomes = watched.run()
    assert list(watched.stacks.runs) == ["hc2-prod", "hc4-prod", "hc5-prod"]
    assert outcomes == dict.fromkeys(ORDER, "up") | dict.fromkeys(ORDER[:3], "unchanged")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_passed_on_once_and_every_end_awaited(number: signal.Signals) -> None:
    watched = Watched(FakeStacks(looks=dict.fromkeys(("hc1-prod", "hc2-prod"), 10)))

    def twice() -> None:
        if "hc1-prod" in watched.stacks.runs and watched.stacks.runs["hc1-prod"].looks < 8:
            os.kill(os.getpid(), number)

    watched.when_waiting = twice
    before = signal.getsignal(number)
    outcomes = watched.run()
    assert watched.rollout.interrupted_by == number.name
    assert [watched.stacks.runs[name].interrupts for name in ("hc1-prod", "hc2-prod")] == [1, 1]
    assert {outcomes["hc1-prod"], outcomes["hc2-prod"]} == {"interrupted"}
    assert {outcomes["hc4-prod"], outcomes["hc5-prod"]} == {"left out"}
    assert signal.getsignal(number) is before


def test_the_pause_counts_from_the_end_of_the_wave_before() -> None:
    watched = Watched(FakeStacks(), pause="30m")
    watched.run()
    assert timedelta(hours=1) <= watched.waited < timedelta(hours=1, seconds=5), "two waves after the canaries"
    assert any(note.startswith("wave 1 begins at 08:30:") for note in watched.notes)


def test_a_pause_that_an_earlier_command_has_waited_is_not_waited_again() -> None:
    done = frozenset({"shared-prod", "hc3-prod"})
    ended = {name: START - timedelta(minutes=20) for name in done}
    watched = Watched(FakeStacks(unchanged=done, ended_at=ended), pause="30m", size=None)
    watched.run()
    assert timedelta(minutes=10) <= watched.waited < timedelta(minutes=10, seconds=5)


def test_a_fleet_that_is_up_waits_for_nothing() -> None:
    watched = Watched(FakeStacks(unchanged=frozenset(ORDER), ended_at=dict.fromkeys(ORDER, START)), pause="30m")
    assert watched.run() == dict.fromkeys(ORDER, "unchanged")
    assert watched.waited == timedelta()


def test_a_signal_during_a_pause_ends_it() -> None:
    watched = Watched(FakeStacks(), pause="30m")

    def interrupt() -> None:
        if watched.notes[-1].startswith("wave 1"):
            os.kill(os.getpid(), signal.SIGINT)

    watched.when_waiting = interrupt
    outcomes = watched.run()
    assert (outcomes["hc3-prod"], outcomes["hc1-prod"]) == ("up", "left out")
    assert watched.waited < timedelta(minutes=1)
