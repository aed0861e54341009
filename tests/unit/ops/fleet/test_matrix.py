"""The matrices of the workflow that brings a fleet up."""

from __future__ import annotations

from typing import Any

import pytest

from ops.fleet.stacks import JOBS, FleetEnvironment, matrices
from ops.stack.errors import CommandError
from tests.unit.ops.conftest import Idstack
from tests.unit.ops.fleet.world import AZURE, LOCAL, document, fleet


def _prod(clusters: int = 5, **waves: Any) -> FleetEnvironment:
    changed = document()
    changed["environments"][1]["clusters"] = [{"name": f"c{number}"} for number in range(clusters)]
    changed["environments"][1]["waves"] = waves
    return fleet(changed)[1]


def test_each_wave_is_the_matrix_of_a_job() -> None:
    assert matrices(_prod(canaries=["c3"], size=2)) == {
        "shared": {"stack": ["shared-prod"]},
        "canaries": {"stack": ["c3-prod"]},
        "wave-1": {"stack": ["c0-prod", "c1-prod"]},
        "wave-2": {"stack": ["c2-prod", "c4-prod"]},
        "wave-3": None,
        "wave-4": None,
    }


def test_an_environment_without_canaries_or_clusters_has_empty_jobs() -> None:
    found = matrices(_prod(clusters=0))
    assert {job for job, matrix in found.items() if matrix is None} == {"canaries", *JOBS}


@pytest.mark.parametrize(
    ("clusters", "waves", "reason"),
    [
        (5, {"size": 1}, "makes 5 waves, and the workflow has jobs for 4"),
        (257, {}, "has 257 stacks, and GitHub runs 256 jobs"),
    ],
)
def test_what_the_workflow_cannot_run_is_refused(clusters: int, waves: dict[str, Any], reason: str) -> None:
    with pytest.raises(CommandError, match=reason):
        matrices(_prod(clusters, **waves))


def test_a_local_environment_is_no_workflows() -> None:
    with pytest.raises(CommandError, match="GitHub's jobs cannot reach"):
        matrices(fleet(document(LOCAL))[0])


def test_the_command_prints_a_line_for_each_job_as_a_step_writes_its_outputs(idstack: Idstack) -> None:
    printed = idstack("fleet", "matrix", "--file", str(AZURE), "--environment", "dev")
    assert printed.code == 0, printed.error
    assert printed.output.splitlines() == [
        'shared={"stack": ["shared-dev"]}',
        "canaries=",
        'wave-1={"stack": ["hc1-dev", "hc2-dev"]}',
        "wave-2=",
        "wave-3=",
        "wave-4=",
    ]
