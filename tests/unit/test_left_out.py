"""A run says what it leaves out by the marks of tests, and which command runs that."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import PROJECT

_TESTS = """
import pytest

def test_quick(): pass

@pytest.mark.slow
def test_slow(): pass

@pytest.mark.slow
@pytest.mark.parametrize("number", range(2))
def test_slow_twice(number): pass

@pytest.mark.storm
def test_storm(): pass
"""
_CONFTEST = """
from tests.left_out import LeftOut

def pytest_configure(config):
    config.pluginmanager.register(LeftOut())
"""


def _last_lines(folder: Path, *arguments: str) -> list[str]:
    (folder / "conftest.py").write_text(_CONFTEST, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n  slow\n  storm\n", encoding="utf-8")
    (folder / "test_some.py").write_text(_TESTS, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(
        command, cwd=folder, env={"PYTHONPATH": str(PROJECT)}, capture_output=True, text=True, check=True
    )
    return [line for line in done.stdout.splitlines() if line.startswith("left out")]


@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_line_counts_each_test_once_however_many_workers_there_are(workers: str, tmp_path: Path) -> None:
    line = "left out: 3 tests of `make slow`, 1 test of `make storm`"

    assert _last_lines(tmp_path, "-n", workers, "-m", "not slow and not storm") == [line]


def test_what_make_test_runs_is_left_out_of_other_runs(tmp_path: Path) -> None:
    line = "left out: 1 test of `make test`, 1 test of `make storm`"

    assert _last_lines(tmp_path, "-m", "slow") == [line]


def test_a_run_of_everything_leaves_nothing_out(tmp_path: Path) -> None:
    assert _last_lines(tmp_path) == []
