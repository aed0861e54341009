"""Shapes and escapes that the drawings have in common."""

from __future__ import annotations

import re
from typing import Final
from xml.sax.saxutils import escape

from ops.graph.model import Health

# Each health has a mark of its own form, in a circle of radius 8 around the origin.
_MARKS: Final = {
    Health.OK: "M-3.6 .2 -1.1 2.8 3.6 -2.6",
    Health.WARNING: "M0 -4.2V1M0 3.6V3.7",
    Health.ERROR: "M-2.9 -2.9 2.9 2.9M2.9 -2.9 -2.9 2.9",
    Health.UNKNOWN: "M-2.4 -1.6C-2.4 -4.6 2.4 -4.6 2.4 -1.7 2.4 0 0 0 0 1.6M0 4V4.1",
}

# Everything but Char of XML 1.0, and the controls that HTML reports as errors.
_FORBIDDEN: Final = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd\U00010000-\U0010ffff]")


def mark(health: Health, x: float, y: float) -> str:
    """The mark of a health with its middle at a point."""
    return (
        f'<g class="mark {health}" transform="translate({number(x)} {number(y)})"><circle r="8"/>'
        f'<path d="{_MARKS[health]}"/></g>'
    )


def icon(health: Health) -> str:
    """The mark as an element of its own."""
    return (
        f'<svg class="icon" viewBox="-9 -9 18 18" width="18" height="18" aria-hidden="true">{mark(health, 0, 0)}</svg>'
    )


def number(value: float) -> str:
    """A length, to a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0")


def escaped(text: str) -> str:
    """Text for an element or an attribute, in HTML and in XML, which has no control characters."""
    return escape(_FORBIDDEN.sub("\ufffd", text), {'"': "&quot;", "'": "&#39;"})
