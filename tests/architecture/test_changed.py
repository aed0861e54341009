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
    ("side", "changed", "tests", "others"),
    [
        pytest.param(
            PROGRAM, "ops/graph/layout.py", "unit/ops/graph engine/test_on_call.py", "unit/components", id="import"
        ),
        pytest.param(
            PROGRAM, "provider/keys.py", "unit/provider engine/test_drift.py e2e", "unit/policies", id="plugin"
        ),
        pytest.param(PROGRAM, "identity/credentials/gone.py", "unit/identity/credentials", "unit/plugin", id="deleted"),
        pytest.param(PROGRAM, "tests/unit/ops/graph/golden/x.txt", "unit/ops/graph", "unit/identity", id="golden"),
        pytest.param(PROGRAM, ".github/workflows/ci.yml", "unit/workflows", "unit/identity engine", id="workflow"),
        pytest.param(PROGRAM, "docs/explanation/limits.md", "architecture", "unit/identity", id="document"),
        pytest.param(LOCAL_CLOUD, "cloud/localcloud/azure/roles.yaml", "azure/authorization", "", id="data"),
        pytest.param(LOCAL_CLOUD, "cloud/emulated/azuread/graph.py", "emulated/test_azuread.py", "kubelet", id="type"),
        pytest.param(LOCAL_CLOUD, "plugin/values.py", "emulated/test_azuread.py", "kubelet", id="protocol"),
        pytest.param(LOCAL_CLOUD, "cloud/localcloud/core/store.py", "azure runtime", "", id="process"),
    ],
)
def test_a_change_reaches_the_tests_that_need_it_and_few_others(
    side: Side, changed: str, tests: str, others: str
) -> None:
    found = reachable([ROOT / changed], side)

    assert all(file.name.startswith("test_") for file in found)
    for word in tests.split():
        assert [file for file in found if file.is_relative_to((side.tests / word).resolve())], word
    for word in others.split():
        assert not [file for file in found if file.is_relative_to((side.tests / word).resolve())], word


def test_what_changes_on_one_side_is_proven_on_that_side() -> None:
    rules = sorted(ROOT.glob("tests/architecture/test_*.py"))

    assert reachable([CLOUD / "localcloud/azure/conditions.py"]) == rules
    assert reachable([ROOT / "ops/graph/layout.py"], LOCAL_CLOUD) == []


@pytest.mark.parametrize("name", ["requirements.txt", "pyproject.toml"])
@pytest.mark.parametrize("side", [PROGRAM, LOCAL_CLOUD], ids=["program", "local-cloud"])
def test_another_library_or_setting_reaches_everything(name: str, side: Side) -> None:
    assert reachable([ROOT / name], side) == [side.tests]
