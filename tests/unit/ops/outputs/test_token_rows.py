"""The rows of service accounts: a stack's outputs joined with the reports of the probes that have their tokens."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from ops.outputs.rows import has_probes, token_probes, token_rows
from ops.outputs.tables import tokens
from ops.world.probes import ProbeResult, ProbeResults
from tests.unit.ops.outputs.test_tables import MOUNTS, granted
from tests.unit.ops.stacks import OUTPUTS, refused

CLIENT = "6f2c1e7a-0000-4000-8000-00000000aaaa"
TOKEN = "/var/run/secrets/openshift/serviceaccount/token"
SELF_MANAGED: Any = {
    "namespace": "clusters",
    "controlPlane": {},
    "dataPlane": {"ingress": CLIENT, "nodePoolManagement": CLIENT},
}
MANAGED: Any = {**OUTPUTS["hostedClusters"]["hc1"], "dataPlane": {"diskMSIClientID": CLIENT}}
OF_HYPERSHIFT: Any = {"clusterSide": "hypershift", "hostedClusters": {"hc1": MANAGED, "hc2": SELF_MANAGED}}
PROBES = token_probes(OF_HYPERSHIFT)
WITHDRAWN = "AADSTS7000272: The issuer does not publish the key."


def probed(**probes: ProbeResult) -> ProbeResults:
    return ProbeResults({("clusters-hc2", name.replace("_", "-")): probe for name, probe in probes.items()})


def test_each_service_account_of_a_self_managed_cluster_has_a_row() -> None:
    proven = granted("probe-ingress", TOKEN, "Microsoft.Network/virtualNetworks/subnets/read")

    found = token_rows(PROBES, probed(probe_ingress=proven))

    assert [(row.of.row.field, row.probe.is_ready, row.probe.problem) for row in found] == [
        ("nodePoolManagement", False, "no pod in clusters-hc2"),
        ("ingress", True, None),
    ]
    assert found[1].to_json() == {
        "cluster": "hc2",
        "identity": "ingress",
        "clientID": CLIENT,
        "subject": "system:serviceaccount:openshift-ingress-operator:ingress-operator",
        "pod": "probe-ingress",
        "report": proven.report,
        "problem": None,
    }


def test_a_stack_with_probes_of_its_own_has_the_same_rows() -> None:
    assert token_probes(OF_HYPERSHIFT | {"clusterSide": "stack"}) == PROBES


def test_a_stack_of_workload_identities_alone_creates_no_probes() -> None:
    alone: Any = {"clusterSide": "stack", "hostedClusters": {"hc2": SELF_MANAGED}}

    assert not has_probes(alone)
    assert has_probes(alone | {"hostedClusters": {"hc1": MANAGED, "hc2": SELF_MANAGED}})
    assert has_probes({"clusterSide": "stack"}), "of a shared stack, for its clusters to come"


def test_the_table_shows_file_proof_call_and_entras_code() -> None:
    proven = granted("probe-ingress", TOKEN, "Microsoft.Network/virtualNetworks/subnets/read")
    unknown = ProbeResult("probe-node-pool-mgmt", refused(WITHDRAWN, f"{MOUNTS}/clusters-hc2/p{TOKEN}"))
    console = Console(width=250, record=True)

    console.print(tokens(token_rows(PROBES, probed(probe_ingress=proven, probe_node_pool_mgmt=unknown)), MOUNTS, 250))

    lines = [" ".join(line.split()) for line in console.export_text().splitlines()]
    assert f"hc2 nodePoolManagement kube-system:capi-provider {TOKEN} {WITHDRAWN} not yet" in lines
    account = "openshift-ingress-operator:ingress-operator"
    assert f"hc2 ingress {account} {TOKEN} ok 200 Microsoft.Network/virtualNetworks/subnets/read" in lines
