"""`idstack status`: what the management cluster reports, behind the credentials."""

from __future__ import annotations

import json

import pytest

from ops.stack.errors import CommandError
from tests.unit.access_world import FakeApiServer
from tests.unit.ops.cluster_access import CLUSTER
from tests.unit.ops.conftest import FakeEngine, Idstack, examined
from tests.unit.ops.world.test_cluster_state import HOSTED_CLUSTER, OUTPUTS, POD_STATUSES, VERSIONS, pod_status


@pytest.fixture
def api(cluster_api: FakeApiServer, monkeypatch: pytest.MonkeyPatch, engine: FakeEngine) -> FakeApiServer:
    """The cluster of a stack with one pod of an old version and a condition that is not as expected."""
    monkeypatch.setattr("ops.doctor.examination.examine", lambda engine, *_: examined(engine, VERSIONS))
    engine.has({**OUTPUTS, "managementClusterId": CLUSTER})
    engine.configures(managementCluster={"resourceGroup": "aks-dev", "name": "mgmt"})
    broken = {"type": "ValidAzureKMSConfig", "status": "False", "reason": "AzureError", "message": "encrypt failed"}
    cluster_api.documents[HOSTED_CLUSTER] = {"status": {"conditions": [broken]}}
    pods = [pod_status("ingress-operator-0", "managed-azure-ingress", "ingress-hc1-json", "1111")]
    cluster_api.documents[POD_STATUSES] = {"items": pods}
    return cluster_api


def test_scripts_get_them_beside_the_rows(api: FakeApiServer, idstack: Idstack) -> None:
    document = json.loads(idstack("status", "--stack", "dev", "--json").output)

    assert len(document["rows"]) == 2
    assert document["managementCluster"]["mounts"]["hc1"]["ingress"] == [
        {"pod": "ingress-operator-0", "version": "1111", "vaultVersion": "2222", "state": "old"}
    ]
    assert document["managementCluster"]["unread"] == []


def test_a_cluster_out_of_reach_is_a_line(
    api: FakeApiServer, idstack: Idstack, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise CommandError("AKS does not answer")

    monkeypatch.setattr("ops.access.clients.stack_access", refuse)

    printed = idstack("status", "--stack", "dev")

    assert (printed.code, "not read: the management cluster: AKS does not answer" in printed.output) == (0, True)


@pytest.mark.parametrize(("side", "lines"), [("hypershift", 1), ("stack", 0)])
def test_a_stack_without_a_management_cluster_says_so_where_it_matters(
    api: FakeApiServer, engine: FakeEngine, idstack: Idstack, side: str, lines: int
) -> None:
    engine.has({**OUTPUTS, "clusterSide": side})

    printed = idstack("status", "--stack", "dev")

    assert printed.output.count("not read: the management cluster: the stack's configuration has no") == lines
