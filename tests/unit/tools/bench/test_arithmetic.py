"""What the benchmark computes from its measurements."""

from __future__ import annotations

import math

import pytest

from tools.bench.arithmetic import critical_path, growth_exponent, most_at_once, of_the_middle_round


@pytest.mark.parametrize("exponent", [0, 1, 1.5, 2])
def test_a_power_law_has_its_own_exponent(exponent: float) -> None:
    sizes = [1, 5, 10, 20]
    assert growth_exponent(sizes, [3.0 * size**exponent for size in sizes]) == pytest.approx(exponent, abs=1e-12)


def test_a_fixed_cost_makes_growth_look_slower() -> None:
    # ln(110/20) / ln(10/1)
    assert growth_exponent([1, 10], [10 + 10, 10 + 100]) == pytest.approx(math.log(5.5, 10))


def test_a_machine_that_was_fast_for_one_side_alone_decides_nothing() -> None:
    assert of_the_middle_round([19, 20, 20, 19, 10], [17, 10, 17, 16, 16]) == (20, 17)


def test_the_heaviest_chain_is_the_critical_path() -> None:
    needs = {"application": [], "principal": ["application"], "registration": ["application"], "role": ["principal"]}
    needs |= {"gate": ["principal", "registration"], "vault": [], "secret": ["vault", "gate"]}
    weights = {"application": 5, "principal": 5, "registration": 8, "role": 3, "gate": 10, "vault": 3, "secret": 3}
    assert critical_path(needs, weights) == (26, ["application", "registration", "gate", "secret"])


def test_what_weighs_nothing_still_orders() -> None:
    needs = {"component": ["vault"], "secret": ["component"], "vault": []}
    assert critical_path(needs, {"vault": 3, "secret": 2}) == (5, ["vault", "component", "secret"])


def test_spans_that_touch_do_not_overlap() -> None:
    assert most_at_once([(0, 2), (1, 3), (2, 4), (5, 6)]) == 2
    assert most_at_once([(0, 1), (1, 2)]) == 1
    assert most_at_once([]) == 0
