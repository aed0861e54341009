"""`idstack preview --markdown`: a short table by identity, for a comment on a pull request."""

from __future__ import annotations

from pathlib import Path

from tests.unit.ops.conftest import FakeEngine, Idstack


def test_a_failed_preview_has_a_table_too(engine: FakeEngine, idstack: Idstack, tmp_path: Path) -> None:
    (engine.folder / "events").write_text('{"diagnosticEvent": {"severity": "error", "message": "a bad value"}}')
    engine.ends_with(1)

    assert idstack("preview", "--stack", "dev", "--markdown", str(tmp_path / "table.md")).code == 1

    assert (tmp_path / "table.md").read_text() == "**failed**\n\n    a bad value\n"


def test_a_table_that_cannot_be_written_is_refused(engine: FakeEngine, idstack: Idstack) -> None:
    printed = idstack("preview", "--stack", "dev", "--markdown", "/no/such/folder/table.md")

    assert printed.code == 1
    assert printed.error.splitlines()[-1].startswith("idstack: the table cannot be written: ")
