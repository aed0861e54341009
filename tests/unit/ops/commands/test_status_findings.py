"""`status` and `graph` are not green while the doctor finds something broken, or the stack is not complete."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ops.doctor.diagnosis import CheckResult, CheckStatus
from ops.doctor.examination import Examination
from ops.doctor.model.check import Stage
from tests.unit.ops.conftest import FakeEngine, Idstack
from tests.unit.ops.graph_world import GraphWorld

FINDING: Any = {
    "cluster": "hc1",
    "identity": "ingress",
    "stage": Stage.VAULT,
    "check": "secret",
    "status": CheckStatus.BROKEN,
    "evidence": "the current version is disabled",
    "fix": "`az keyvault secret set-attributes`",
}


@pytest.fixture(autouse=True)
def stack(engine: FakeEngine) -> FakeEngine:
    """A stack with one hosted cluster and no management cluster."""
    world = GraphWorld()
    world.add_cluster("hc1", days=300_000)
    sources: Any = world.sources()
    engine.has(sources.outputs)
    engine.has_resources(*sources.resources)
    return engine


def broken(**changes: Any) -> CheckResult:
    """What the doctor finds of a secret that is disabled."""
    return CheckResult(**{**FINDING, **changes})


def test_what_the_doctor_finds_is_told_with_its_fix_and_is_an_error(
    idstack: Idstack, findings: list[CheckResult]
) -> None:
    findings.append(broken())

    printed, document = idstack("status", "--stack", "dev"), idstack("status", "--stack", "dev", "--json")

    assert (printed.code, document.code) == (1, 1)
    assert "broken  vault (secret): hc1 ingress\n    found  the current version is disabled" in printed.output
    assert "fix    `az keyvault secret set-attributes`" in printed.output
    assert "idstack doctor --stack dev" in printed.error
    assert [finding["check"] for finding in json.loads(document.output)["findings"]] == ["secret"]


@pytest.mark.parametrize("command", [["status"], ["graph", "--format", "json"]])
def test_what_could_not_be_read_is_named_and_is_not_sound(
    idstack: Idstack, findings: list[CheckResult], command: list[str]
) -> None:
    findings.append(broken(status=CheckStatus.NOT_CHECKED, evidence="403: it takes Reader"))

    printed = idstack(*command, "--stack", "dev")

    assert printed.code == 3
    assert printed.error.endswith("idstack: not read, so that it may be broken (1):\n403: it takes Reader\n")


@pytest.mark.parametrize("command", ["status", "graph"])
def test_a_stack_that_was_never_brought_up_is_an_error(engine: FakeEngine, idstack: Idstack, command: str) -> None:
    engine.has({})
    printed = idstack(command, "--stack", "dev")
    assert (printed.code, printed.output) == (1, "")
    assert printed.error == (
        "idstack: no `up` of the stack dev has completed, so there is nothing to show; its backend is "
        "https://api.pulumi.com. `.venv/bin/idstack up --stack dev` brings it up\n"
    )


@pytest.mark.parametrize(
    ("place", "expected"),
    [(("hc1", "ingress"), None), (("hc1", "disk"), False), ((None, None), False), (("hc1", "kms"), True)],
    ids=["not-checked", "checked", "stack", "broken"],
)
def test_what_was_not_checked_is_neither_broken_nor_sound(
    place: tuple[str | None, str | None], expected: bool | None
) -> None:
    unchecked = {"status": CheckStatus.NOT_CHECKED}
    results = (broken(**unchecked), broken(identity="kms", **unchecked), broken(identity="kms"))

    assert Examination(results).is_broken(*place) is expected


def test_the_metrics_of_a_stack_that_is_not_complete_are_not_written(
    idstack: Idstack, findings: list[CheckResult], tmp_path: Path
) -> None:
    findings.append(broken(cluster=None, identity=None, stage=Stage.BACKEND, check="last-run"))
    file = tmp_path / "idstack.prom"

    printed = idstack("status", "--stack", "dev", "--metrics", str(file))

    assert printed.code == 1
    assert "the stack is not complete" in printed.error
    assert not file.exists()


def test_the_graph_has_the_cause_and_the_fix_on_its_node(idstack: Idstack, findings: list[CheckResult]) -> None:
    findings.append(broken())

    printed = idstack("graph", "--stack", "dev", "--format", "json")

    [secret] = [
        node
        for node in json.loads(printed.output)["nodes"]
        if (node["kind"], node["identity"]) == ("secret", "ingress")
    ]
    assert (printed.code, secret["health"]) == (1, "error")
    assert secret["reason"] == FINDING["evidence"]
    assert secret["facts"]["fix"] == FINDING["fix"]
    assert "fix    `az keyvault secret set-attributes`" in printed.error


@pytest.mark.parametrize(
    ("changes", "kind", "identity"),
    [
        ({"check": "role"}, "role", "ingress"),
        ({"check": "role"}, "identity", "ingress"),
        ({"check": "registration"}, "identity", "ingress"),
        ({"cluster": None, "identity": None, "check": "vault"}, "vault", None),
        ({"cluster": None, "identity": None, "check": "reader-role"}, "keyVaultUser", None),
    ],
    ids=["role", "role-of-identity", "registration", "vault", "reader"],
)
def test_each_finding_is_on_the_node_that_it_is_about(
    idstack: Idstack, findings: list[CheckResult], changes: Any, kind: str, identity: str | None
) -> None:
    findings.append(broken(**changes))

    nodes = json.loads(idstack("graph", "--stack", "dev", "--format", "json").output)["nodes"]

    found = [node for node in nodes if (node["kind"], node["identity"]) == (kind, identity)]
    assert found
    assert {node["health"] for node in found} == {"error"}


def test_a_graph_of_a_stack_that_is_not_complete_is_written_and_is_an_error(
    idstack: Idstack, findings: list[CheckResult], tmp_path: Path
) -> None:
    findings.append(broken(cluster=None, identity=None, stage=Stage.BACKEND, check="last-run"))
    file = tmp_path / "graph.html"

    printed = idstack("graph", "--stack", "dev", "--output", str(file))

    assert printed.code == 1
    assert file.exists()
    assert "the stack is not complete" in printed.error


@pytest.mark.parametrize(
    "words",
    [
        *(f"{command} --stack" for command in ("status", "graph", "doctor", "up", "preview", "renew")),
        "rehearse --stack",
    ],
)
def test_a_qualified_name_of_a_stack_is_refused_with_the_name_alone(idstack: Idstack, words: str) -> None:
    printed = idstack(*words.split(), "acme/idstack/dev")

    assert printed.code == 2
    error = " ".join(printed.error.replace("│", "").split())
    assert "accepted: the name of the stack alone, 'dev'" in error
    assert "`.venv/bin/idstack pulumi --stack dev -- org set-default" in error
