"""What a refused input shows of itself: numbers as they are, of everything that may hold a secret its kind alone."""

from __future__ import annotations

from typing import Any

import pytest

from provider.resource import Inputs


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, "nothing"),
        (True, "True"),
        (0, "0"),
        (0.5, "0.5"),
        ("MARKER", "a string"),
        (["MARKER"], "a list"),
        ({"key": "MARKER"}, "an object"),
    ],
)
def test_a_refusal_shows_no_value_that_may_be_secret(value: Any, found: str) -> None:
    inputs = Inputs({"name": value})
    inputs.refuse("name", "something else")
    [failure] = inputs.failures
    assert failure.reason.startswith(f"found {found}; accepted: ")
