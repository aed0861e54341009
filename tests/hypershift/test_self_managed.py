"""A self-managed cluster of the stack's with HyperShift's own operators: they accept what the stack writes."""

from __future__ import annotations

from pathlib import Path

from tests.engine.test_workload_identities import self_managed
from tests.hypershift.management_cluster import conditions
from tests.hypershift.test_operators import HOSTED, steps


def test_hypershift_accepts_a_cluster_with_workload_identities(binaries: Path, tmp_path: Path) -> None:
    with steps(binaries, tmp_path) as made:
        stack, cluster = made.stack, made.cluster()
        [managed] = stack.configuration("hostedClusters")
        described = self_managed(managed, name="hc1", infraID="hc1-infra", topology="Public", issuerName="hc1wi")
        described |= {key: managed[key] for key in ("dns", "externalDnsDomain")}
        del described["private"]
        with stack.configured(clusterSide="hypershift", hostedClusters=[described]):
            stack.up()
            made.install(cluster, stack.idstack("export", "hypershift").stdout.split("\n\n"))
        image = {"releaseImage": made.registry.release, "pullSecret": "hc1-pull-secret"}
        changed = {**described, "hostedCluster": image}
        with stack.configured(clusterSide="hypershift", hostedClusters=[changed]):
            stack.up()
            cluster.wait("condition=ValidConfiguration", "hostedcluster/hc1", namespace="clusters")
            hosted = made.http.get(HOSTED).json()

    found = conditions(hosted)
    authentication = hosted["spec"]["platform"]["azure"]["azureAuthenticationConfig"]

    assert authentication["azureAuthenticationConfigType"] == "WorkloadIdentities"
    assert found["ValidConfiguration"][0] == "True", found
