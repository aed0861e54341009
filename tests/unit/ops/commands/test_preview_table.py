"""The table by identity at the end of `idstack preview`, and with `--markdown` for a comment on a pull request."""

from __future__ import annotations

from pathlib import Path

from tests.unit.ops.conftest import FakeEngine, Idstack
from tests.unit.ops.outputs.test_plan import event


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


def test_a_table_that_cannot_be_written_is_refused(engine: FakeEngine, idstack: Idstack) -> None:
    printed = idstack("preview", "--stack", "dev", "--markdown", "/no/such/folder/table.md")

    assert printed.code == 1
    assert printed.error.splitlines()[-1].startswith("idstack: the table cannot be written: ")
