"""The words of rules in tables: every row is a rule's, which gives exactly the words in its braces."""

from __future__ import annotations

import ast
import re
from typing import Any, Final

from tests.architecture.source import ROOT, files, nodes
from tests.unit import cases

_TABLES: Final = ("identity/settings/rules/accepted.yaml", "components/preflight/problems.yaml")
_ROWS: Final[list[tuple[str, Any]]] = [row for table in _TABLES for row in cases.read(ROOT / table, {}).items()]
_OF_THE_CALL: Final = {"require_own": {"first"}, "require_one": {"keys"}, "_refused": {"name"}}
_NO_WORDS: Final = {"fix", "otherwise", "reason"}


def test_a_rule_gives_the_words_of_its_row() -> None:
    named = {rule: set(re.findall(r"{(\w+)}", str(row))) - {"here", "stack"} for rule, row in _ROWS}
    given = []
    for call in (node for file in (*files("identity/settings/rules"), *files("components")) for node in nodes(file)):
        if isinstance(call, ast.Call) and call.args and isinstance(rule := call.args[0], ast.Constant):
            name, words = ast.unparse(call.func).rpartition(".")[2], {str(keyword.arg) for keyword in call.keywords}
            if name in {"accepted_by", "problem", "refuse", "require", *_OF_THE_CALL}:
                given.append((str(rule.value), words - _NO_WORDS | _OF_THE_CALL.get(name, set())))

    assert {rule for rule, _ in given} == named.keys()
    assert [(rule, words) for rule, words in given if words != named[rule]] == []
