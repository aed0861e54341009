"""Every row of `findings.yaml` is a finding of a check, which gives the words for its braces and no others."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from string import Formatter

import pytest

from ops.doctor.checks.check import FINDINGS, fault
from tests.architecture.source import ROOT
from tests.unit.ops.doctor import worlds

_OF_THE_STACK = {"stack", "up", "recover", "repair"}


def calls() -> Iterator[tuple[str, set[str]]]:
    """The row and the words of each call of `fault`; with `**of`, also those of a dictionary `of` in its function."""
    for file in sorted((ROOT / "ops/doctor/checks").glob("*.py")):
        for function in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(function, ast.FunctionDef):
                continue
            nodes = list(ast.walk(function))
            shared = {
                str(key.value)
                for node in nodes
                if isinstance(node, ast.Dict)
                for key in node.keys
                if isinstance(key, ast.Constant)
            }
            for call in nodes:
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "fault":
                    words = {word.arg for word in call.keywords if word.arg}
                    given = words | (shared if any(word.arg is None for word in call.keywords) else set())
                    for name in ast.walk(call.args[1]):
                        if isinstance(name, ast.Constant) and isinstance(name.value, str):
                            yield name.value, given - {"cluster"}


CALLS = sorted(calls())


@pytest.mark.parametrize(("row", "given"), CALLS, ids=[row for row, _ in CALLS])
def test_a_finding_has_the_words_of_its_row(row: str, given: set[str]) -> None:
    braces = {field for text in FINDINGS[row].values() for _, field, _, _ in Formatter().parse(text) if field}

    assert braces - _OF_THE_STACK == given


def test_every_row_is_found_by_a_check() -> None:
    assert set(FINDINGS) == {row for row, _ in CALLS}


def test_the_commands_of_a_fix_are_those_of_the_stack() -> None:
    world = worlds.healthy()

    assert fault(world, "locked", age="1 hour", owner="eve").fix.endswith(f"then {world.command('up')}")
    assert fault(world, "locked elsewhere", age="1 hour", owner="eve").fix.endswith(
        world.command("recover", "--unlock")
    )
