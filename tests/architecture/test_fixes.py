"""What a message or a page tells to type works for every stack: the engine's CLI alone has another backend and home."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.source import ROOT, files, nodes

ROOMS = ("identity", "components", "provider", "policies", "ops")
# A command of the engine, and not the words on one that ran: "`pulumi preview`: <error>", "`pulumi up` ended with".
_BARE = re.compile(
    r"(`|^  |^\$ )pulumi "
    r"(config|stack|state|login|logout|org|cancel|plugin (?!install`)|(up|preview|destroy|import|refresh) )",
    re.MULTILINE,
)
# Another spelling than `.venv/bin/idstack`, which works without PATH; whoever wrote or runs something is only named.
_OTHER = re.compile(
    r"(?<!Written by )(?<!that )(?<!runs )(?<!For )`idstack [a-z]|"
    r"\bmake (up|preview|renew|recover|down)(`| (STACK|ARGS|PROVIDERS)=)"
)
# On a page a command is typed that has options, or a line of its own.
_OTHER_ON_PAGES = re.compile(
    r"^ *\$ idstack |`idstack [a-z][^`]* --?[a-z]|\bmake (up|preview|renew|recover|down) (STACK|ARGS)=", re.MULTILINE
)
# What somebody may have done before, what a command does, and the line that an error shows: nobody types them there.
_MENTIONED = (
    *("`pulumi login`", "`pulumi stack select`"),
    *("`pulumi import --file`", "`pulumi state move`", "`pulumi state delete`"),
)
_PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/[gr]*/*.md")), *sorted(ROOT.glob("Pulumi.*.yaml"))]


def texts(file: Path) -> Iterator[str]:
    """Every text of a module that is no docstring; a value in an f-string is a word."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in nodes(file)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in nodes(file):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(value.value) if isinstance(value, ast.Constant) else "x" for value in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


@pytest.mark.parametrize("room", ROOMS)
def test_no_message_tells_to_type_a_command_of_the_bare_engine(room: str) -> None:
    found = {f"{file.name}: {text}" for file in files(room) for text in texts(file) if _BARE.search(text)}

    assert not found, "`.venv/bin/idstack pulumi --stack <name> -- ...` has the stack's backend and home"


@pytest.mark.parametrize("room", ROOMS)
def test_every_message_spells_a_command_as_it_can_be_pasted(room: str) -> None:
    found = {f"{file.name}: {text}" for file in files(room) for text in texts(file) if _OTHER.search(text)}

    assert not found, "`.venv/bin/idstack <command> --stack <name>`"


@pytest.mark.parametrize("page", [page for page in _PAGES if page.name != "CHANGELOG.md"], ids=lambda page: page.name)
def test_every_page_spells_a_command_as_it_can_be_pasted(page: Path) -> None:
    assert _OTHER_ON_PAGES.findall(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", [page for page in _PAGES if page.name != "CHANGELOG.md"], ids=lambda page: page.name)
def test_no_page_tells_to_type_a_command_of_the_bare_engine(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for mentioned in _MENTIONED:
        text = text.replace(mentioned, "")

    assert [line for line in text.splitlines() if _BARE.search(line)] == []
