"""What is printed, whole; and what scripts get.

`make golden` writes the files again: read their diff as a user would.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ops.doctor.diagnosis import diagnose
from ops.doctor.registry import CHECKS
from ops.doctor.report import report
from ops.world.seen import Unread
from ops.world.stack_world import StackWorld
from tests.unit import golden_report
from tests.unit.ops.doctor import worlds
from tests.unit.ops.doctor.faults import FAULTS

GOLDEN = Path(__file__).parent / "golden"


def reviewed(name: str, text: str) -> None:
    """Assert that this is the reviewed text; with UPDATE_GOLDEN=1 write it."""
    file = GOLDEN / f"{name}.txt"
    if golden_report.IS_REWRITING:
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8"), f"{file.name} differs; see `make golden`"


def broken(*names: str) -> StackWorld:
    world = worlds.healthy()
    for each in FAULTS:
        if each.name in names:
            world = each.change(world)
    return world


def printed(world: StackWorld) -> str:
    return f"{report(world.stack, diagnose(world, CHECKS)).plain}\n"


def test_a_sound_stack_is_one_line() -> None:
    reviewed("sound", printed(worlds.healthy()))


def test_faults_of_several_identities_are_told_one_after_the_other() -> None:
    reviewed("faults", printed(broken("locked by a killed run", "secret disabled", "registration removed")))


def test_what_breaks_every_identity_is_told_once() -> None:
    reviewed("reader", printed(broken("reader's role gone")))


def test_what_could_not_be_seen_is_told_once_with_what_it_takes() -> None:
    world = broken("class deleted")
    refused = Unread(
        "reading https://graph.microsoft.com/v1.0/applications: 403 Authorization_RequestDenied", is_forbidden=True
    )
    reviewed("unseen", printed(replace(world, applications=dict.fromkeys(world.applications, refused))))


@pytest.mark.parametrize("name", [each.name for each in FAULTS])
def test_each_fault_has_its_reviewed_evidence_and_fix(name: str) -> None:
    """One file for all: the words of every check."""
    results = diagnose(broken(name), CHECKS)
    _section(name, [f"{each.evidence}\n  fix: {each.fix}" for each in results if each.status == "broken"])


def test_the_reviewed_file_has_no_fault_that_is_gone() -> None:
    assert list(_read()) == sorted(each.name for each in FAULTS)


def _read() -> dict[str, list[str]]:
    file = GOLDEN / "every-fault.json"
    found: dict[str, list[str]] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return found


def _section(name: str, lines: Sequence[str]) -> None:
    file, found = GOLDEN / "every-fault.json", _read()
    if golden_report.IS_REWRITING:
        found[name] = list(lines)
        file.write_text(json.dumps({key: found[key] for key in sorted(found)}, indent=1) + "\n", encoding="utf-8")
    assert found.get(name) == list(lines), f"{name} differs; see `make golden`"


def test_scripts_get_seven_members_of_each_result() -> None:
    results = [each.to_json() for each in diagnose(broken("secret disabled"), CHECKS)]

    [found] = [each for each in json.loads(json.dumps(results)) if each["status"] == "broken"]
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
