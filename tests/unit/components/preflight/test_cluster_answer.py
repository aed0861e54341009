"""What the management cluster itself is refused for: its secrets-store add-on, and its network policies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from components.preflight.cluster_answer import unenforced_block
from identity.credentials import renewal_request
from tests.unit.components.existing_cluster import cluster_answer
from tests.unit.components.program import Program
from tests.unit.components.refusals import GONE, refused
from tests.unit.components.world import ADD_ON, ROTATION, lookups, settings
from tests.unit.identity.settings.world import creation


@pytest.mark.parametrize(
    "answer",
    [
        {"nodeResourceGroup": "MC_aks"},
        cluster_answer(enabled=False, identity=ADD_ON),
        cluster_answer(enabled=True, config=ROTATION),
        cluster_answer(enabled=True, config=ROTATION, identity={"clientId": ADD_ON["clientId"]}),
    ],
    ids=["never on", "off", "without an identity", "with half an identity"],
)
def test_a_disabled_add_on_is_an_error_with_the_command_that_enables_it(
    program: Program, answer: dict[str, Any]
) -> None:
    problems = refused(program, invokes=lookups(getManagedCluster=answer))

    assert problems == [("keyVaultUser.source", "add-on-disabled")]


@pytest.mark.parametrize(
    ("config", "found"),
    [
        (None, "secret rotation is off"),
        ({"enableSecretRotation": "false", "rotationPollInterval": "2m"}, "secret rotation is off"),
        ({"rotationPollInterval": "2m"}, "secret rotation is off"),
        ({"enableSecretRotation": "true", "rotationPollInterval": "12h"}, "rotationPollInterval is 12h"),
        ({"enableSecretRotation": "true", "rotationPollInterval": "1h0m1s"}, "rotationPollInterval is 1h0m1s"),
        ({"enableSecretRotation": "true", "rotationPollInterval": "daily"}, 'rotationPollInterval is "daily"'),
        ({"enableSecretRotation": "true", "rotationPollInterval": "0s"}, 'rotationPollInterval is "0s"'),
    ],
)
def test_an_add_on_that_brings_no_renewed_certificate_in_time_is_refused(
    program: Program, config: dict[str, str] | None, found: str
) -> None:
    answer = cluster_answer(enabled=True, identity=ADD_ON, config=config)
    own = {"source": "created", "name": "kv-user"}

    recorders = [
        program(options={"refused": True, **options}, invokes=lookups(getManagedCluster=answer), **more)
        for options, more in (({}, {}), ({}, {"keyVaultUser": own}), ({"preview": True}, {}))
    ]

    for recorder in recorders:
        assert recorder.problems == [("managementCluster.name", "add-on-rotation")]
        assert found in str(recorder.failure)
        assert (
            "`az aks update --resource-group aks-dev --name aks-mgmt-dev --enable-secret-rotation "
            "--rotation-poll-interval 2m`"
        ) in str(recorder.failure)


@pytest.mark.parametrize("poll", [None, "2m", "1h", "60m", "3600s", "0.5h", "1m30s"])
def test_an_add_on_that_polls_within_the_hour_is_accepted(program: Program, poll: str | None) -> None:
    config = {"enableSecretRotation": "true", **({} if poll is None else {"rotationPollInterval": poll})}
    answer = cluster_answer(enabled=True, identity=ADD_ON, config=config)

    assert program(lookups_only=True, invokes=lookups(getManagedCluster=answer)).failure is None


def test_without_the_add_on_another_driver_mounts_and_is_not_asked(program: Program) -> None:
    own = {"source": "created", "name": "kv-user"}
    answer = {"nodeResourceGroup": "MC_aks"}

    assert program(lookups_only=True, keyVaultUser=own, invokes=lookups(getManagedCluster=answer)).failure is None


@pytest.mark.parametrize(("request_", "is_refused"), [("renew", True), ("force", False), ("withdraw", False)])
def test_a_leaked_certificate_is_replaced_whatever_the_add_on_does(
    program: Program, monkeypatch: pytest.MonkeyPatch, request_: str, is_refused: bool
) -> None:
    warned: list[str] = []
    monkeypatch.setattr("pulumi.log.warn", warned.append)
    monkeypatch.setenv(renewal_request.VARIABLE, json.dumps({"hc1-disk-entra-renewal": request_}))
    answer = cluster_answer(enabled=True, identity=ADD_ON)

    recorder = program(lookups_only=True, options={"refused": is_refused}, invokes=lookups(getManagedCluster=answer))

    assert (recorder.failure is not None) is is_refused
    assert len(warned) == (not is_refused)


@pytest.mark.parametrize(
    "profile",
    [None, {"networkPlugin": "kubenet"}, {"networkPolicy": "none", "networkDataplane": "azure"}],
    ids=["nothing said", "no policy", "none"],
)
def test_a_block_of_instance_metadata_that_nobody_enforces_is_refused(
    program: Program, profile: dict[str, str] | None
) -> None:
    answer = {**cluster_answer(enabled=True, identity=ADD_ON, config=ROTATION), "networkProfile": profile}

    problems = refused(program, blockInstanceMetadata=True, invokes=lookups(getManagedCluster=answer))

    assert problems == [("blockInstanceMetadata", "metadata-block-unenforced")]


@pytest.mark.parametrize(
    "profile",
    [
        {"networkPolicy": "azure"},
        {"networkPolicy": "calico"},
        {"networkPolicy": "cilium", "networkDataplane": "cilium"},
        {"networkDataplane": "cilium"},
        {"networkPlugin": "none"},
    ],
    ids=str,
)
def test_a_block_that_an_engine_enforces_is_accepted(program: Program, profile: dict[str, str]) -> None:
    answer = {**cluster_answer(enabled=True, identity=ADD_ON, config=ROTATION), "networkProfile": profile}

    found = program(blockInstanceMetadata=True, invokes=lookups(getManagedCluster=answer), lookups_only=True)

    assert found.failure is None


def made_by_the_stack(policy: str) -> dict[str, Any]:
    cluster = {**creation(network={"policy": policy}), "resourceGroup": "aks-dev", "name": "aks-mgmt-dev"}
    return {"managementCluster": cluster, "keyVaultUser": {"source": "aks-addon"}, "blockInstanceMetadata": True}


def test_a_block_is_refused_on_a_cluster_that_the_stack_makes_without_an_engine(program: Program) -> None:
    found = refused(program, **made_by_the_stack("none"), invokes=lookups(getManagedCluster=GONE))

    assert found == [("blockInstanceMetadata", "metadata-block-unenforced")]


@pytest.mark.parametrize("policy", ["azure", "calico"])
def test_a_cluster_that_the_stack_makes_has_the_engine_that_the_settings_name(policy: str) -> None:
    configured = settings(**made_by_the_stack(policy))
    assert configured.management_cluster is not None

    assert list(unenforced_block(configured, configured.management_cluster, {})) == []


def test_a_renewal_is_not_stopped_by_a_block_that_nobody_enforces(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in renewal_request.write({}).items():
        monkeypatch.setenv(name, value)
    answer = cluster_answer(enabled=True, identity=ADD_ON, config=ROTATION)

    found = program(blockInstanceMetadata=True, invokes=lookups(getManagedCluster=answer), lookups_only=True)

    assert found.failure is None
