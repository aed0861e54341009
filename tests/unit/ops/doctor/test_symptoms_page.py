"""The page of symptoms is the table."""

from __future__ import annotations

from identity.credentials.symptoms import SYMPTOMS
from ops.doctor.symptoms_page import PAGE, page


def test_the_page_is_what_the_table_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make generate`"


def test_every_symptom_is_a_section_with_a_place_to_look_and_a_fix() -> None:
    sections = {part.partition("\n")[0]: part for part in page().split("\n### ")[1:]}

    assert list(sections) == [symptom.name for symptom in SYMPTOMS]
    assert all("\n- Evidence: " in section and "\n- Fix: " in section for section in sections.values())
    assert not [line for line in page().splitlines() if len(line) > 120]
