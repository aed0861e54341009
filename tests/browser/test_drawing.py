"""What is to be seen: no card over another, text inside of its card, nothing cut off, contrast in both schemes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.browser import Browser, Scheme
from tests.browser.conftest import Files
from tests.unit.ops.graph.test_forms import contrast

# The expressions in the files beside.
CARDS, TEXTS, CUT_OFF = (
    Path(__file__).with_name(f"{name}.js").read_text(encoding="utf-8") for name in ("cards", "texts", "cut_off")
)


def overlaps(a: list[float], b: list[float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def is_inside(inner: list[float], outer: list[float]) -> bool:
    return inner[0] >= outer[0] and inner[1] >= outer[1] and inner[2] <= outer[2] and inner[3] <= outer[3]


def problems(cards: list[dict[str, Any]]) -> list[str]:
    found = []
    for number, card in enumerate(cards):
        for other in cards[number + 1 :]:
            # A scope is a chip in the card of its role.
            is_chip = other["id"].startswith("scope/") and is_inside(other["card"], card["card"])
            if overlaps(card["card"], other["card"]) and not is_chip:
                found.append(f"{card['id']} overlaps {other['id']}")
        for text, *sides in card["texts"]:
            if not is_inside(sides, card["card"]):
                found.append(f"{text!r} leaves {card['id']}")
            found += [f"{text!r} is under the mark of {card['id']}" for mark in card["mark"] if overlaps(sides, mark)]
    return found


def show(browser: Browser, files: Files, file: str, scheme: Scheme = "light") -> None:
    """Open a file; of the page with fifty clusters one is opened."""
    browser.open(files[file], scheme)
    if file == "fifty.html":
        browser.click("[data-cluster=cluster-31] .head")


@pytest.mark.parametrize("file", ["small.html", "one.html", "fifty.html", "small.svg", "one.svg", "fifty.svg"])
def test_cards_are_apart_and_their_text_is_inside(browser: Browser, files: Files, file: str) -> None:
    show(browser, files, file)
    cards = browser.evaluate(CARDS)

    assert len(cards) >= 14
    assert problems(cards) == []


def test_a_card_over_another_and_text_outside_would_be_found() -> None:
    one = {"id": "a", "card": [0, 0, 10, 10], "texts": [["t", 1, 1, 11, 5]], "mark": []}
    other = {"id": "b", "card": [9, 9, 20, 20], "texts": [["u", 10, 10, 15, 15]], "mark": [[14, 14, 16, 16]]}

    assert problems([one, other]) == ["a overlaps b", "'t' leaves a", "'u' is under the mark of b"]


@pytest.mark.parametrize("file", ["one.html", "fifty.html"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_contrast_enough(browser: Browser, files: Files, file: str, scheme: Scheme) -> None:
    show(browser, files, file, scheme)
    browser.click(".node.secret")
    browser.evaluate("document.querySelector('.traced').classList.remove('traced')")
    texts = browser.evaluate(TEXTS)

    assert len(texts) > 100
    assert not [(text, front, back) for text, front, back in texts if contrast(front, back) < 4.5]


@pytest.mark.parametrize("file", ["one.html", "fifty.html"])
@pytest.mark.parametrize("width", [700, 1024, 1280, 1440, 1920])
def test_no_text_is_cut_off_and_the_page_is_as_wide_as_the_window(
    browser: Browser, files: Files, file: str, width: int
) -> None:
    browser.open(files[file], width=width)

    assert browser.evaluate(CUT_OFF) == []
    assert browser.evaluate("document.documentElement.scrollWidth") <= width


def test_fifty_clusters_are_in_a_grid(browser: Browser, files: Files) -> None:
    browser.open(files["fifty.html"])
    places = browser.evaluate(
        "[...document.querySelectorAll('.cluster')].map((e) => [e.offsetLeft, e.offsetWidth, e.offsetHeight])"
    )

    assert len(places) == 50
    assert len({left for left, _, _ in places}) == 5
    assert len({(width, height) for _, width, height in places}) == 1


def test_a_drawing_fits_1440_pixels_and_can_be_read_in_less(browser: Browser, files: Files) -> None:
    browser.open(files["one.html"], width=1440)
    scrolled = browser.evaluate(
        "(() => { const e = document.querySelector('.drawing');return e.scrollWidth - e.clientWidth; })()"
    )
    browser.open(files["one.html"], width=1280)
    size = browser.evaluate(
        "(() => { const e = document.querySelector('.node .name');"
        " return parseFloat(getComputedStyle(e).fontSize) * e.getCTM().a; })()"
    )

    assert scrolled == 0
    assert size >= 10
