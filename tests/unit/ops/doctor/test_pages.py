"""The page for people on call has every stage and every check, and the page of symptoms is the table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from identity.symptoms import symptoms
from ops.doctor.checks.check import CheckStatus, ExitCode, Stage
from ops.doctor.examination import CHECKS
from ops.pages import SYMPTOMS_PAGE, symptoms_page

CHECKS_PAGE = Path(__file__).resolve().parents[4] / "docs/guides/troubleshooting.md"
TEXT = CHECKS_PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("stage", Stage)
def test_a_stages_table_has_its_checks_in_their_order(stage: Stage) -> None:
    headings = re.findall(r"^## (.+)$", TEXT, re.MULTILINE)
    assert [heading for heading in headings if heading in set(Stage)] == list(Stage), "each is a section"
    section = TEXT.split(f"\n## {stage}\n", 1)[1].split("\n## ", 1)[0]
    table = section.split("| check |", 1)[1].split("\n\n", 1)[0]

    named = re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE)
    assert named == [check.name for check in CHECKS if check.stage is stage]


def test_exit_codes_and_statuses_are_named() -> None:
    codes = TEXT.split("| exit code |", 1)[1].split("\n\n", 1)[0]

    assert re.findall(r"^\| (\d) \|", codes, re.MULTILINE) == sorted([*(str(int(code)) for code in ExitCode), "2"])
    assert all(f"`{status}`" in TEXT for status in CheckStatus)


def test_every_stage_has_checks_and_every_check_a_name_of_its_own() -> None:
    assert list(dict.fromkeys(check.stage for check in CHECKS)) == list(Stage), "in the order of the stages"
    assert len(CHECKS) == len({check.name for check in CHECKS})


def test_the_page_is_what_the_table_says() -> None:
    assert SYMPTOMS_PAGE.read_text(encoding="utf-8") == symptoms_page(), "run `make generate`"


def test_every_symptom_is_a_section_with_a_place_to_look_and_a_fix() -> None:
    sections = {part.partition("\n")[0]: part for part in symptoms_page().split("\n### ")[1:]}

    assert list(sections) == [symptom.name for symptom in symptoms()]
    assert all("\n- Evidence: " in section and "\n- Fix: " in section for section in sections.values())
    assert not [line for line in symptoms_page().splitlines() if len(line) > 120]
