"""The waves of an environment as matrices of a GitHub workflow: for each wave the stacks whose jobs run in parallel.

The number of jobs in a workflow is fixed. So `fleet.yml` has a job for each of a few waves, each job needs the previous
one, and jobs without stacks are skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ops.fleet.stacks import FleetEnvironment, Wave
from ops.stack.errors import CommandError

SHARED: Final = "shared"
CANARIES: Final = "canaries"
JOBS: Final = ("wave-1", "wave-2", "wave-3", "wave-4")
"""Of `.github/workflows/fleet.yml`, for the waves after the canaries."""
# GitHub's maximum of jobs in a matrix (docs.github.com, "Running variations of jobs in a workflow").
MOST_STACKS: Final = 256


def matrices(environment: FleetEnvironment) -> Mapping[str, Mapping[str, Any] | None]:
    """A matrix by the workflow's job, in their order: `{"stack": ["hc1-prod", ...]}`; None for a job without stacks.

    Raises CommandError for a local environment, and for more waves or stacks than the workflow can run.
    """
    if environment.is_local:
        raise CommandError(f"the environment {environment.name} is on this machine, which GitHub's jobs cannot reach")
    named = {wave.name: wave for wave in environment.waves}
    numbered = [wave for wave in environment.waves if wave.name not in (SHARED, CANARIES)]
    if len(numbered) > len(JOBS):
        raise CommandError(
            f"waves.size of {environment.name} makes {len(numbered)} waves, and the workflow has jobs for {len(JOBS)}: "
            "give it a larger size, or the workflow more jobs (ops/fleet/matrix.py)"
        )
    waves = {SHARED: named.get(SHARED), CANARIES: named.get(CANARIES), **dict(zip(JOBS, numbered, strict=False))}
    return {job: _matrix(environment, waves.get(job)) for job in (SHARED, CANARIES, *JOBS)}


def _matrix(environment: FleetEnvironment, wave: Wave | None) -> Mapping[str, Any] | None:
    if wave is None:
        return None
    stacks = [stack.name for stack in wave.stacks]
    if len(stacks) > MOST_STACKS:
        raise CommandError(
            f"{wave.name} of {environment.name} has {len(stacks)} stacks, and GitHub runs {MOST_STACKS} jobs of a "
            "matrix: give waves.size a smaller number"
        )
    return {"stack": stacks}
