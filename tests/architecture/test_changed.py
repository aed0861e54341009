"""`make test ARGS=changed` runs what a change can reach by imports, as a process of a stack, or as a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.source import ROOT, TESTS
from tests.changed import reachable, reached

A, B, C, D = map(Path, "abcd")


def test_what_needs_a_changed_file_is_reached_through_others() -> None:
    needs = {A: {B}, B: {C}, C: {B}, D: {A}}

    assert reached([C], needs) == {A, B, C, D}
    assert reached([D], needs) == {D}


@pytest.mark.parametrize(
    ("changed", "tests", "others"),
    [
        pytest.param("ops/graph/layout.py", "unit/ops/graph engine/test_graph.py", "unit/components", id="an-import"),
        pytest.param("provider/keys.py", "unit/provider engine/test_drift.py e2e", "unit/policies", id="a-plugin"),
        pytest.param("identity/credentials/gone.py", "unit/identity/credentials", "unit/tools", id="a-deleted-module"),
        pytest.param("localcloud/azure/roles.yaml", "../localcloud/tests/azure/authorization", "", id="data-of-a-room"),
        pytest.param("tests/unit/ops/graph/golden/x.txt", "unit/ops/graph", "unit/identity engine", id="a-golden-file"),
        pytest.param(".github/workflows/ci.yml", "unit/workflows", "unit/identity engine", id="a-workflow"),
        pytest.param("docs/explanation/limits.md", "architecture", "unit/identity unit/components", id="a-document"),
    ],
)
def test_a_change_reaches_the_tests_that_need_it_and_few_others(changed: str, tests: str, others: str) -> None:
    found = reachable([ROOT / changed])

    assert all(file.name.startswith("test_") for file in found)
    assert set(ROOT.glob("tests/architecture/test_*.py")) <= set(found), "the rules read everything"
    for word in tests.split():
        assert [file for file in found if file.is_relative_to((ROOT / "tests" / word).resolve())], word
    for word in others.split():
        assert not [file for file in found if file.is_relative_to((ROOT / "tests" / word).resolve())], word


@pytest.mark.parametrize("name", ["requirements.txt", "pyproject.toml"])
def test_another_library_or_setting_reaches_everything(name: str) -> None:
    assert reachable([ROOT / name]) == [*TESTS]
