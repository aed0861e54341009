"""`idstack doctor`: what the stack needs on its cluster, and what is missing."""

from __future__ import annotations

from typing import Any

import pytest

from identity.access.kinds import AZURE_CLUSTER_IDENTITIES, HOSTED_CLUSTERS, SECRET_PROVIDER_CLASSES
from tests.unit.access_world import FakeApiServer
from tests.unit.hosts import Serve
from tests.unit.ops.cluster_access import reach
from tests.unit.ops.conftest import FakeEngine, Idstack


@pytest.fixture
def api(serve_plain: Serve, monkeypatch: pytest.MonkeyPatch) -> FakeApiServer:
    api = FakeApiServer()
    reach(monkeypatch, "ops.commands.doctor", serve_plain(api.app()))
    return api


def test_a_stack_that_lacks_nothing_is_told_so(engine: FakeEngine, idstack: Idstack, api: FakeApiServer) -> None:
    printed = idstack("doctor", "--stack", "dev")

    assert (printed.code, printed.error) == (0, "")
    assert printed.output.endswith("every permission and kind that the stack needs is there\n")


def test_a_kind_that_is_missing_is_named_with_what_brings_it(
    engine: FakeEngine, idstack: Idstack, api: FakeApiServer
) -> None:
    api.absent = {AZURE_CLUSTER_IDENTITIES.version}

    printed = idstack("doctor", "--stack", "dev")

    assert printed.code == 1
    assert printed.error == (
        "idstack: access: kinds: azureclusteridentities.infrastructure.cluster.x-k8s.io/v1beta1. "
        "Kinds: azureclusteridentities come with `hypershift install`\n"
    )


@pytest.mark.parametrize(
    ("configuration", "needed"),
    [
        ({"clusterSide": "hypershift", "hostedClusters": [{"name": "hc1"}]}, False),
        (
            {"clusterSide": "hypershift", "hostedClusters": [{"name": "hc1", "hostedCluster": {"file": "hc1.yaml"}}]},
            True,
        ),
    ],
)
def test_a_stack_needs_the_kinds_of_its_own_objects_alone(
    engine: FakeEngine, idstack: Idstack, api: FakeApiServer, configuration: dict[str, Any], needed: bool
) -> None:
    engine.configures(**configuration)
    api.absent = {each.version for each in (AZURE_CLUSTER_IDENTITIES, HOSTED_CLUSTERS, SECRET_PROVIDER_CLASSES)}

    printed = idstack("doctor", "--stack", "dev")

    assert ("hostedclusters.hypershift.openshift.io/v1beta1" in printed.error) == needed
    assert "secretproviderclasses" not in printed.error
