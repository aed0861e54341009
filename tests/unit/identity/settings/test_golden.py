"""Every rule of the configuration has a reviewed message, and every reviewed message a rule."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

import pytest

from identity.settings import Problem
from tests.architecture.source import files, nodes
from tests.unit import golden_report

pytestmark = pytest.mark.skipif(golden_report.IS_REWRITING, reason="the report is being written")

# By the kind of a value whose type has no rule of its own (`SchemaNode.rule`).
KINDS: Final = {"boolean", "choice", "structure"}
_MAKE_TYPES: Final = {"_arm_id", "_uuid_spec", "form"}
_TAKE_RULES: Final = _MAKE_TYPES | {"_refused", "problem", "refuse", "require", "require_one", "require_own"}


def declared() -> Iterator[str]:
    """The ids that the program gives its rules: every string in an argument `rule=`, or in the first argument of a call
    that refuses a value, or makes a type with a rule of its own.
    """
    for room in ("identity/settings", "components"):
        for file in files(room):
            for call in (node for node in nodes(file) if isinstance(node, ast.Call)):
                given = [keyword.value for keyword in call.keywords if keyword.arg == "rule"]
                if call.args and ast.unparse(call.func).rpartition(".")[2] in _TAKE_RULES:
                    given.append(call.args[0])
                for leaf in (leaf for argument in given for leaf in ast.walk(argument)):
                    if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str):
                        yield leaf.value


def test_every_rule_has_an_example_in_the_report_and_nothing_else_has() -> None:
    assert sorted(golden_report.read()) == sorted(KINDS.union(declared())), "run `make golden` and review its diff"


def test_a_message_that_nobody_reviewed_is_refused() -> None:
    problem = Problem(place=("cloud",), rule="cloud", found='"x"', accepted="something else", fix="none")

    with pytest.raises(AssertionError, match=r"is not in report\.txt; see `make golden`"):
        golden_report.reviewed([problem])


def test_what_differs_from_value_to_value_and_run_to_run_is_left_out() -> None:
    found = '"x", and "/tmp/pytest-of-me/pytest-1/x/hc1.yaml" expired 2026-01-31T00:00:00Z (' + "0A" * 20 + ")"

    message = f"idstack:a[0].b\n  found:    {found}\n  fix:      set 'a[0].b'"

    assert golden_report.normalized(message).splitlines() == [
        "<key>",
        '  found:    <value>, and "<directory>/hc1.yaml" expired <date> (<thumbprint>)',
        "  fix:      set '<key>'",
    ]
