"""A figure's ratio, its limit, and how both are shown."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from tools.bench.figures import Figure, Limit, table


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
