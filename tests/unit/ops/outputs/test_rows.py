"""Rows: stack outputs joined with what the probes report, also those of service accounts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rich.console import Console

from ops.outputs.rows import Row, has_probes, rows, token_probes, token_rows
from ops.outputs.tables import tokens
from ops.world.cluster_state import ProbeResult, ProbeResults
from tests.unit.ops.outputs.test_tables import MOUNTS, granted
from tests.unit.ops.stacks import NAMESPACE, OUTPUTS, answered, output, refused, report

NOW = datetime(2026, 11, 21, 17, 0, tzinfo=UTC)


def only(identity: str, **changes: object) -> Row:
    """The row of one identity without probes, its output changed."""
    changed = output("managed-azure-ingress", "ingress-hc1-json", **changes)
    outputs: Any = {"hostedClusters": {"hc1": {"controlPlane": {identity: changed}}}}
    return rows(outputs, None)[0]


def test_rows_are_those_of_each_hosted_cluster_in_the_catalogues_order() -> None:
    one, order = OUTPUTS["hostedClusters"]["hc1"], ["controlPlaneOperator", "ingress", "kms"]
    both = rows({"hostedClusters": {"hc1": one, "hc2": one}}, None)
    assert [(row.cluster, row.identity) for row in both] == [
        (name, field) for name in ("hc1", "hc2") for field in order
    ]
    assert not any(row.is_green for row in both), "without probes"
    assert rows({"keyVaultName": "kv-test"}, None) == []


def test_an_identity_has_a_probe_for_each_mount_and_is_green_if_all_are() -> None:
    ready = answered("probe-kms-0", report())
    failing = answered("probe-kms-2-0", refused("AADSTS700027: not registered"))
    both = ProbeResults({(NAMESPACE, "probe-kms"): ready, (NAMESPACE, "probe-kms-2"): ready})
    one = ProbeResults({(NAMESPACE, "probe-kms"): ready, (NAMESPACE, "probe-kms-2"): failing})
    assert [row.is_green for row in rows(OUTPUTS, both)] == [False, False, True]
    assert rows(OUTPUTS, one)[2].probes == (ready, failing)
    assert not rows(OUTPUTS, one)[2].is_green


def test_days_left_are_rounded_down_and_negative_afterwards() -> None:
    assert only("ingress").days_left(NOW) == 89, "seven minutes short of ninety days"
    assert only("ingress", notAfter="2026-11-21T16:00:00Z").days_left(NOW) == -1
    assert only("ingress", notAfter=None).days_left(NOW) is None
    row = only("ingress", notAfter="2027-02-19T18:50:04+02:00", renewAfter=None)
    assert row.to_json(NOW).items() >= {"notAfter": "2027-02-19T16:50:04Z", "renewAfter": None}.items()


def test_the_document_for_scripts_has_every_fact_of_the_row() -> None:
    probes = ProbeResults({(NAMESPACE, "probe-ingress"): answered("probe-ingress-0", report())})
    assert rows(OUTPUTS, probes)[1].to_json(NOW) == {
        "cluster": "hc1",
        "identity": "ingress",
        "clientID": "6f2c1e7a-0000-4000-8000-00000000bbbb",
        "secret": "ingress-hc1-json",
        "secretProviderClass": "managed-azure-ingress",
        "notAfter": "2027-02-19T16:50:04Z",
        "renewAfter": "2027-01-05T16:50:04Z",
        "daysLeft": 89,
        "thumbprint": "9F3A6C1B0D2E4F5A6B7C8D9E0F1A2B3C4D5E6F70",
        "mounts": [{"pod": "probe-ingress-0", "report": report(), "problem": None}],
    }


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
        "report": proven.report and proven.report.document,
        "problem": None,
    }


def test_a_stack_of_workload_identities_alone_creates_no_probes() -> None:
    alone: Any = {"clusterSide": "stack", "hostedClusters": {"hc2": SELF_MANAGED}}
    assert token_probes(OF_HYPERSHIFT | {"clusterSide": "stack"}) == PROBES

    assert not has_probes(alone)
    assert has_probes(alone | {"hostedClusters": {"hc1": MANAGED, "hc2": SELF_MANAGED}})
    assert has_probes({"clusterSide": "stack"}), "of a shared stack, for its clusters to come"


def test_the_table_shows_file_proof_call_and_entras_code() -> None:
    proven = granted("probe-ingress", TOKEN, "Microsoft.Network/virtualNetworks/subnets/read")
    unknown = answered("probe-node-pool-mgmt", refused(WITHDRAWN, f"{MOUNTS}/clusters-hc2/p{TOKEN}"), MOUNTS)
    console = Console(width=250, record=True)

    console.print(tokens(token_rows(PROBES, probed(probe_ingress=proven, probe_node_pool_mgmt=unknown))))

    lines = [" ".join(line.split()) for line in console.export_text().splitlines()]
    assert f"hc2 nodePoolManagement kube-system:capi-provider {TOKEN} {WITHDRAWN} not yet" in lines
    account = "openshift-ingress-operator:ingress-operator"
    assert f"hc2 ingress {account} {TOKEN} ok 200 Microsoft.Network/virtualNetworks/subnets/read" in lines
