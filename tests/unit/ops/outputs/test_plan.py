"""The engine's event log by identity, secret, role, class and mount."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ops.outputs.plan import Operation, ResourceKind, ResourceStep, cell, counts_by_owner, markdown, read
from ops.world.ownership import ResourceOwner
from tests.unit.ops.conftest import FakeEngine, Idstack
from tests.unit.ops.states import below, grants, identity

_ROLE = "azure-native:authorization:RoleAssignment"
_DEPLOYMENT = "kubernetes:apps/v1:Deployment"


def event(op: str, kind: str = _ROLE, name: str = "hc1-kms-roles-managed", **metadata: Any) -> str:
    """A line of the log: a step begins."""
    state = {"custom": True, "inputs": {}}
    urn = f"urn:pulumi:local-dev::idstack::idstack:azure:RoleGrants${kind}::{name}"
    found = {"op": op, "urn": urn, "old": state, "new": state, **metadata}
    return json.dumps({"sequence": 1, "resourcePreEvent": {"metadata": found}})


def only(*lines: str) -> ResourceStep:
    """The one step of these lines."""
    [found] = read(lines, "dev").steps
    return found


@pytest.mark.parametrize(
    ("op", "operation"),
    [
        ("create", Operation.CREATE),
        ("import", Operation.CREATE),
        ("update", Operation.UPDATE),
        ("delete", Operation.DELETE),
        ("replace", Operation.REPLACE),
    ],
)
def test_an_operation_of_the_engine_is_one_of_four(op: str, operation: Operation) -> None:
    assert only(event(op)).operation is operation


def test_the_parts_of_a_replacement_are_one_step_with_its_reason() -> None:
    parts = [event(op, keys=["scope"], diffs=["scope", "description"]) for op in ("create-replacement", "replace")]
    step = only(*parts, event("delete-replaced"))

    assert (step.operation, step.properties, step.kind) == (Operation.REPLACE, ("scope",), ResourceKind.ROLE)
    update = only(event("update", detailedDiff={"spec.template": {}, "tags.team": {}}, diffs=["spec", "tags"]))
    assert update.properties == ("spec.template", "tags.team"), "an update names what differs"
    assert only(event("delete", old={"custom": True, "protect": True})).is_protected
    assert not only(event("delete")).is_protected


@pytest.mark.parametrize(
    "line",
    [
        event("same"),
        event("read"),
        event("create", "pulumi:providers:azure-native"),
        event("create", new={"custom": False}),
        '{"resourcePreEvent": {"meta',
        json.dumps({"summaryEvent": {}}),
    ],
    ids=["same", "read", "a provider", "a component", "cut off", "another event"],
)
def test_what_changes_no_resource_is_no_step(line: str) -> None:
    assert read([line], "dev").steps == ()


@pytest.mark.parametrize(
    ("old", "new", "restarts"),
    [
        ({"template": {"a": 1}}, {"template": {"a": 2}}, True),
        ({"template": {"a": 1}, "replicas": 1}, {"template": {"a": 1}, "replicas": 2}, False),
    ],
)
def test_pods_start_anew_with_another_template(old: dict[str, Any], new: dict[str, Any], restarts: bool) -> None:
    states: dict[str, Any] = {
        key: {"custom": True, "inputs": {"spec": spec}} for key, spec in (("old", old), ("new", new))
    }

    assert only(event("update", _DEPLOYMENT, **states)).restarts is restarts
    assert not only(event("create", _DEPLOYMENT)).restarts
    assert only(event("replace", _DEPLOYMENT)).restarts


def test_errors_come_without_colours_and_once() -> None:
    line = json.dumps({"diagnosticEvent": {"severity": "error", "message": "<{%reset%}>it is <{%bold%}>gone\n"}})
    other = json.dumps({"diagnosticEvent": {"severity": "info", "message": "fine"}})

    assert read([line, other, line], "dev").errors == ("it is gone",)


def test_a_step_is_its_identitys_by_the_parents_in_the_log() -> None:
    role = below(grants(identity("hc1", "kms")), _ROLE, "a-name")

    def line(op: str, resource: Any, *, custom: bool = False) -> str:
        metadata = {"op": op, "urn": resource["urn"], "new": {"custom": custom, "parent": resource["parent"]}}
        return json.dumps({"resourcePreEvent": {"metadata": metadata}})

    step = only(*(line("same", parent) for parent in role.line), line("create", role, custom=True))

    assert step.owner == ResourceOwner("hc1", "kms")


def test_the_plan_counts_by_identity_and_kind() -> None:
    kms = ResourceOwner("hc1", "kms")
    role = ResourceStep("prod", Operation.REPLACE, _ROLE, "hc1-kms-roles-managed", kms)
    secret = ResourceStep("prod", Operation.UPDATE, "idstack:index:CredentialSecret", "hc1-kms-credential-secret", kms)
    vault = ResourceStep("prod", Operation.DELETE, "azure-native:keyvault:Vault", "vault-vault", ResourceOwner())

    counts = counts_by_owner([role, secret, role, vault])

    assert list(counts) == [ResourceOwner(), kms]
    assert counts[kms] == {ResourceKind.ROLE: {Operation.REPLACE: 2}, ResourceKind.SECRET: {Operation.UPDATE: 1}}
    assert cell({Operation.REPLACE: 2, Operation.CREATE: 1}) == "+1 +-2"


def line(op: str, kind: str, name: str, cluster: str, field: str) -> list[str]:
    """The events of a step of an identity: of its parents, and its own."""
    made = below(identity(cluster, field), kind, name)
    return [
        event("same", urn=parent["urn"], new={"custom": False, "parent": parent["parent"]}) for parent in made.line
    ] + [event(op, urn=made["urn"], new={"custom": True, "parent": made["parent"]})]


def test_a_table_has_a_line_for_each_identity_that_changes() -> None:
    lines = [
        *line("create", "idstack:index:Certificate", "hc1-disk-entra-b", "hc1", "disk"),
        *line("update", "idstack:index:CredentialSecret", "hc1-disk-credential-secret", "hc1", "disk"),
        *line("delete", _ROLE, "gone-ingress-role", "gone", "ingress"),
        *line("same", _ROLE, "hc1-file-role", "hc1", "file"),
    ]

    assert markdown(read(lines, "dev")).splitlines() == [
        "**+1 &#126;1 -1 (+ created, &#126; updated, +- replaced, - deleted)**",
        "",
        "| cluster | identity | principal | certificate | secret | role | class | mount | other |",
        "|---|---|---|---|---|---|---|---|---|",
        "| gone | ingress |  |  |  | -1 |  |  |  |",
        "| hc1 | disk |  | +1 | &#126;1 |  |  |  |  |",
        "",
        "**replaced or deleted**",
        "",
        "| resource | operation | reason | protected |",
        "|---|---|---|---|",
        "| gone-ingress-role | delete | no longer in the configuration or the program |  |",
    ]


def test_a_plan_without_steps_has_no_table() -> None:
    error = {"diagnosticEvent": {"severity": "error", "message": "a *bad*\nvalue"}}

    assert markdown(read([], "dev")) == "**no changes**\n"
    assert markdown(read([json.dumps(error)], "dev")) == "**failed**\n\n    a *bad*\n    value\n"


def test_a_preview_ends_with_a_table_and_without_outputs(engine: FakeEngine, idstack: Idstack) -> None:
    engine.logs([event("update"), event("delete", name="hc1-file-roles-managed")])

    printed, document = (idstack("preview", "--stack", "dev", *options) for options in ([], ["--json"]))
    idstack("preview", "--stack", "dev", "--refresh", "--diff")

    lines = printed.output.splitlines()
    assert lines[1] == "plan (+ created, ~ updated, +- replaced, - deleted)"
    assert "replaced or deleted" in lines
    assert any(line.split()[:2] == ["hc1-file-roles-managed", "delete"] for line in lines)
    assert (printed.code, document.output) == (0, "")
    calls = [call for call in engine.calls if call.startswith("preview ")]
    assert ["--suppress-outputs" in call for call in calls] == [True, False, False], (
        "what a refresh finds is in the outputs"
    )


def test_a_failed_preview_has_a_table_too(engine: FakeEngine, idstack: Idstack, tmp_path: Path) -> None:
    (engine.folder / "events").write_text('{"diagnosticEvent": {"severity": "error", "message": "a bad value"}}')
    engine.ends_with(1)

    assert idstack("preview", "--stack", "dev", "--markdown", str(tmp_path / "table.md")).code == 1

    assert (tmp_path / "table.md").read_text() == "**failed**\n\n    a bad value\n"
    printed = idstack("preview", "--stack", "dev", "--markdown", "/no/such/folder/table.md")
    assert printed.code == 1
    assert printed.error.splitlines()[-1].startswith("idstack: the table cannot be written: ")
