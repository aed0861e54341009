"""The problems of what the look-ups found, in the words of `problems.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from identity import yaml_text
from identity.settings import Problem
from identity.settings.schema.problems import Place


def problem(rule: str, place: Place, /, **words: object) -> Problem:
    """The problem of a rule at a place: its row with these words in the braces."""
    return Problem(place=place, rule=rule, **{part: text.format_map(words) for part, text in _rows()[rule].items()})


@cache
def _rows() -> Mapping[str, Mapping[str, str]]:
    rows: Mapping[str, Mapping[str, str]] = yaml_text.load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
    return rows
