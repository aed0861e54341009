"""Contrast of the graph's colours in both schemes, as WCAG 2.2 level AA demands it (1.4.3 and 1.4.11)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from ops.graph import svg

STYLE: Final = (Path(svg.__file__).parent / "page/graph.css").read_text(encoding="utf-8")
COLOURS: Final = re.findall(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);", STYLE)
LIGHT, DARK = ({name: pair[scheme] for name, *pair in COLOURS} for scheme in (0, 1))
# Text needs 4.5; marks and borders that say something need 3.
TEXT: Final = [
    *((front, back) for front in ("text", "muted") for back in ("canvas", "surface", "frame", "accent-soft")),
    *(("accent", back) for back in ("surface", "accent-soft")),
    ("warning", "canvas"),
]
SHAPES: Final = [
    *((health, back) for health in ("ok", "warning", "error", "unknown") for back in ("canvas", "surface", "on-mark")),
    ("accent", "canvas"),
]


def luminance(colour: str) -> float:
    """Relative luminance, https://www.w3.org/TR/WCAG22/#dfn-relative-luminance."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4 for channel in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(front: str, back: str) -> float:
    """Contrast ratio, https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio."""
    bright, dim = sorted((luminance(front), luminance(back)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("front", "back"), TEXT)
def test_text_has_contrast_enough(scheme: dict[str, str], front: str, back: str) -> None:
    assert contrast(scheme[front], scheme[back]) >= 4.5


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("front", "back"), SHAPES)
def test_a_mark_has_contrast_enough(scheme: dict[str, str], front: str, back: str) -> None:
    assert contrast(scheme[front], scheme[back]) >= 3


def test_black_on_white_has_the_greatest_contrast() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
