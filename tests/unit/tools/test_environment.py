"""The virtual environment is made once for each lock."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest

from tests.unit.tools.conftest import Machine
from tools import environment
from tools.steps import ROOT, SetupError


@pytest.fixture(autouse=True)
def interpreter(machine: Machine) -> None:
    """The environment has a Python already."""
    machine.add(machine.venv / "bin/python")
    (machine.venv / "lib/python3/site-packages").mkdir(parents=True)


def test_uv_comes_first_and_a_second_run_runs_nothing(machine: Machine) -> None:
    machine.add(machine.first / "uv")
    assert environment.ensure() == "installed into .venv"
    assert machine.ran() == ["uv pip", "python -m"]
    assert environment.ensure() == "up to date"
    assert machine.ran() == []


def test_without_uv_the_environments_own_pip_installs(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert environment.ensure() == "installed into .venv"
    assert machine.ran() == ["python -m", "python -m"]
    assert "with pip, as uv is not on PATH" in capsys.readouterr().out
    # The local cloud is importable as an editable install is.
    assert (machine.venv / "lib/python3/site-packages/localcloud.pth").read_text() == f"{ROOT / 'cloud'}\n"
    machine.lock.write_text("rich==15.0.1\n")
    assert environment.ensure() == "installed into .venv", "it is another lock"
    assert machine.ran() == ["python -m", "python -m"]


def test_of_pips_settings_only_the_way_to_an_index_counts(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.add(machine.venv / "bin/python", f'env | grep ^PIP_ | sort > "{machine.root}/$3"')
    own = {"USER": "1", "TARGET": "/elsewhere", "CONSTRAINT": "old.txt", "INDEX_URL": "https://own"}
    for name, value in own.items():
        monkeypatch.setenv(f"PIP_{name}", value)

    environment.ensure()

    found = set((machine.root / "install").read_text().split())
    assert found >= {"PIP_USER=0", "PIP_INDEX_URL=https://own"}
    assert not found & {"PIP_TARGET=/elsewhere", "PIP_CONSTRAINT=old.txt"}


def test_a_failed_installation_reports_why_and_is_tried_again(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment.ensure()
    former = machine.lock.read_text()
    machine.lock.write_text("rich==15.0.1\n")
    machine.add(machine.first / "uv", "echo 'error: no index can be reached'; exit 2")
    for _ in range(2):
        with pytest.raises(SetupError, match=r"(?s)error: no index can be reached.*Ways out: reach a package index"):
            environment.ensure()
    assert machine.ran().count("uv pip") == 2
    machine.lock.write_text(former)
    usage = shutil.disk_usage(machine.root)._replace(free=60 << 20)
    with monkeypatch.context() as patch:
        patch.setattr("shutil.disk_usage", lambda _: usage)
        with pytest.raises(SetupError, match=r"take 900 MB, and the disk of .* has 60 MB left"):
            environment.ensure()
    assert machine.ran() == [], "that is said before the download"
    machine.add(machine.first / "uv")
    assert environment.ensure() == "installed into .venv", "after half an installation the former lock is, too"


def test_what_the_program_imports_is_compiled(machine: Machine) -> None:
    machine.add(machine.venv / "bin/python", f'echo "$*" >> "{machine.root}/arguments"')
    environment.ensure()
    compiled = (machine.root / "arguments").read_text().splitlines()[-1]
    others = re.compile(compiled.split()[compiled.split().index("-x") + 1])
    modules = ("keyvault/vault.py", "network/__init__.py", "datafactory/factory.py", "__init__.py", "_utilities.py")
    assert [module for module in modules if others.search(f"lib/pulumi_azure_native/{module}")] == [modules[2]]
    assert not others.search("lib/pulumi_kubernetes/core/v1/pod.py")


def test_an_environment_that_lost_its_python_is_made_again(machine: Machine) -> None:
    python = machine.venv / "bin/python"
    machine.add(machine.first / "uv", f'if [ "$1" = venv ]; then cp "{python}.kept" "{python}"; fi')
    environment.ensure()
    python.rename(f"{python}.kept")
    machine.ran()
    environment.ensure()
    assert machine.ran() == ["uv venv", "uv pip", "python -m"]


def test_the_idstack_command_runs_the_checkout_from_any_directory(machine: Machine) -> None:
    environment.ensure()
    machine.add(machine.venv / "bin/python", 'echo "$PYTHONPATH $*"')
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [machine.venv / "bin/idstack", "status", "--json"],
        cwd="/",
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{ROOT} -P -m ops status --json\n"
