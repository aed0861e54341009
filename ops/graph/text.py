"""Measures text and fits it into boxes, because the layout runs without a browser."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

ELLIPSIS: Final = "…"
# Advance widths of DejaVu Sans, for the characters from blank to `~`, in thousandths of the font size. It is the widest
# of the fonts that browsers use for `system-ui`.
_WIDTHS: Final = (
    *(318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337),
    *(636, 636, 636, 636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531),
    *(1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863, 748, 787),
    *(603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500),
    *(500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612),
    *(635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838),
)
_FIRST: Final = ord(" ")
# The width of every other character; those of East Asia are square.
_OTHER: Final = 1000


def width(text: str, size: float) -> float:
    """Width of a line in pixels, at most."""
    return sum(map(_advance, text)) * size / 1000


def fitted(text: str, size: float, room: float) -> str:
    """The text, its middle left out if it is too wide: names differ at their ends as often as at their beginnings."""
    if width(text, size) <= room:
        return text
    for kept in range(len(text) - 1, 0, -1):
        shortened = text[: (kept + 1) // 2] + ELLIPSIS + text[len(text) - kept // 2 :]
        if width(shortened, size) <= room:
            return shortened
    return ELLIPSIS


def cut(text: str, size: float, room: float) -> str:
    """The text, its end left out if it is too wide: for words, not names."""
    if width(text, size) <= room:
        return text
    kept = next((kept for kept in range(len(text), 0, -1) if width(text[:kept] + ELLIPSIS, size) <= room), 0)
    return text[:kept].rstrip() + ELLIPSIS


def wrapped(text: str, size: float, room: float, lines: int) -> list[str]:
    """The text in at most so many lines, broken at blanks; the last is shortened if necessary."""
    broken: list[str] = []
    words = text.split()
    while words and len(broken) < lines - 1:
        line = [words.pop(0)]
        while words and width(" ".join([*line, words[0]]), size) <= room:
            line.append(words.pop(0))
        broken.append(fitted(" ".join(line), size, room))
    return [*broken, fitted(" ".join(words), size, room)] if words else broken or [""]


def shared_words(names: Iterable[str]) -> str:
    """The prefix of two or more words that most names share; empty if no two names share one."""
    counted = Counter(
        " ".join(words[:length]) for words in map(str.split, set(names)) for length in range(2, len(words))
    )
    words, number = max(counted.items(), key=lambda item: (item[1], len(item[0])), default=("", 0))
    return words if number > 1 else ""


def _advance(character: str) -> int:
    index = ord(character) - _FIRST
    return _WIDTHS[index] if 0 <= index < len(_WIDTHS) else _OTHER
