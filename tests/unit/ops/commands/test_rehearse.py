"""`idstack rehearse` from the outside: what it is told, what it prints where, its exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ops.commands import rehearse as command
from ops.rehearsal.report import Rehearsal
from ops.rehearsal.run import PlannedRehearsal
from ops.stack.environment import ROOT
from tests.unit.ops.conftest import Idstack
from tests.unit.ops.rehearsal.test_report import ROLE, rehearsal


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[PlannedRehearsal]:
    """What was to be rehearsed; each rehearsal finds a replaced role."""
    found: list[PlannedRehearsal] = []

    def run(plan: PlannedRehearsal, step: Callable[[str], None]) -> Rehearsal:
        found.append(plan)
        step("local cloud")
        return replace(rehearsal(ROLE), stack=plan.stack, seed=plan.seed, forbidden=plan.forbidden)

    monkeypatch.setattr(command, "run", run)
    return found


def test_a_change_without_harm_is_code_0(idstack: Idstack, plans: list[PlannedRehearsal]) -> None:
    printed = idstack("rehearse", "--stack", "prod")

    assert printed.code == 0
    assert "no findings" in printed.output
    assert "local cloud" in printed.error
    idstack("rehearse", "--stack", "dev", "--base", "v1", "--head", "v2", "--seed", "9")
    assert plans == [
        PlannedRehearsal(ROOT, "prod", "origin/main", None, 1, {}),
        PlannedRehearsal(ROOT, "dev", "v1", "v2", 9, {}),
    ]


def test_a_forbidden_operation_is_code_1_and_an_unknown_one_refused(
    idstack: Idstack, plans: list[PlannedRehearsal]
) -> None:
    unknown = idstack("rehearse", "--stack", "prod", "--forbid", "destroy")
    assert (unknown.code, "accepted: create, update, replace, delete" in unknown.error) == (2, True)
    assert idstack("rehearse").code == 2, "the stack has to be named"
    assert plans == []

    printed = idstack("rehearse", "--stack", "prod", "--forbid", "delete, replace", "--json")

    forbidden = "replace is forbidden (--forbid), and the plan has 1: hc1-kms-roles-managed"
    assert (printed.code, json.loads(printed.output)["findings"]) == (1, [forbidden])


def test_a_pull_request_gets_markdown(idstack: Idstack, plans: list[PlannedRehearsal], tmp_path: Path) -> None:
    file = tmp_path / "report.md"
    assert idstack("rehearse", "--stack", "prod", "--markdown", str(file)).code == 0

    assert "| resource | operation | reason | protected |" in file.read_text(encoding="utf-8")
    refused = idstack("rehearse", "--stack", "prod", "--markdown", str(tmp_path / "missing/report.md"))
    assert (refused.code, "idstack: the report cannot be written: " in refused.error) == (1, True)
