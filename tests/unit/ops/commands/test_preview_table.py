"""`idstack preview --markdown`: a short table by identity, for a comment on a pull request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.ops.conftest import FakeEngine, Idstack

_TYPES = {
    "certificate": "idstack:index:Certificate",
    "secret": "idstack:index:CredentialSecret",
    "role": "azure-native:authorization:RoleAssignment",
}


def _event(operation: str, kind: str, name: str, **state: Any) -> str:
    urn = f"urn:pulumi:dev::idstack::{_TYPES[kind]}::{name}"
    metadata = {"op": operation, "urn": urn, "type": _TYPES[kind], "new": {"custom": True, **state}}
    return json.dumps({"resourcePreEvent": {"metadata": metadata}})


def _error(text: str) -> str:
    return json.dumps({"diagnosticEvent": {"severity": "error", "message": text}})


@pytest.fixture
def stack(engine: FakeEngine) -> FakeEngine:
    engine.has({"hostedClusters": {"gone": {"controlPlane": {}, "hostedClusterSpec": {"infraID": "gone"}}}})
    return engine


def test_the_table_has_a_line_for_each_identity_that_changes(
    stack: FakeEngine, idstack: Idstack, tmp_path: Path
) -> None:
    events = [
        _event("create", "certificate", "hc1-disk-entra-b"),
        _event("update", "secret", "hc1-disk-credential-secret"),
        _event("delete", "role", "gone-ingress-role"),
        _event("same", "role", "hc1-file-role"),
    ]
    (stack.folder / "events").write_text("\n".join(events))

    assert idstack("preview", "--stack", "dev", "--hold", "--markdown", str(tmp_path / "table.md")).code == 0

    assert (tmp_path / "table.md").read_text().splitlines() == [
        "**+1 &#126;1 -1 (+ created, &#126; updated, +- replaced, - deleted)**",
        "",
        "| cluster | identity | principal | certificate | secret | role | class | mount | other |",
        "|---|---|---|---|---|---|---|---|---|",
        "| gone | ingress |  |  |  | -1 |  |  |  |",
        "| hc1 | disk |  | +1 | &#126;1 |  |  |  |  |",
        "",
        "**replaced or deleted**",
        "",
        "| resource | operation | because | protected |",
        "|---|---|---|---|",
        "| gone-ingress-role | delete | the configuration or the program has it no more |  |",
    ]


def test_without_changes_it_says_so(stack: FakeEngine, idstack: Idstack, tmp_path: Path) -> None:
    (stack.folder / "events").write_text("")

    idstack("preview", "--stack", "dev", "--markdown", str(tmp_path / "table.md"))

    assert (tmp_path / "table.md").read_text() == "**no changes**\n"


def test_the_reason_of_a_failed_preview_is_in_it_and_is_no_markdown(
    stack: FakeEngine, idstack: Idstack, tmp_path: Path
) -> None:
    (stack.folder / "events").write_text(_error("a *bad*\nvalue"))
    stack.ends_with(1)

    assert idstack("preview", "--stack", "dev", "--markdown", str(tmp_path / "table.md")).code == 1

    assert (tmp_path / "table.md").read_text() == "**failed**\n\n    a *bad*\n    value\n"


def test_a_table_that_cannot_be_written_is_refused(stack: FakeEngine, idstack: Idstack) -> None:
    printed = idstack("preview", "--stack", "dev", "--markdown", "/no/such/folder/table.md")

    assert printed.code == 1
    assert printed.error.splitlines()[-1].startswith("idstack: the table cannot be written: ")
