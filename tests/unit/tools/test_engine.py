"""Which Pulumi CLI is taken, and the error if there is no way to one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.unit.tools.conftest import Machine
from tools import engine
from tools.steps import SetupError


def chosen(machine: Machine) -> tuple[Path, str, str]:
    """Folder, origin and version in the record."""
    record = json.loads((machine.tools / "engine.json").read_text())
    return Path(record["bin"]), record["origin"], record["version"]


@pytest.mark.parametrize("version", ["3.100.2", "3.101.0", "4.0.0"])
def test_a_pulumi_on_path_that_is_new_enough_is_taken(machine: Machine, version: str) -> None:
    machine.add_pulumi(machine.first, version)
    machine.add_go()
    assert engine.ensure() == f"{version} from PATH"
    assert chosen(machine) == (machine.first, "from PATH", version)
    assert set(machine.ran()) == {"pulumi version"}, "neither a release nor Go is asked for"
    assert engine.ensure() == f"up to date, {version} from PATH"
    assert machine.ran() == []


def test_another_first_on_path_is_taken_with_its_language_host_behind_a_link(machine: Machine) -> None:
    machine.add_pulumi(machine.second, "3.101.0")
    engine.ensure()
    machine.add_pulumi(machine.root / "installed", "3.102.0")
    machine.first.mkdir()
    (machine.first / "pulumi").symlink_to(machine.root / "installed/pulumi")
    assert engine.ensure() == "3.102.0 from PATH"
    assert chosen(machine)[0] == machine.root / "installed"


@pytest.mark.parametrize("version", ["3.100.1", "3.99.0", "2.200.0"])
def test_a_pulumi_that_is_too_old_is_passed_over_for_the_release(machine: Machine, version: str) -> None:
    machine.add_pulumi(machine.first, version)
    machine.add_go()
    machine.add_release("3.100.2")
    assert engine.ensure() == "3.100.2 downloaded"
    folder, _, _ = chosen(machine)
    assert sorted(file.name for file in folder.iterdir() if os.access(file, os.X_OK)) == [
        "pulumi",
        "pulumi-language-python",
        "pulumi-language-python-exec",
    ]
    assert not any(line.startswith("go ") for line in machine.ran()), "a build comes last"
    assert list(machine.tools.glob("*.tar.gz")) == []


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("", "pulumi has no Python language host beside it"),
        ("echo not for this processor; exit 126", "pulumi does not run (not for this processor)"),
    ],
)
def test_a_pulumi_without_language_host_or_that_does_not_run_is_passed_over(
    machine: Machine, capsys: pytest.CaptureFixture[str], script: str, told: str
) -> None:
    machine.add_pulumi(machine.first, "3.101.0", host=bool(script))
    if script:
        machine.add(machine.first / "pulumi", script)
    machine.add(machine.second / "pulumi-language-python")  # the engine would not look there
    machine.add_release("3.100.2")
    assert engine.ensure() == "3.100.2 downloaded"
    assert f"{machine.first}/{told}" in capsys.readouterr().out


def test_where_a_pinned_one_is_wanted_the_one_on_path_is_not_even_run(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.add_pulumi(machine.first, "3.101.0")
    machine.add_release("3.100.2")
    assert engine.ensure() == "3.101.0 from PATH"
    machine.ran()
    monkeypatch.setenv("IDSTACK_PULUMI", "pinned")
    assert engine.ensure() == "3.100.2 downloaded"
    assert engine.ensure() == "up to date, 3.100.2 downloaded"
    assert set(machine.ran()) == {"pulumi version"}
    assert chosen(machine)[0].parent == machine.tools
    monkeypatch.setenv("IDSTACK_PULUMI", "latest")
    with pytest.raises(SetupError, match='IDSTACK_PULUMI: found "latest"; accepted: pinned, or leave it out to take'):
        engine.ensure()


@pytest.mark.parametrize(
    ("commands", "checksum", "told"),
    [
        ((), None, "checksums.txt has no checksum of pulumi-v3.100.2-linux-x64.tar.gz"),
        ((), "0" * 64, f"; checksums.txt has {'0' * 64}"),
        (("pulumi",), "", "linux-x64.tar.gz has no Pulumi CLI with a Python language host"),
    ],
    ids=["no checksum", "another checksum", "no language host"],
)
def test_an_archive_that_is_not_the_pinned_cli_is_not_used(
    machine: Machine, capsys: pytest.CaptureFixture[str], commands: tuple[str, ...], checksum: str | None, told: str
) -> None:
    archive = machine.add_release("3.100.2", *commands, pinned=checksum == "")
    if checksum:
        machine.pin(archive.name, checksum)
    machine.add_go()
    assert engine.ensure() == "3.100.2 built from tools/pulumi"
    assert told in capsys.readouterr().out
    assert not list(machine.tools.glob("*.tar.gz"))
    assert not (machine.tools / f"pulumi-{'0' * 64}").exists()


def test_where_only_go_modules_can_be_had_the_pinned_ones_are_built(machine: Machine) -> None:
    machine.add_go()
    assert engine.ensure() == "3.100.2 built from tools/pulumi"
    folder, origin, version = chosen(machine)
    assert (origin, version) == ("built from tools/pulumi", "3.100.2")
    assert sorted(file.name for file in folder.iterdir() if os.access(file, os.X_OK)) == [
        "pulumi",
        "pulumi-language-python",
        "pulumi-language-python-exec",
        "pulumi-language-python-host",
        "pulumi-resource-pulumi-python",
    ]
    assert [line for line in machine.ran() if line == "go build"] == ["go build"] * 2
    (folder / "pulumi").unlink()
    assert engine.ensure() == "3.100.2 built from tools/pulumi", "a CLI that is gone is had again"
    (machine.root / "pulumi/go.mod").write_text("go 1.25.11\nrequire github.com/pulumi/pulumi/pkg/v3 v3.102.0\n")
    assert engine.ensure() == "3.102.0 built from tools/pulumi", "another pin is considered again"


def test_an_earlier_build_comes_before_a_download(machine: Machine) -> None:
    machine.add_go()
    engine.ensure()
    (machine.tools / "engine.json").unlink()
    machine.add_release("3.100.2")
    machine.ran()
    assert engine.ensure() == "3.100.2 built from tools/pulumi earlier"
    assert machine.ran() == []


def test_without_any_way_to_a_cli_the_message_names_three_ways_out(machine: Machine) -> None:
    machine.add_pulumi(machine.first, "3.99.0")
    with pytest.raises(SetupError) as caught:
        engine.ensure()
    assert str(caught.value) == (
        "the Pulumi CLI cannot be installed on this machine.\n"
        f"  PATH: {machine.first}/pulumi is 3.99.0, older than 3.100.2\n"
        "  download: checksums.txt has no checksum of pulumi-v3.100.2-linux-x64.tar.gz\n"
        "  build: no go on PATH\n"
        "Ways out, one is enough:\n"
        "  - install Pulumi 3.100.2 or newer (pulumi.com/docs/install), or copy an installation onto PATH, and run\n"
        "    `make setup` again without IDSTACK_PULUMI\n"
        "  - let this machine reach Pulumi's releases on GitHub\n"
        "  - install Go 1.25.11 or newer and let it reach a Go module proxy (go env GOPROXY)"
    )
    assert not (machine.tools / "engine.json").exists()
    machine.add(machine.first / "go", "echo 'go: module lookup disabled by GOPROXY=off'; exit 1")
    with pytest.raises(SetupError, match=r"build: the Go build failed:\ngo: module lookup disabled by GOPROXY=off"):
        engine.ensure()
    assert list(machine.tools.glob("*/pulumi")) == []
