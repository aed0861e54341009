"""A change of a stack's configuration, rehearsed by the real command on the real engine."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from identity.catalogue import CONTROL_PLANE
from tests.engine.rehearsals import Rehearsals, processes_in, rehearsals
from tests.engine.test_workload_identities import self_managed

_CLIENTS = sum(row.enabled_by_default for row in CONTROL_PLANE)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsals]:
    with rehearsals(tmp_path_factory.mktemp("rehearsals")) as found:
        yield found


@pytest.mark.slow
def test_another_role_set_and_new_clusters_of_both_ways_refuse_nobody(project: Rehearsals) -> None:
    before = project.start("prod")
    cluster = project.cluster(
        "prod", name="hc2", infraID="hc2-prod", issuerURL="https://hc2prodoidc.blob.core.windows.net/hc2prodoidc"
    )
    other = self_managed(cluster, name="hc3", infraID="hc3-prod", issuerName="hc3prodoidc")
    clusters = [*before["hostedClusters"], cluster, other]
    project.write("prod", {**before, "roles": "hypershift", "hostedClusters": clusters})

    found = project.rehearse("prod")

    assert (found.code, found.findings, found.failed()) == (0, [], {})
    assert len(found.document["signIns"]) == _CLIENTS
    assert all(each["worked"] > 1 for each in found.document["signIns"])
    lost = {(each["type"].rpartition(":")[2], each["operation"]) for each in found.document["lost"]}
    assert lost == {("RoleAssignment", "replace"), ("RoleAssignment", "delete")}, "another role, or a wider scope"
    assert {each["identity"] for each in found.document["plan"] if each["cluster"] == "hc3"} >= {
        row.field for row in CONTROL_PLANE if row.workload
    }
    assert set(found.operations("role")) == {"create", "replace", "delete"}
    assert set(found.operations("secret")) == {"create"}
    assert (found.document["secondUp"], found.document["leftByDown"]) == ([], [])
    assert found.document["stacks"] == ["prod"]
    assert "local-prod" not in str(found.document)
    assert list(project.temporary.iterdir()) == []


@pytest.mark.nightly
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_rehearsal_leaves_nothing_behind(project: Rehearsals, by: signal.Signals) -> None:
    project.start("prod")

    printed = project.interrupted("prod", at="base:", by=by)

    assert "Traceback" not in printed
    assert list(project.temporary.iterdir()) == []
    assert processes_in(project.temporary) == []
