"""What the benchmark computes from its measurements, and how a figure is shown."""

from __future__ import annotations

import io
import json
import math

import pytest
from rich.console import Console

from tools.bench.figures import Figure, Limit, critical_path, growth_exponent, most_at_once, of_the_middle_round, table


def figure(ours: float, peer: float, limit: Limit | None) -> Figure:
    return Figure(name="tokens", unit="/s", ours=ours, peer=peer, peer_name="the bare client", limit=limit)


@pytest.mark.parametrize(
    ("ours", "limit", "holds"),
    [
        (110, Limit("at most", 1.1), True),
        (111, Limit("at most", 1.1), False),
        (90, Limit("at least", 0.9), True),
        (89, Limit("at least", 0.9), False),
        (1000, None, True),
    ],
)
def test_a_limit_holds_up_to_its_value(ours: float, limit: Limit | None, holds: bool) -> None:
    assert figure(ours, 100, limit).holds is holds
    assert limit is None or not figure(5, 0, limit).holds, "what could not be measured keeps none"


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [(0.94375, "0.944"), (1, "1"), (0.0021, "0.0021"), (6.4657, "6.47"), (23456.7, "23,457"), (0, "0")],
)
def test_numbers_are_shown_with_three_digits(ratio: float, shown: str) -> None:
    assert shown in _printed(figure(ratio, 1, None)).split()


def test_a_missed_limit_is_marked_in_the_table() -> None:
    assert "at most 1.1" in _printed(figure(2, 1, Limit("at most", 1.1)))
    assert "MISSED" in _printed(figure(2, 1, Limit("at most", 1.1)))
    assert "MISSED" not in _printed(figure(1, 1, Limit("at most", 1.1)))
    document = json.loads(json.dumps(figure(1, 3, Limit("at least", 0.9)).to_json()))
    assert (document["ratio"], document["holds"]) == (1 / 3, False)
    assert document["limit"] == {"direction": "at least", "value": 0.9}


def _printed(shown: Figure) -> str:
    output = io.StringIO()
    Console(file=output, width=120).print(table([shown]))
    return output.getvalue()


@pytest.mark.parametrize("exponent", [0, 1, 1.5, 2])
def test_a_power_law_has_its_own_exponent(exponent: float) -> None:
    sizes = [1, 5, 10, 20]
    assert growth_exponent(sizes, [3.0 * size**exponent for size in sizes]) == pytest.approx(exponent, abs=1e-12)
    # A fixed cost makes growth look slower: ln(110/20) / ln(10/1).
    assert growth_exponent([1, 10], [10 + 10, 10 + 100]) == pytest.approx(math.log(5.5, 10))


def test_a_machine_that_was_fast_for_one_side_alone_decides_nothing() -> None:
    assert of_the_middle_round([19, 20, 20, 19, 10], [17, 10, 17, 16, 16]) == (20, 17)


def test_the_heaviest_chain_is_the_critical_path() -> None:
    needs = {"application": [], "principal": ["application"], "registration": ["application"], "role": ["principal"]}
    needs |= {"gate": ["principal", "registration"], "vault": [], "secret": ["vault", "gate"]}
    weights = {"application": 5, "principal": 5, "registration": 8, "role": 3, "gate": 10, "vault": 3, "secret": 3}
    assert critical_path(needs, weights) == (26, ["application", "registration", "gate", "secret"])
    needs = {"component": ["vault"], "secret": ["component"], "vault": []}
    path = ["vault", "component", "secret"]
    assert critical_path(needs, {"vault": 3, "secret": 2}) == (5, path), "what weighs nothing still orders"


def test_spans_that_touch_do_not_overlap() -> None:
    assert most_at_once([(0, 2), (1, 3), (2, 4), (5, 6)]) == 2
    assert most_at_once([(0, 1), (1, 2)]) == 1
    assert most_at_once([]) == 0
