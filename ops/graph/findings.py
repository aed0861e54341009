"""What the doctor has found, on the nodes that it is about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ops.doctor.diagnosis import CheckResult
from ops.graph.model import GraphNode, Health, facts, together


def blamed(node: GraphNode, findings: Iterable[CheckResult]) -> GraphNode:
    """The node with the causes as its reason and the fixes among its facts; the same without findings."""
    findings = tuple(findings)
    if not findings:
        return node
    fix = together(finding.fix for finding in findings)
    return replace(
        node,
        health=Health.ERROR,
        reason=together([*(finding.evidence for finding in findings), node.reason]),
        facts=(*facts(fix=fix), *node.facts),
    )
