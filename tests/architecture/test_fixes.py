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
    """Every text of a module that is no docstring; a value in an f-string is a word. Of YAML all but comments."""
    if file.suffix == ".yaml":
        lines = file.read_text(encoding="utf-8").splitlines()
        yield "\n".join(line for line in lines if not line.lstrip().startswith("#"))
        return
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
@pytest.mark.parametrize(
    ("pattern", "instead"),
    [
        (_BARE, "`.venv/bin/idstack pulumi --stack <name> -- ...` has the stack's backend and home"),
        (_OTHER, "`.venv/bin/idstack <command> --stack <name>` can be pasted"),
    ],
    ids=["bare engine", "spelling"],
)
def test_no_message_tells_to_type_what_would_not_work(room: str, pattern: re.Pattern[str], instead: str) -> None:
    written = [*files(room), *(ROOT / room).rglob("*.yaml")]
    found = {f"{file.name}: {text}" for file in written for text in texts(file) if pattern.search(text)}

    assert not found, instead


@pytest.mark.parametrize("page", [page for page in _PAGES if page.name != "CHANGELOG.md"], ids=lambda page: page.name)
def test_no_page_tells_to_type_what_would_not_work(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert _OTHER_ON_PAGES.findall(text) == [], "a command is spelt as it can be pasted"
    for mentioned in _MENTIONED:
        text = text.replace(mentioned, "")

    assert [line for line in text.splitlines() if _BARE.search(line)] == []
