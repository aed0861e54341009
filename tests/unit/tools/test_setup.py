"""Steps, their hashes, and how set-up ends."""

from __future__ import annotations

import fcntl
import os
import sys
from pathlib import Path

import pytest

from tests.unit.tools.conftest import Machine
from tools import setup, steps
from tools.steps import ProcessError, SetupError, fingerprint, run


def test_a_fingerprint_depends_on_every_part_and_on_where_one_ends(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    file.write_text("a")
    assert fingerprint([file, "b"]) == fingerprint(["a", "b"])
    assert len({fingerprint(parts) for parts in (["a", "b"], ["ab"], ["ab", ""], ["b", "a"], [])}) == 5
    before = fingerprint([file])
    file.write_text("b")
    assert fingerprint([file]) != before


def test_a_failed_command_reports_the_end_of_its_output() -> None:
    count = "import sys\nfor line in range(40): print('line', line)\nsys.exit('the reason')"
    with pytest.raises(ProcessError) as caught:
        run([sys.executable, "-u", "-c", count])
    assert str(caught.value).splitlines() == [*(f"line {line}" for line in range(26, 40)), "the reason"]
    with pytest.raises(ProcessError, match="exit code 7"):
        run([sys.executable, "-c", "raise SystemExit(7)"])


def test_a_command_that_prints_nothing_still_gives_a_sign_of_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(end := tmp_path / "end")
    said: list[str] = []

    def report(text: str) -> None:
        if not said:
            end.write_text("go on\n")
        said.append(text)

    monkeypatch.setattr(steps, "_REPORT_EVERY_SECONDS", 0.01)
    monkeypatch.setattr(steps, "report", report)

    assert run(["cat", end]) == "go on"
    assert said[0].startswith("  cat, ")


def test_a_step_without_a_way_out_ends_set_up_with_code_1(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> str:
        raise SetupError("no way.\nWays out: one")

    monkeypatch.setattr(setup, "TOOLS", machine.tools)
    monkeypatch.setattr(setup, "_STEPS", {"packages": lambda: "up to date", "pulumi": fail, "never": fail})
    assert setup.main() == 1
    printed = capsys.readouterr()
    assert printed.out.startswith("setup: packages: up to date (")
    assert printed.err == "\nsetup: no way.\nWays out: one\n"


def test_the_control_plane_is_built_for_those_who_ask(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert list(setup._STEPS) == ["packages", "pulumi"], "packages come before the engine"
    monkeypatch.setattr(setup, "TOOLS", machine.tools)
    monkeypatch.setattr(setup, "_STEPS", {"packages": lambda: "up to date"})
    monkeypatch.setattr(setup, "_EXTRAS", {"cluster": lambda: "built"})
    assert setup.main() == 0
    assert "cluster" not in capsys.readouterr().out
    assert setup.main(["cluster"]) == 0
    assert "setup: cluster: built (" in capsys.readouterr().out
    assert setup.main(["castle"]) == 1
    assert capsys.readouterr().err == "setup: unknown extras: castle; known are cluster\n"


def test_a_run_says_at_once_whom_it_waits_for(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    held = (machine.tools / "lock").open("w")
    held.write("process 7 (setup cluster)")
    held.flush()
    fcntl.flock(held, fcntl.LOCK_EX)

    def report(message: str) -> None:
        said.append(message)
        held.close()  # and the other has ended

    monkeypatch.setattr(setup, "TOOLS", machine.tools)
    monkeypatch.setattr(setup, "_STEPS", {})
    monkeypatch.setattr(setup, "report", report)
    assert setup.main() == 0
    assert said == ["waiting for process 7 (setup cluster) of this checkout to end"]
    assert (machine.tools / "lock").read_text() == f"process {os.getpid()} (setup)"
