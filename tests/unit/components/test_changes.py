"""What a change of the configuration changes of what the program registers: its own resources and no other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.unit.components import world
from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.world import MOUNTS, hosted_cluster


def inputs(recorder: RecordingMonitor) -> dict[str, Mapping[str, Any]]:
    """Those of the resources that are more than a group of others, by name."""
    return {resource.name: resource.inputs for resource in recorder.registered if not resource.is_component}


def of_identity(recorder: RecordingMonitor, name: str) -> set[str]:
    """The names of what one identity of the control plane has."""
    return {input_ for input_ in inputs(recorder) if name in input_ and "data-plane" not in input_}


@pytest.fixture
def steps(stack: RecordingMonitor, program: Program, request: pytest.FixtureRequest) -> dict[str, str]:
    """Operation by name: what the engine does after the change, a replacement among the updates."""
    before, after = inputs(stack), inputs(program(**request.param))
    return (
        dict.fromkeys(before.keys() - after.keys(), "delete")
        | dict.fromkeys(after.keys() - before.keys(), "create")
        | {name: "update" for name in before.keys() & after.keys() if before[name] != after[name]}
    )


def of_identities(**identities: Any) -> dict[str, Any]:
    """The change of some identities of the hosted cluster."""
    return {"hostedClusters": [hosted_cluster(identities=identities)]}


@pytest.mark.parametrize("steps", [of_identities(imageRegistry={"enabled": False})], indirect=True)
def test_an_identity_switched_off_is_all_that_is_deleted(steps: dict[str, str], stack: RecordingMonitor) -> None:
    assert steps == dict.fromkeys(of_identity(stack, "image-registry"), "delete")
    assert {
        "hc1-image-registry-credential-secret",
        "hc1-image-registry-roles-managed",
        "hc1-cluster-side-image-registry-class-object",
        "hc1-cluster-side-probe-image-registry-deployment",
    } <= steps.keys()


@pytest.mark.parametrize("steps", [{"hostedClusters": [hosted_cluster(kms=None)]}], indirect=True)
def test_without_kms_all_of_its_identity_is_deleted_and_nothing_else(
    steps: dict[str, str], stack: RecordingMonitor
) -> None:
    assert steps == dict.fromkeys(of_identity(stack, "kms"), "delete")
    assert {"hc1-kms-credential-secret", "hc1-cluster-side-probe-kms-2-deployment"} <= steps.keys()


@pytest.mark.parametrize("steps", [of_identities(imageRegistry={"objectEncoding": "hex"})], indirect=True)
def test_another_encoding_of_one_identity_touches_that_one_only(steps: dict[str, str], stack: RecordingMonitor) -> None:
    assert set(steps.values()) == {"update"}
    assert steps.keys() <= of_identity(stack, "image-registry")
    assert {
        "hc1-image-registry-credential-secret",
        "hc1-image-registry-entra-schedule",
        "hc1-cluster-side-image-registry-class-object",
    } <= steps.keys()


@pytest.mark.parametrize("steps", [{"hostedClusters": [hosted_cluster(), world.SECOND_CLUSTER]}], indirect=True)
def test_a_second_cluster_touches_nothing_of_the_first(steps: dict[str, str]) -> None:
    assert set(steps.values()) == {"create"}
    assert [name for name in steps if not name.startswith("hc2")] == []


@pytest.mark.parametrize("steps", [{"probe": {"image": "registry.example.com/idstack/probe:2"}}], indirect=True)
def test_a_new_image_of_the_probe_updates_the_probes_only(steps: dict[str, str]) -> None:
    assert list(steps.values()) == ["update"] * len(MOUNTS)
    assert [name for name in steps if "probe" not in name] == []
