"""Console lines of the pages can be typed, and each is run by a test or marked as one for Azure."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from typer.core import TyperGroup
from typer.main import get_command

from localcloud.testing.running import cli as local_cloud
from ops.cli import COMMANDS
from tests.architecture.source import ROOT
from tests.architecture.test_documents import DOCUMENTS, TARGETS

# A block with `azure` behind its language needs Azure, a hosted cluster or a person; every other line is run by a test.
_CONSOLE: Final = re.compile(r"^ *```console( azure)?\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
# Stands for what is in angle brackets, an object id for instance.
_PLACEHOLDER: Final = "00000000-0000-4000-8000-000000000000"
_VARIABLES: Final = set(re.findall(r"\$\(?([A-Z]+)\b", (ROOT / "Makefile").read_text(encoding="utf-8")))
_RUN: Final[Mapping[str, Sequence[str]]] = yaml.safe_load(
    Path(__file__).with_name("console-lines.yaml").read_text(encoding="utf-8")
)


def _console() -> Iterator[tuple[str, str, bool]]:
    """Pages with the lines that are typed, whose continuations are joined, and whether they need Azure."""
    for page in DOCUMENTS:
        for azure, block in _CONSOLE.findall(page.read_text(encoding="utf-8")):
            for line in re.findall(r"^ *\$ (.+)$", re.sub(r"\\\n *", "", block), re.MULTILINE):
                yield page.name, line, bool(azure)


_LINES: Final = sorted(set(_console()))


@pytest.fixture(autouse=True)
def no_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """A parsed command does not copy the sample of its stack into the checkout."""
    monkeypatch.setattr("ops.stack.chosen_stack.write_once", lambda *_: None)


@pytest.mark.parametrize(
    ("page", "line"), [line[:2] for line in _LINES], ids=[f"{page}-{line}" for page, line, _ in _LINES]
)
def test_a_console_line_can_be_typed(page: str, line: str) -> None:
    """Commands of `idstack` are parsed with all their options, as they would be before they run."""
    for words in _commands(line):
        program = Path(words[0]).name
        if program == "make":
            assert all(word in TARGETS or word.partition("=")[0] in _VARIABLES for word in words[1:]), page
        elif program == "idstack":
            _parse(words[1:])


@pytest.mark.parametrize("line", [f"make {line}" for line in ("upp", "up stack=dev")])
def test_an_unknown_target_or_variable_is_noticed(line: str) -> None:
    with pytest.raises(AssertionError):
        test_a_console_line_can_be_typed("", line)


@pytest.mark.parametrize("line", ["status --jason", "split --to x", "graph --format gif", "nothing", "fleet nothing"])
def test_a_command_that_would_be_refused_is_noticed(line: str) -> None:
    with pytest.raises(Exception, match=r"(?i)no such|missing|gif|nothing"):
        test_a_console_line_can_be_typed("", f"idstack {line}")


def test_every_line_is_run_by_a_test_or_marked_as_one_for_azure() -> None:
    lines = {
        " ".join(shlex.split(line, comments=True)).replace(".venv/bin/", "") for _, line, azure in _LINES if not azure
    }

    assert sorted(lines) == sorted(itertools.chain.from_iterable(_RUN.values()))
    assert [file for file in _RUN if not (ROOT / file).exists()] == []


def _commands(line: str) -> Iterator[list[str]]:
    """The commands of a line of a shell, each as its words; a placeholder in angle brackets is one word."""
    line = re.sub(r"<[^<>]+>", _PLACEHOLDER, re.sub(r"--stack (<stack>|local-hc2)", "--stack local", line))
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if word == ">":
            next(lexer)
        elif set(word) <= set("|&;"):
            yield words
            words = []
        else:
            words.append(word)
    yield words


def _parse(words: Sequence[str]) -> None:
    """Parse what follows `idstack`; raises an error of usage where the command would."""
    name, *rest = words
    assert name in COMMANDS, f"nothing is called {name}"
    command: Any = get_command(local_cloud) if name == "local" else COMMANDS[name].load()
    while isinstance(command, TyperGroup):
        word = rest[0]
        if word not in command.commands and command.name == "import":
            rest.insert(0, word := "resource")
        assert word in command.commands, f"nothing is called {word}"
        command, rest = command.commands[word], rest[1:]
    command.make_context(command.name or "", rest)
