"""`idstack status`: what the management cluster reports, behind the credentials."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ops.doctor.examination import Examination
from ops.stack.errors import CommandError
from tests.unit.access_world import FakeApiServer
from tests.unit.ops.cluster_access import CLUSTER
from tests.unit.ops.conftest import FakeEngine, Idstack
from tests.unit.ops.world.test_cluster_state import HOSTED_CLUSTER, OUTPUTS, POD_STATUSES, VERSIONS, pod_status


@pytest.fixture
def api(cluster_api: FakeApiServer, monkeypatch: pytest.MonkeyPatch, engine: FakeEngine) -> FakeApiServer:
    """The cluster of a stack with one pod of an old version and a condition that is not as expected."""
    monkeypatch.setattr("ops.commands.status.examine", lambda _: Examination((), VERSIONS))
    engine.has({**OUTPUTS, "managementClusterId": CLUSTER})
    engine.configures(managementCluster={"resourceGroup": "aks-dev", "name": "mgmt"})
    broken = {"type": "ValidAzureKMSConfig", "status": "False", "reason": "AzureError", "message": "encrypt failed"}
    cluster_api.documents[HOSTED_CLUSTER] = {"status": {"conditions": [broken]}}
    pods = [pod_status("ingress-operator-0", "managed-azure-ingress", "ingress-hc1-json", "1111")]
    cluster_api.documents[POD_STATUSES] = {"items": pods}
    return cluster_api


def test_conditions_and_mounted_versions_follow_the_credentials(api: FakeApiServer, idstack: Idstack) -> None:
    printed = idstack("status", "--stack", "dev")

    lines = [" ".join(line.split()) for line in printed.output.splitlines()]
    assert printed.code == 0
    assert "hc1 ValidAzureKMSConfig False AzureError encrypt failed" in lines
    assert "hc1 ingress ingress-operator-0 1111 old" in lines
    assert "not read" not in printed.output


def test_scripts_get_them_beside_the_rows(api: FakeApiServer, idstack: Idstack) -> None:
    document = json.loads(idstack("status", "--stack", "dev", "--json").output)

    assert len(document["rows"]) == 2
    assert document["managementCluster"]["mounts"]["hc1"]["ingress"] == [
        {"pod": "ingress-operator-0", "version": "1111", "vaultVersion": "2222", "state": "old"}
    ]
    assert document["managementCluster"]["unread"] == []


def test_rights_that_are_missing_are_lines_and_no_error(
    api: FakeApiServer, idstack: Idstack, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.unreadable = {HOSTED_CLUSTER}
    monkeypatch.setattr("ops.commands.status.examine", lambda _: Examination())

    printed = idstack("status", "--stack", "dev")

    assert printed.code == 0
    assert "not read: the conditions of hc1: deployer-object-id may not read" in printed.output
    assert "not known" in printed.output


def test_a_cluster_out_of_reach_is_a_line_and_no_error(
    api: FakeApiServer, idstack: Idstack, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise CommandError("AKS does not answer")

    monkeypatch.setattr("ops.access.management_cluster.stack_access", refuse)

    printed = idstack("status", "--stack", "dev")

    assert (printed.code, "not read: the management cluster: AKS does not answer" in printed.output) == (0, True)


def has_state(engine: FakeEngine) -> None:
    """The state of the same stack, which `doctor` reads."""
    engine.has_resources({"urn": "urn:pulumi:dev::idstack::pulumi:pulumi:Stack::idstack-dev", **STACK_RESOURCE})


STACK_RESOURCE: dict[str, Any] = {"type": "pulumi:pulumi:Stack", "custom": False, "outputs": OUTPUTS}


def test_doctor_names_each_condition_that_is_not_as_expected(
    api: FakeApiServer, engine: FakeEngine, idstack: Idstack
) -> None:
    has_state(engine)

    printed = idstack("doctor", "--stage", "hosted-clusters", "--stack", "dev")

    assert (printed.code, printed.error) == (1, "")
    assert printed.output.splitlines()[:2] == [
        "broken  hosted-clusters (conditions): hc1",
        "    found  ValidAzureKMSConfig is False (AzureError): encrypt failed",
    ]


def test_doctor_is_content_with_a_cluster_as_it_should_be(
    api: FakeApiServer, engine: FakeEngine, idstack: Idstack
) -> None:
    has_state(engine)
    api.documents[HOSTED_CLUSTER] = {"status": {"conditions": [{"type": "Available", "status": "True"}]}}

    printed = idstack("doctor", "--stage", "hosted-clusters", "--stack", "dev")

    assert (printed.code, printed.output) == (0, "dev: nothing is broken; 1 check\n")


@pytest.mark.parametrize(("side", "lines"), [("hypershift", 1), ("stack", 0)])
def test_a_stack_without_a_management_cluster_says_so_where_it_matters(
    api: FakeApiServer, engine: FakeEngine, idstack: Idstack, side: str, lines: int
) -> None:
    engine.has({**OUTPUTS, "clusterSide": side})

    printed = idstack("status", "--stack", "dev")

    assert printed.output.count("not read: the management cluster: the stack's configuration has no") == lines
