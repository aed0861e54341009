"""Each alert has tests of its own, and promtool refuses what a Prometheus server would refuse."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.architecture.source import ROOT
from tools import promtool

RULES: Final = (ROOT / "examples/monitoring/rules.yaml").read_text(encoding="utf-8")
CASES: Final[list[dict[str, Any]]] = [
    case
    for test in yaml.safe_load((ROOT / "examples/monitoring/rules_test.yaml").read_text(encoding="utf-8"))["tests"]
    for case in test["alert_rule_test"]
]


@pytest.mark.parametrize(
    "alert", [rule["alert"] for group in yaml.safe_load(RULES)["groups"] for rule in group["rules"]]
)
def test_an_alert_is_tested_to_fire_and_not_to_fire(alert: str) -> None:
    fires = {bool(case.get("exp_alerts")) for case in CASES if case["alertname"] == alert}

    assert fires == {True, False}


def test_every_query_of_the_dashboard_is_checked() -> None:
    dashboard = json.loads((ROOT / "examples/monitoring/dashboard.json").read_text(encoding="utf-8"))

    found = list(promtool.dashboard_expressions(dashboard))

    assert len(found) == len(dict(found)) == sum(len(panel["targets"]) for panel in dashboard["panels"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of rules, tests and dashboard, to be broken."""
    return Path(shutil.copytree(ROOT / "examples/monitoring", tmp_path / "monitoring"))


# promtool is built for it, once, which takes minutes; `make lint` runs it on the files as they are.
@pytest.mark.nightly
def test_promtool_accepts_rules_tests_and_dashboard(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert promtool.main(folder) == 0, capsys.readouterr().err


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("file", "found", "broken", "problem"),
    [
        ("rules.yaml", "idstack_ready == 0", "idstack_ready == 0)", "unexpected right parenthesis"),
        ("rules.yaml", "[30m]", "", "expected type range vector"),
        ("rules.yaml", "for: 15m", "for: a while", "not a valid duration string"),
        ("rules.yaml", "$value | humanizeDuration", "$value | inWords", 'function "inWords" not defined'),
        ("rules.yaml", "severity: warning", "severity: page", "exp:"),
        ("rules.yaml", "< 14 * 86400", "> 14 * 86400", "exp:"),
        ("dashboard.json", "sum(idstack_ready", "sum(idstack_ready by", "parse error"),
    ],
)
def test_promtool_refuses(
    folder: Path, capsys: pytest.CaptureFixture[str], file: str, found: str, broken: str, problem: str
) -> None:
    text = (folder / file).read_text(encoding="utf-8")
    assert found in text
    (folder / file).write_text(text.replace(found, broken), encoding="utf-8")

    assert promtool.main(folder) == 1
    assert problem in capsys.readouterr().err
