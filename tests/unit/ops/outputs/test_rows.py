"""Rows: stack outputs joined with what the probes report."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ops.outputs.rows import Row, rows
from ops.world.probes import ProbeResult, ProbeResults
from tests.unit.ops.stacks import NAMESPACE, OUTPUTS, output, refused, report

NOW = datetime(2026, 11, 21, 17, 0, tzinfo=UTC)


def only(identity: str, **changes: object) -> Row:
    """The row of one identity without probes, its output changed."""
    changed = output("managed-azure-ingress", "ingress-hc1-json", **changes)
    outputs: Any = {"hostedClusters": {"hc1": {"controlPlane": {identity: changed}}}}
    return rows(outputs, None)[0]


def test_rows_are_in_the_catalogues_order() -> None:
    assert [row.identity for row in rows(OUTPUTS, None)] == ["controlPlaneOperator", "ingress", "kms"]


def test_every_hosted_cluster_has_rows_of_its_own() -> None:
    one = OUTPUTS["hostedClusters"]["hc1"]
    both = rows({"hostedClusters": {"hc1": one, "hc2": one}}, None)
    assert [row.cluster for row in both] == ["hc1"] * 3 + ["hc2"] * 3


def test_a_shared_stack_has_no_rows() -> None:
    assert rows({"keyVaultName": "kv-test"}, None) == []


def test_an_identity_has_a_probe_for_each_mount_and_is_green_if_all_are() -> None:
    ready = ProbeResult("probe-kms-0", report())
    failing = ProbeResult("probe-kms-2-0", refused("AADSTS700027: not registered"))
    both = ProbeResults({(NAMESPACE, "probe-kms"): ready, (NAMESPACE, "probe-kms-2"): ready})
    one = ProbeResults({(NAMESPACE, "probe-kms"): ready, (NAMESPACE, "probe-kms-2"): failing})
    assert [row.is_green for row in rows(OUTPUTS, both)] == [False, False, True]
    assert rows(OUTPUTS, one)[2].probes == (ready, failing)
    assert not rows(OUTPUTS, one)[2].is_green


def test_without_probes_nothing_is_green() -> None:
    assert not any(row.is_green for row in rows(OUTPUTS, None))


def test_days_left_are_rounded_down_and_negative_afterwards() -> None:
    assert only("ingress").days_left(NOW) == 89, "seven minutes short of ninety days"
    assert only("ingress", notAfter="2026-11-21T16:00:00Z").days_left(NOW) == -1
    assert only("ingress", notAfter=None).days_left(NOW) is None


def test_the_document_for_scripts_has_every_fact_of_the_row() -> None:
    probes = ProbeResults({(NAMESPACE, "probe-ingress"): ProbeResult("probe-ingress-0", report())})
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


def test_dates_are_utc_whatever_offset_they_were_written_with() -> None:
    row = only("ingress", notAfter="2027-02-19T18:50:04+02:00", renewAfter=None)
    assert row.not_after == datetime(2027, 2, 19, 16, 50, 4, tzinfo=UTC)
    document = row.to_json(NOW)
    assert (document["notAfter"], document["renewAfter"]) == ("2027-02-19T16:50:04Z", None)
