"""`idstack preview --markdown`: a short table by identity, for a comment on a pull request."""

from __future__ import annotations

import json
from pathlib import Path

from tests.unit.ops.conftest import FakeEngine, Idstack
from tests.unit.ops.states import below, identity

_TYPES = {
    "certificate": "idstack:index:Certificate",
    "secret": "idstack:index:CredentialSecret",
    "role": "azure-native:authorization:RoleAssignment",
}


def _event(operation: str, kind: str, name: str, cluster: str = "hc1", field: str = "disk") -> str:
    made = below(identity(cluster, field), _TYPES[kind], name)
    events = [*(("same", parent) for parent in made.line), (operation, made)]
    return "\n".join(
        json.dumps(
            {
                "resourcePreEvent": {
                    "metadata": {
                        "op": op,
                        "urn": resource["urn"],
                        "new": {"custom": resource is made, "parent": resource["parent"]},
                    }
                }
            }
        )
        for op, resource in events
    )


def _error(text: str) -> str:
    return json.dumps({"diagnosticEvent": {"severity": "error", "message": text}})


def test_the_table_has_a_line_for_each_identity_that_changes(
    engine: FakeEngine, idstack: Idstack, tmp_path: Path
) -> None:
    events = [
        _event("create", "certificate", "hc1-disk-entra-b"),
        _event("update", "secret", "hc1-disk-credential-secret"),
        _event("delete", "role", "gone-ingress-role", "gone", "ingress"),
        _event("same", "role", "hc1-file-role", "hc1", "file"),
    ]
    (engine.folder / "events").write_text("\n".join(events))

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
        "| resource | operation | reason | protected |",
        "|---|---|---|---|",
        "| gone-ingress-role | delete | no longer in the configuration or the program |  |",
    ]


def test_without_changes_it_says_so(engine: FakeEngine, idstack: Idstack, tmp_path: Path) -> None:
    (engine.folder / "events").write_text("")

    idstack("preview", "--stack", "dev", "--markdown", str(tmp_path / "table.md"))

    assert (tmp_path / "table.md").read_text() == "**no changes**\n"


def test_the_reason_of_a_failed_preview_is_in_it_and_is_no_markdown(
    engine: FakeEngine, idstack: Idstack, tmp_path: Path
) -> None:
    (engine.folder / "events").write_text(_error("a *bad*\nvalue"))
    engine.ends_with(1)

    assert idstack("preview", "--stack", "dev", "--markdown", str(tmp_path / "table.md")).code == 1

    assert (tmp_path / "table.md").read_text() == "**failed**\n\n    a *bad*\n    value\n"


def test_a_table_that_cannot_be_written_is_refused(engine: FakeEngine, idstack: Idstack) -> None:
    printed = idstack("preview", "--stack", "dev", "--markdown", "/no/such/folder/table.md")

    assert printed.code == 1
    assert printed.error.splitlines()[-1].startswith("idstack: the table cannot be written: ")
