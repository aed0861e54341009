"""What is printed, whole; and what scripts get.

`make golden` writes the files again: read their diff as a user would.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from ops.doctor.checks.check import diagnose
from ops.doctor.examination import CHECKS
from ops.doctor.report import report
from ops.world.seen import StackWorld, Unread
from tests.unit.golden_report import reviewed_file
from tests.unit.ops.doctor import worlds
from tests.unit.ops.doctor.faults import FAULTS

GOLDEN = Path(__file__).parent / "golden"


def broken(*names: str) -> StackWorld:
    world = worlds.healthy()
    for fault in FAULTS:
        if fault.name in names:
            world = fault.change(world)
    return world


def reviewed(name: str, world: StackWorld) -> None:
    reviewed_file(GOLDEN / f"{name}.txt", f"{report(world.stack, diagnose(world, CHECKS)).plain}\n")


def test_faults_of_several_identities_are_told_one_after_the_other() -> None:
    reviewed("faults", broken("locked by a killed run", "secret disabled", "registration removed"))


def test_what_breaks_every_identity_is_told_once() -> None:
    reviewed("reader", broken("reader's role gone"))


def test_what_could_not_be_seen_is_told_once_with_what_it_takes() -> None:
    world = broken("class deleted")
    refused = Unread(
        "reading https://graph.microsoft.com/v1.0/applications: 403 Authorization_RequestDenied", is_forbidden=True
    )
    reviewed("unseen", replace(world, applications=dict.fromkeys(world.applications, refused)))


def test_each_fault_has_its_reviewed_evidence_and_fix() -> None:
    """The words of every check."""
    found = {
        name: [
            f"{result.evidence}\n  fix: {result.fix}"
            for result in diagnose(broken(name), CHECKS)
            if result.status == "broken"
        ]
        for name in sorted(fault.name for fault in FAULTS)
    }
    reviewed_file(GOLDEN / "every-fault.json", json.dumps(found, indent=1) + "\n")


def test_scripts_get_seven_members_of_each_result() -> None:
    results = [result.to_json() for result in diagnose(broken("secret disabled"), CHECKS)]

    [found] = [load for load in json.loads(json.dumps(results)) if load["status"] == "broken"]
    assert found == {
        "cluster": "hc1",
        "identity": "ingress",
        "stage": "vault",
        "check": "secret",
        "status": "broken",
        "evidence": found["evidence"],
        "fix": (
            "`az keyvault secret set-attributes --vault-name kv-idstack-local --name ingress-hc1-json --enabled true`"
        ),
    }
    assert "is disabled" in found["evidence"]
