"""Workloads of the user's own: wired like the identities' consumers, unprivileged, after everything they mount."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit import cases
from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.world import hosted_cluster

DEPLOYMENT = "kubernetes:apps/v1:Deployment"
BUDGET = "kubernetes:policy/v1:PodDisruptionBudget"
WORKLOADS = cases.read(Path(__file__).with_name("workloads.yaml"), {})


@pytest.fixture(scope="module")
def with_workloads(program: Program) -> RecordingMonitor:
    return program(hostedClusters=[hosted_cluster(workloads=[WORKLOADS["minimal"], WORKLOADS["whole"]])])


def deployment(recorder: RecordingMonitor, name: str) -> dict[str, Any]:
    return dict(recorder.one(DEPLOYMENT, f"hc1-cluster-side-workload-{name}-deployment").inputs)


def test_a_workload_is_a_deployment_with_all_of_its_settings_and_a_budget(with_workloads: RecordingMonitor) -> None:
    assert with_workloads.one(BUDGET).inputs == WORKLOADS["budget of whole"]
    assert deployment(with_workloads, "backup") == WORKLOADS["deployment of whole"]


def test_what_was_left_out_is_left_to_the_image_and_to_kubernetes(with_workloads: RecordingMonitor) -> None:
    pod = deployment(with_workloads, "report")["spec"]["template"]["spec"]

    assert pod == WORKLOADS["pod of minimal"]


def test_a_workload_comes_after_all_that_it_mounts(with_workloads: RecordingMonitor) -> None:
    workload = with_workloads.one(DEPLOYMENT, "hc1-cluster-side-workload-backup-deployment")
    needed = [
        resource
        for resource in with_workloads.registered
        for identity in ("kms", "disk")
        if resource.name
        in (
            f"hc1-{identity}-credential-secret",
            f"hc1-{identity}-roles-managed",
            f"hc1-cluster-side-{identity}-class-object",
            f"hc1-cluster-side-{identity}-config-secret",
        )
    ]

    assert len(needed) == 7, "the role of KMS is at its vault"
    assert [resource.name for resource in needed if not with_workloads.waits_for(workload, resource)] == []


def test_a_workload_changes_nothing_else(stack: RecordingMonitor, with_workloads: RecordingMonitor) -> None:
    added = {resource.urn for resource in with_workloads.registered} - {resource.urn for resource in stack.registered}

    assert len(added) == 2 + 2 + 1
    assert all("hc1-cluster-side-workload-" in urn for urn in added)
    assert with_workloads.stack_outputs == stack.stack_outputs
