"""`make test ARGS=changed` runs what a change can reach by imports, as a process of a stack, or as a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.source import CLOUD, ROOT
from tests.changed import LOCAL_CLOUD, PROGRAM, Side, reachable, reached

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
        pytest.param("identity/credentials/gone.py", "unit/identity/credentials", "unit/plugin", id="a-deleted-module"),
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


@pytest.mark.parametrize(
    ("changed", "tests", "others"),
    [
        pytest.param("cloud/localcloud/azure/roles.yaml", "azure/authorization", "", id="data"),
        pytest.param("cloud/emulated/azuread/graph.py", "emulated/test_azuread.py", "kubelet", id="a-plugin"),
        pytest.param("plugin/values.py", "emulated/test_azuread.py", "kubelet", id="the-protocol"),
        pytest.param("cloud/localcloud/core/store.py", "azure runtime", "", id="a-process"),
    ],
)
def test_a_change_of_the_local_cloud_is_proven_by_its_tests(changed: str, tests: str, others: str) -> None:
    found = reachable([ROOT / changed], LOCAL_CLOUD)

    for word in tests.split():
        assert [file for file in found if file.is_relative_to(CLOUD / "tests" / word)], word
    for word in others.split():
        assert not [file for file in found if file.is_relative_to(CLOUD / "tests" / word)], word


def test_what_changes_on_one_side_is_proven_on_that_side() -> None:
    rules = sorted(ROOT.glob("tests/architecture/test_*.py"))

    assert reachable([CLOUD / "localcloud/azure/conditions.py"]) == rules
    assert reachable([ROOT / "ops/graph/layout.py"], LOCAL_CLOUD) == []


@pytest.mark.parametrize("name", ["requirements.txt", "pyproject.toml"])
@pytest.mark.parametrize("side", [PROGRAM, LOCAL_CLOUD], ids=["program", "local-cloud"])
def test_another_library_or_setting_reaches_everything(name: str, side: Side) -> None:
    assert reachable([ROOT / name], side) == [side.tests]
