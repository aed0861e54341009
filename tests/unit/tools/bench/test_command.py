"""`python -m tools.bench`: what it prints, how it ends, and what it charges a command with."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.bench import __main__ as command
from tools.bench.figures import Figure, Limit
from tools.bench.measure import CommandFailedError, in_turn, run

GOOD = Figure(name="good", unit="", ours=1, peer=1, peer_name="peer", limit=Limit("at most", 1.1))
BAD = Figure(name="bad", unit="", ours=2, peer=1, peer_name="peer", limit=Limit("at most", 1.1))
# A process whose child uses CPU: the child's is counted once it was waited for.
SPENDING = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'sum(range(20_000_000))'])"


def test_a_part_can_be_measured_by_itself(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(command, "_PARTS", {"a": lambda: [GOOD], "b": lambda: [BAD]})
    command.main(["a"])
    output = capsys.readouterr().out
    assert "good" in output
    assert "bad" not in output


def test_a_part_that_fails_or_misses_its_limit_ends_the_run_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> list[Figure]:
        raise CommandFailedError("pulumi up: code 1")

    for parts, told in (
        ({"a": lambda: [GOOD], "b": lambda: [BAD]}, "limits missed: bad"),
        ({"a": fail, "b": lambda: [GOOD]}, "a failed: pulumi up: code 1"),
    ):
        monkeypatch.setattr(command, "_PARTS", parts)
        with pytest.raises(SystemExit) as ended:
            command.main(as_json=True)
        output = capsys.readouterr()
        assert (ended.value.code, told in output.err) == (1, True)
        assert all(load["holds"] is (load["name"] == "good") for load in json.loads(output.out))


def test_what_a_commands_children_use_is_charged_to_it(tmp_path: Path) -> None:
    idle = run([sys.executable, "-c", ""], directory=tmp_path, environment=os.environ)
    spending = run([sys.executable, "-c", SPENDING], directory=tmp_path, environment=os.environ)
    assert spending.user > idle.user + 0.1


def test_a_command_that_fails_reports_why(tmp_path: Path) -> None:
    with pytest.raises(CommandFailedError, match=r"code 3\nno vault"):
        run(
            [sys.executable, "-c", "print('no vault'); raise SystemExit(3)"], directory=tmp_path, environment=os.environ
        )


def test_measures_are_called_in_turn() -> None:
    called: list[str] = []

    def measure(name: str) -> Callable[[], str]:
        def measured() -> str:
            called.append(name)
            return name

        return measured

    assert in_turn(2, measure("a"), measure("b")) == [["a", "a"], ["b", "b"]]
    assert called == ["a", "b", "a", "b"]
