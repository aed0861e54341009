"""What a person does with the page of `idstack graph`: search, filter, open, go along the lines, choose a scheme."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from ops.doctor.checks.check import CheckResult, CheckStatus, Stage
from ops.graph import html
from ops.graph.build import build
from ops.graph.model import IdentityGraph
from ops.world.seen import HostedClusterCondition
from tests.browser.browser import Browser, Scheme
from tests.browser.conftest import Files
from tests.unit.ops.graph.test_forms import ATTACKS, named
from tests.unit.ops.graph_world import ENABLED, GraphWorld, broken_secret, one_cluster, with_results
from tools.steps import ROOT

SHOWN = "[...document.querySelectorAll('.cluster:not([hidden])')].map(e => e.dataset.cluster)"
OPEN = "[...document.querySelectorAll('.cluster.open')].map(e => e.dataset.cluster)"
FOCUSED = "document.activeElement.dataset.id ?? document.activeElement.id ?? ''"
HEAD = "document.activeElement.closest('.head')?.closest('.cluster').dataset.cluster"
FOUND = "document.querySelector('#found').textContent"
DETAILS = "document.querySelector('#details').hidden ? null : document.querySelector('#details h2').textContent"
BACKGROUND = "getComputedStyle(document.body).backgroundColor"
LIGHT, DARK = "rgb(246, 247, 249)", "rgb(16, 21, 28)"


@pytest.mark.parametrize("name", ["small", "one", "fifty"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_loads_without_a_message_and_without_a_request(
    browser: Browser, files: Files, name: str, scheme: Scheme
) -> None:
    browser.open(files[f"{name}.html"], scheme)
    opened = browser.evaluate("document.querySelectorAll('.drawing svg:not(.timeline)').length")

    assert browser.seen() == []
    assert opened == (0 if name == "fifty" else 1)


def test_clusters_are_searched_opened_and_filtered(browser: Browser, files: Files) -> None:
    browser.open(files["fifty.html"])

    browser.fill("#search", "cluster-3 INGRESS")
    ten = browser.evaluate(SHOWN)
    status = browser.evaluate(FOUND)
    browser.fill("#search", "encrypt failed")
    one = browser.evaluate(SHOWN)
    browser.fill("#search", "no such thing")
    none = browser.evaluate("document.querySelector('#nothing').checkVisibility()")
    browser.press("Escape")
    every = browser.evaluate(SHOWN)
    browser.click("[data-cluster=cluster-07] .head")
    opened = browser.evaluate(OPEN)
    drawings = browser.evaluate("document.querySelectorAll('.drawing svg:not(.timeline)').length")
    browser.click("[data-cluster=cluster-07] .head")
    closed = browser.evaluate(OPEN)
    browser.click("#problems")

    assert (opened, drawings, closed) == (["cluster-07"], 1, [])
    assert browser.evaluate(SHOWN) == ["cluster-08", "cluster-17", "cluster-31"]
    assert ten == [f"cluster-3{number}" for number in range(10)]
    assert status == "10 identities in 10 clusters"
    assert one == ["cluster-08"]
    assert none
    assert len(every) == 50


def test_a_cluster_and_an_identity_are_chosen(browser: Browser, files: Files) -> None:
    browser.open(files["fifty.html"])

    browser.select("#cluster", "cluster-31")
    browser.select("#identity", "ingress")
    lit = browser.evaluate("[...document.querySelectorAll('.node.match.identity .name')].map(e => e.textContent)")
    dimmed = browser.evaluate("getComputedStyle(document.querySelector('.node.pod:not(.match)')).opacity")

    assert browser.evaluate(SHOWN) == browser.evaluate(OPEN) == ["cluster-31"]
    assert lit == ["ingress"]
    assert float(dimmed) < 0.5
    assert browser.evaluate(FOUND) == "1 identity in 1 cluster"


def test_the_keyboard_reaches_everything(browser: Browser, files: Files) -> None:
    browser.open(files["fifty.html"])

    browser.press("/")
    search = browser.evaluate(FOCUSED)
    browser.press("Tab", "Tab", "Tab", "Tab", "Tab")
    details = browser.evaluate("document.activeElement.tagName")
    browser.press("Tab", "Tab", "ArrowRight", "ArrowDown")
    head = browser.evaluate(HEAD)
    browser.press("Enter", "ArrowDown")
    first = browser.evaluate(FOCUSED)

    assert (search, details, head) == ("search", "SUMMARY", "cluster-02")
    assert first == "hostedCluster/cluster-02"
    assert browser.evaluate(OPEN) == ["cluster-02"]


def test_arrow_keys_go_along_the_lines(browser: Browser, files: Files) -> None:
    browser.open(files["one.html"])
    browser.evaluate("document.querySelector('.node.hostedCluster').focus()")

    kinds = []
    for key in ("ArrowRight",) * 6 + ("ArrowLeft",) * 5:
        browser.press(key)
        kinds.append(browser.evaluate("document.activeElement.classList[1]"))
    row = browser.evaluate(FOCUSED)
    browser.press("ArrowDown", "ArrowDown", "ArrowUp")
    below = browser.evaluate(FOCUSED)

    assert kinds[:6] == ["identity", "secret", "secretProviderClass", "pod", "role", "scope"]
    assert kinds[6:] == ["role", "pod", "secretProviderClass", "secret", "identity"]
    assert row.startswith("identity/hc1/")
    assert below.startswith("identity/hc1/")
    assert row != below


def test_enter_shows_details_and_escape_goes_back_step_by_step(browser: Browser, files: Files) -> None:
    browser.open(files["one.html"])
    browser.evaluate("document.querySelector('.node.secret').focus()")

    browser.press("Enter")
    name = browser.evaluate(DETAILS)
    facts = browser.evaluate("document.querySelector('#details dl').textContent")
    lit = browser.evaluate("[...document.querySelectorAll('.node.lit')].map(e => e.classList[1])")
    browser.press("Escape")
    back = browser.evaluate(FOCUSED)
    closed = browser.evaluate(DETAILS)
    browser.press("Escape")

    assert name.endswith("-hc1-json")
    assert "thumbprint9F3A6C1B" in facts
    assert set(lit) >= {"hostedCluster", "identity", "secret", "secretProviderClass", "pod", "role", "scope", "vault"}
    assert back.startswith("secret/hc1/")
    assert closed is None
    assert (browser.evaluate(OPEN), browser.evaluate(HEAD)) == ([], "hc1")


def test_details_lead_to_the_neighbours(browser: Browser, files: Files) -> None:
    browser.open(files["one.html"])

    browser.click(".node.secretProviderClass")
    browser.click("#details h3:last-of-type + ul button")

    assert browser.evaluate("document.querySelector('#details .kind').textContent") == "pod"
    assert browser.evaluate("document.activeElement.classList.contains('pod')")


def test_a_fix_is_in_the_details_and_is_copied(browser: Browser, tmp_path: Path) -> None:
    browser.open(_written(tmp_path, broken_secret()))
    browser.evaluate(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (text) => { window.copied = text; }}})"
    )

    browser.click(".node.secret")
    shown = browser.evaluate("document.querySelector('#details dd').textContent")
    browser.click("#details .copy")

    assert shown == "if it was deleted, az keyvault secret recover --name xCopy, then try again"
    assert browser.evaluate("window.copied") == "az keyvault secret recover --name x"
    assert browser.evaluate("document.querySelector('#details .copy').textContent") == "Copied"


@pytest.mark.parametrize("width", [390, 800, 1440])
def test_a_card_that_is_clicked_stays_in_sight(browser: Browser, tmp_path: Path, width: int) -> None:
    browser.open(_page(tmp_path, conditions=()), width=width, height=900)

    browser.click(".node.role.error .name")
    card, panel = browser.evaluate(
        "['.node.selected', '#details'].map((e) => document.querySelector(e).getBoundingClientRect().toJSON())"
    )

    assert card["left"] >= 0
    assert card["top"] >= 0
    assert card["right"] <= panel["left"] or card["bottom"] <= panel["top"]


def test_a_broken_cluster_shows_its_fix_and_which_identities_are_broken(browser: Browser, tmp_path: Path) -> None:
    browser.open(_page(tmp_path))
    expiry, words = browser.evaluate(
        "['.timeline > .expiry', '.timeline > .detail'].map((e) => getComputedStyle(document.querySelector(e)).fill)"
    )

    browser.click(".node.hostedCluster")

    assert expiry == words, "the legend of the dates is not red"

    assert browser.evaluate("document.querySelector('#details dd code').textContent") == "idstack try"
    assert browser.evaluate("[...document.querySelectorAll('#details li .error')].length") == 1
    assert ": broken" in browser.evaluate("document.querySelector('#details li .error').textContent")


def test_on_a_phone_the_problems_are_a_list_with_cause_and_fix(browser: Browser, tmp_path: Path) -> None:
    browser.open(_page(tmp_path), width=390)

    browser.click("#problems")

    assert browser.evaluate(
        "[...document.querySelectorAll('#listed > li')].map((e) => e.innerText.replaceAll('\\n\\n', '|'))"
    ) == [
        "hc1|broken: Degraded is True: it is|fix: .venv/bin/idstack doctor --stack prod --cluster hc1Copy",
        f"hc1 {ENABLED[0].field}|broken: it is gone|fix: idstack tryCopy",
    ]
    assert not browser.evaluate("document.querySelector('#clusters').checkVisibility()")
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390


def _page(folder: Path, conditions: tuple[str, ...] = ("Degraded",)) -> Path:
    """A hosted cluster with these conditions, whose first identity has lost its role."""
    world = one_cluster()
    world.conditions += [HostedClusterCondition("hc1", type_, "True", "", "it is") for type_ in conditions]
    sources = world.sources()
    place: Any = {"cluster": "hc1", "identity": ENABLED[0].field, "stage": Stage.PROOF_CALL, "check": "role"}
    lost = CheckResult(**place, status=CheckStatus.BROKEN, evidence="it is gone", fix="`idstack try`")
    return _written(folder, build(with_results(sources, *sources.results, lost)))


def _written(folder: Path, graph: IdentityGraph) -> Path:
    """The page of a graph."""
    file = folder / "page.html"
    file.write_text(html.document(graph), encoding="utf-8")
    return file


@pytest.mark.parametrize(("scheme", "canvas"), [("light", [246, 247, 249]), ("dark", [16, 21, 28])])
def test_the_drawing_is_saved_as_a_picture_in_the_colours_that_are_shown(
    browser: Browser, files: Files, scheme: Scheme, canvas: list[int]
) -> None:
    browser.open(files["small.html"], scheme)
    browser.evaluate(
        """HTMLAnchorElement.prototype.click = function () { window.saved(this.download); };
        HTMLCanvasElement.prototype.own = HTMLCanvasElement.prototype.toBlob;
        HTMLCanvasElement.prototype.toBlob = function (done) { window.canvas = this; this.own(done); };
        window.done = new Promise((done) => { window.saved = done; }); null"""
    )

    browser.click(".png")
    name = browser.evaluate("window.done")
    colours = browser.evaluate(
        """(() => { const {width, height} = window.canvas;
        const data = window.canvas.getContext("2d").getImageData(0, 0, width, height).data;
        const found = new Set();
        for (let at = 0; at < data.length; at += 4) { found.add(data.slice(at, at + 3).join()); }
        return [width, height, [...data.slice(0, 3)], found.size]; })()"""
    )
    drawn = browser.evaluate(
        "(() => { const {width, height} = document.querySelector('.drawing svg').viewBox.baseVal;"
        "return [width, height]; })()"
    )

    assert name == "prod-hc1.png"
    assert colours[:2] == [int(2 * side) for side in drawn]
    assert colours[2] == canvas
    assert colours[3] > 20, "cards, lines, texts and marks are in it"
    assert browser.seen() == []


def test_an_empty_stack_says_so(browser: Browser, tmp_path: Path) -> None:
    browser.open(_written(tmp_path, GraphWorld().graph()))

    assert browser.evaluate("document.querySelector('main').innerText").startswith(
        "The stack prod has no hosted cluster."
    )
    assert browser.seen() == []


def test_the_page_follows_the_systems_scheme_until_one_is_chosen(browser: Browser, files: Files) -> None:
    browser.open(files["one.html"], "dark")
    found = [browser.evaluate(BACKGROUND)]

    browser.prefer("light")
    found.append(browser.evaluate(BACKGROUND))
    browser.click("#theme")
    found.append(browser.evaluate(BACKGROUND))
    browser.prefer("dark")
    browser.click("#theme")
    found.append(browser.evaluate(BACKGROUND))

    assert found == [DARK, LIGHT, DARK, LIGHT]
    assert (
        browser.evaluate("document.querySelector('#theme').getAttribute('aria-label')") == "Switch to the dark scheme"
    )


@pytest.mark.parametrize("name", ["one", "fifty"])
def test_whatever_can_be_focused_has_a_name(browser: Browser, files: Files, name: str) -> None:
    browser.open(files[f"{name}.html"])

    nameless = browser.evaluate(
        """[...document.querySelectorAll("button, input, select, a, [role=button]")].filter((e) => !(
            e.getAttribute("aria-label") || e.labels?.[0]?.textContent.trim() || e.textContent.trim()
        )).map((e) => e.outerHTML.slice(0, 80))"""
    )

    assert nameless == []


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_name_runs_no_script(browser: Browser, tmp_path: Path, attack: str) -> None:
    browser.open(_written(tmp_path, named(attack)))
    browser.click(".node.secret")

    assert browser.seen() == []
    assert browser.evaluate(DETAILS) == f"s{attack}"


def test_the_script_is_clean(folder: Path) -> None:
    command = ["npx", "eslint", "--max-warnings=0", "--stdin", "--stdin-filename", "page.js"]
    script = (ROOT / "ops/graph/page/page.js").read_text(encoding="utf-8")

    done = subprocess.run(command, cwd=folder, input=script, capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (0, "")
