"""`status` and `graph` are not green while the doctor finds something broken, or the stack is not complete."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ops.doctor.checks.check import CheckResult, CheckStatus, Stage
from ops.doctor.examination import Examination, NotSignedInError
from ops.world.seen import SeenLock
from tests.unit.ops.conftest import FakeEngine, Idstack
from tests.unit.ops.graph_world import GraphWorld


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
    finding: Any = {
        **{"cluster": "hc1", "identity": "ingress", "stage": Stage.VAULT, "check": "secret"},
        **{"status": CheckStatus.BROKEN, "evidence": "the current version is disabled"},
        "fix": "`az keyvault secret set-attributes`",
    }
    return CheckResult(**{**finding, **changes})


def test_what_the_doctor_finds_is_told_with_its_fix_and_is_an_error(
    idstack: Idstack, findings: list[CheckResult]
) -> None:
    findings.append(broken())

    printed, document = idstack("status", "--stack", "dev"), idstack("status", "--stack", "dev", "--json")
    graph = idstack("graph", "--stack", "dev", "--format", "json")

    assert (printed.code, document.code, graph.code) == (1, 1, 1)
    assert "fix    `az keyvault secret set-attributes`" in graph.error
    assert "broken  vault (secret): hc1 ingress\n    found  the current version is disabled" in printed.output
    assert "fix    `az keyvault secret set-attributes`" in printed.output
    assert "idstack doctor --stack dev" in printed.error
    assert [finding["check"] for finding in json.loads(document.output)["findings"]] == ["secret"]


@pytest.mark.parametrize("command", [["status"], ["graph", "--format", "json"]])
def test_what_could_not_be_read_is_named_and_is_not_sound(
    idstack: Idstack, findings: list[CheckResult], command: list[str]
) -> None:
    reasons = ["403: it takes Reader", "404: no such pod"]
    findings += [broken(status=CheckStatus.NOT_CHECKED, evidence=reason) for reason in reasons]

    printed = idstack(*command, "--stack", "dev")

    assert printed.code == 3
    what, is_shown = "idstack: not read, so that it may be broken (2):", command == ["status"]
    assert printed.error.endswith(f"{what} the output says why\n" if is_shown else "\n".join([what, *reasons, ""]))
    assert is_shown != all(reason in printed.error for reason in reasons)
    assert (f"\n\nnot read: {reasons[0]}\nnot read: {reasons[1]}\n" in printed.output) == is_shown


@pytest.mark.parametrize("command", ["status", "graph"])
def test_a_stack_that_was_never_brought_up_is_an_error(
    engine: FakeEngine, idstack: Idstack, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.has({})
    printed = idstack(command, "--stack", "dev")
    assert (printed.code, printed.output) == (1, "")
    assert printed.error == (
        "idstack: no `up` of the stack dev has completed, so there is nothing to show; its backend is "
        "https://api.pulumi.com. `.venv/bin/idstack up --stack dev` brings it up\n"
    )
    began = datetime(2026, 11, 21, 17, 13, 57, tzinfo=UTC)
    for runs, verb in ((True, "is"), (None, "may be")):
        lock = SeenLock(owner="root@runner-7 (pid 7)", since=began, runs=runs)
        monkeypatch.setattr("ops.doctor.examination.read_locks", lambda *_, lock=lock: (lock,))
        told = f"a run {verb} in progress since 2026-11-21T17:13:57Z, by root@runner-7 (pid 7)"
        assert told in idstack(command, "--stack", "dev").error


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


@pytest.mark.parametrize(
    ("words", "is_written"), [("status --stack dev --metrics", False), ("graph --stack dev --output", True)]
)
def test_of_a_stack_that_is_not_complete_a_graph_is_written_and_no_metrics(
    idstack: Idstack, findings: list[CheckResult], tmp_path: Path, words: str, is_written: bool
) -> None:
    findings.append(broken(cluster=None, identity=None, stage=Stage.BACKEND, check="last-run"))

    printed = idstack(*words.split(), str(tmp_path / "file"))

    assert (printed.code, (tmp_path / "file").exists()) == (1, is_written)
    assert "the stack is not complete" in printed.error


@pytest.mark.parametrize(("check", "kind"), [("vault", "vault"), ("reader-role", "keyVaultUser")])
def test_a_finding_about_the_stack_is_on_the_node_that_it_is_about(
    idstack: Idstack, findings: list[CheckResult], check: str, kind: str
) -> None:
    findings.append(broken(cluster=None, identity=None, check=check))

    nodes = json.loads(idstack("graph", "--stack", "dev", "--format", "json").output)["nodes"]

    assert {node["kind"] for node in nodes if node["health"] == "error"} == {kind}


def test_one_cluster_and_one_identity_are_shown_alone(idstack: Idstack, engine: FakeEngine) -> None:
    document = json.loads(idstack("status", "--stack", "dev", "--identity", "hc1/ingress", "--json").output)

    assert [(row["cluster"], row["identity"]) for row in document["rows"]] == [("hc1", "ingress")]
    refused = idstack("status", "--stack", "dev", "--cluster", "hc2", "--identity", "hc1/ingress")
    assert (refused.code, "is not of the cluster hc2" in refused.error) == (2, True)
    of_all = idstack("status", "--stack", "dev", "--cluster", "hc1", "--metrics", "x.prom")
    assert (of_all.code, "leave out --cluster and --identity" in of_all.error) == (2, True)


def test_without_a_sign_in_status_shows_what_was_delivered(
    idstack: Idstack, monkeypatch: pytest.MonkeyPatch, engine: FakeEngine
) -> None:
    def refuse(*_: object) -> Examination:
        raise NotSignedInError("signing in to Azure: AADSTS700082; `az login`")

    monkeypatch.setattr("ops.doctor.examination.examine", refuse)

    printed, document = idstack("status", "--stack", "dev"), idstack("status", "--stack", "dev", "--json")

    assert (printed.code, printed.error) == (1, "idstack: signing in to Azure: AADSTS700082; `az login`\n")
    assert "ingress-hc1-json" in printed.output
    assert "as the last run delivered them: nothing was read in Azure" in printed.output
    assert (document.code, document.output) == (1, "")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        *(
            (f"{command} --stack acme/idstack/dev", "accepted: the name of the stack alone, 'dev'")
            for command in ("status", "graph", "doctor", "up", "preview", "renew", "rehearse")
        ),
        ("status --stack acme/idstack/dev", "`.venv/bin/idstack pulumi --stack dev -- org set-default"),
        ("graph --stack dev -o json", "./json is the file of that name"),
        ("backup --stack dev -o json", "./json is the file of that name"),
    ],
)
def test_neither_a_qualified_name_nor_a_format_is_taken_for_another_name(
    idstack: Idstack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, told: str
) -> None:
    monkeypatch.chdir(tmp_path)

    printed = idstack(*words.split())

    assert (printed.code, told in " ".join(printed.error.replace("│", "").split())) == (2, True)
    assert list(tmp_path.glob("json")) == []
