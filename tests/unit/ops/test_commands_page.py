"""The reference of the commands is what `idstack --help` prints."""

from __future__ import annotations

from ops.commands_page import PAGE, page


def test_the_page_is_the_help_of_each_command() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make generate`"


def test_every_command_of_a_group_has_its_section() -> None:
    text = page()

    assert "\n## `idstack up`\n" in text
    assert "\n## `idstack fleet status`\n" in text
    assert "Usage: idstack import scripts [OPTIONS]" in text
