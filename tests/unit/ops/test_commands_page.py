"""The reference of the commands is what `idstack --help` prints."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.core import TyperGroup

from ops.cli import COMMANDS
from ops.pages import COMMANDS_PAGE, commands_page
from tests import json_page
from tests.json_page import require_documented


def test_the_page_is_the_help_of_each_command() -> None:
    assert COMMANDS_PAGE.read_text(encoding="utf-8") == commands_page(), "run `make generate`"


def test_every_command_of_a_group_has_its_section() -> None:
    text = commands_page()

    assert "\n## `idstack up`\n" in text
    assert "\n## `idstack fleet status`\n" in text
    assert "Usage: idstack import scripts [OPTIONS]" in text


def test_every_command_with_json_is_on_the_page_of_the_documents() -> None:
    loaded = {name: row.load() for name, row in COMMANDS.items()}
    found: dict[str, Any] = {name: command for name, command in loaded.items() if not isinstance(command, TyperGroup)}
    for name, group in loaded.items():
        if isinstance(group, TyperGroup):
            found |= {f"{name} {own}": command for own, command in group.commands.items()}
    with_json = {name for name, command in found.items() if "as_json" in {one.name for one in command.params}}

    assert {*with_json, "graph"} - json_page.sections().keys() == {"preview"}


@pytest.mark.parametrize(
    "changes", [{"removed": None}, {"removed": "yes"}, {"more": 1}, {"stack": 1}], ids=["null", "type", "more", "text"]
)
def test_a_document_that_differs_from_the_page_is_noticed(changes: dict[str, object]) -> None:
    document = {"stack": "dev", "removed": True}
    require_documented(["down", "--json"], json.dumps(document))
    for differing in ({**document, **changes}, {"stack": "dev"}):
        with pytest.raises(AssertionError):
            require_documented(["down", "--json"], json.dumps(differing))
