"""Rules and dashboard ask for what is exported: every metric, and every label of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from identity.credentials.probe.metrics import Metrics
from ops.commands.status import render_metrics
from ops.outputs.rows import Row
from ops.world.azure import ManagedIdentityRow
from ops.world.cluster_state import MountedVersion, ProbeResult
from tests.architecture.source import ROOT
from tests.unit.ops.commands.test_metrics import shown

RULES: Final = yaml.safe_load((ROOT / "examples/monitoring/rules.yaml").read_text(encoding="utf-8"))
DASHBOARD: Final = json.loads((ROOT / "examples/monitoring/dashboard.json").read_text(encoding="utf-8"))
# What Prometheus itself adds to what it scrapes from a pod, with the usual relabelling of Kubernetes.
TARGET: Final = {"namespace", "pod", "job", "instance"}
NOW: Final = datetime(2026, 11, 23, tzinfo=UTC)
_METRIC: Final = re.compile(r"\bidstack_\w+")
_SELECTED: Final = re.compile(r"(idstack_\w+)\{([^}]*)\}")
_LABEL: Final = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_GROUPED: Final = re.compile(r"\b(?:by|without)\s*\(([^)]*)\)")


def exported() -> dict[str, set[str]]:
    """Labels by the name of each series that a probe or `status --metrics` exports, but for what Prometheus adds."""
    row = Row("hc1", "ingress", "c", "s", "p", NOW, NOW, None, (ProbeResult("pod", None, "no answer"),))
    identity = ManagedIdentityRow("hc1", "acrPull", "c", "id", "AcrPull", "exists", ())
    mounted = MountedVersion("hc1", "ingress", "pod", "v1", True, "v2")
    found: dict[str, set[str]] = {}
    for source in (Metrics().render(), render_metrics(shown(row, managed=(identity,), mounts=(mounted,)))):
        for family in text_string_to_metric_families(source.decode()):
            for sample in family.samples:
                found.setdefault(sample.name, set()).update(sample.labels)
    # A counter whose labels are known only when something happens.
    found["idstack_proof_calls_total"] = {"status"}
    return found


EXPORTED: Final = exported()


def _rules() -> Iterator[Mapping[str, Any]]:
    for group in RULES["groups"]:
        yield from group["rules"]


RULE_LIST: Final = list(_rules())


def _expressions() -> Iterator[tuple[str, str]]:
    for rule in RULE_LIST:
        yield rule["alert"], rule["expr"]
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for variable in DASHBOARD["templating"]["list"][1:]:
        yield variable["name"], variable["query"]["query"]


EXPRESSIONS: Final = list(_expressions())


@pytest.mark.parametrize(("title", "expression"), EXPRESSIONS, ids=[title for title, _ in EXPRESSIONS])
def test_an_expression_names_what_is_exported(title: str, expression: str) -> None:
    names = set(_METRIC.findall(expression))

    assert names, title
    assert names <= EXPORTED.keys()
    for name, selectors in _SELECTED.findall(expression):
        assert set(_LABEL.findall(selectors)) <= EXPORTED[name] | _added(name), expression
    for labels in _GROUPED.findall(expression):
        known = set[str]().union(*(EXPORTED[metric] | _added(metric) for metric in names))
        assert {part.strip() for part in labels.split(",")} <= known
    assert expression.count("(") == expression.count(")")


def _added(name: str) -> set[str]:
    return set() if name.startswith("idstack_status_") else TARGET


@pytest.mark.parametrize("rule", RULE_LIST, ids=lambda rule: rule["alert"])
def test_an_alert_speaks_of_labels_that_it_has(rule: Mapping[str, Any]) -> None:
    [name, *_] = _METRIC.findall(rule["expr"])
    spoken = set(re.findall(r"\$labels\.(\w+)", "".join(rule["annotations"].values())))

    assert spoken <= EXPORTED[name] | _added(name)
    assert rule["annotations"].keys() == {"summary", "description"}
    assert rule["labels"]["severity"] in ("warning", "critical")


def test_every_metric_of_a_probe_is_on_the_dashboard_or_in_a_rule() -> None:
    """But for how often it was made, which the library adds, and the begin of the validity."""
    named = {name for _, expression in EXPRESSIONS for name in _METRIC.findall(expression)}
    own = {name for name in EXPORTED if not name.endswith("_created")}

    assert own - named <= {"idstack_credential_not_before_seconds", "idstack_credential_pending_sign_ins_failed_total"}


def test_the_panels_have_numbers_of_their_own_and_known_labels() -> None:
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    assert {panel["datasource"]["uid"] for panel in DASHBOARD["panels"]} == {"${datasource}"}
    for target in (target for panel in DASHBOARD["panels"] for target in panel["targets"]):
        [name, *_] = _METRIC.findall(target["expr"])
        assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= EXPORTED[name] | _added(name)
