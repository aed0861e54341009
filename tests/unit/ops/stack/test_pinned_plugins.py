"""Stacks on Azure: what the plugin cache lacks is installed by its checksum, and without one nothing starts."""

from __future__ import annotations

import platform
import re
import shutil
from importlib import metadata
from pathlib import Path

import pytest

from ops.stack.engine import Engine
from ops.stack.environment import ROOT
from ops.stack.errors import CommandError
from ops.stack.pinned_plugins import NAMES
from tests.unit.ops.conftest import FakeEngine

VERSION = {name: metadata.version(f"pulumi-{name}") for name in NAMES}
SUM = "0123456789abcdef" * 4


@pytest.fixture
def empty(engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache without plugins, on a machine of its own kind; returns the file with the checksums."""
    shutil.rmtree(tmp_path / "pulumi-home")
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    return tmp_path / "checksums.txt"


def pin(file: Path, name: str, version: str, machine: str = "darwin-arm64") -> None:
    """A line of tools/checksums.txt."""
    with file.open("a") as opened:
        opened.write(f"{SUM}  pulumi-resource-{name}-v{version}-{machine}.tar.gz\n")


def pin_all(file: Path) -> None:
    for name, version in VERSION.items():
        pin(file, name, version)


@pytest.mark.parametrize("command", ["up", "preview", "destroy", "refresh", "proposed"])
def test_every_command_installs_by_checksum_before_it_starts(engine: FakeEngine, empty: Path, command: str) -> None:
    pin_all(empty)

    getattr(Engine("dev"), command)()

    *installs, own = engine.calls
    assert installs == [f"plugin install resource {name} {VERSION[name]} --exact --checksum {SUM}" for name in NAMES]
    assert own.split()[0] == {"proposed": "preview"}.get(command, command)


def test_what_is_in_the_cache_is_not_installed_again(engine: FakeEngine) -> None:
    Engine("dev").preview()

    assert [call.split()[0] for call in engine.calls] == ["preview"]


def test_a_plugin_of_the_release_before_is_installed_as_long_as_it_is_pinned(
    engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    pin(tmp_path / "checksums.txt", "azuread", "1.2.3", "linux-amd64")
    pin(tmp_path / "checksums.txt", "azuread", "1.2.2", "darwin-arm64")

    Engine("dev").preview()

    assert engine.calls[:-1] == [f"plugin install resource azuread 1.2.3 --exact --checksum {SUM}"]


def test_without_a_checksum_nothing_is_downloaded_and_nothing_starts(engine: FakeEngine, empty: Path) -> None:
    pin(empty, "azuread", VERSION["azuread"])
    pin(empty, "kubernetes", VERSION["kubernetes"], "linux-amd64")

    with pytest.raises(CommandError) as refused:
        Engine("dev").preview()

    native, kubernetes = VERSION["azure-native"], VERSION["kubernetes"]
    assert refused.value.format_message() == (
        f"the provider plugins azure-native {native}, kubernetes {kubernetes} are not installed, and "
        "tools/checksums.txt has no checksum of theirs for this machine; nothing was downloaded and nothing was "
        "started.\n"
        "For everybody: `make pin`, compare the new lines with the releases on GitHub, commit them.\n"
        "For yourself, if you trust the download:\n"
        f"  pulumi plugin install resource azure-native {native}\n"
        f"  pulumi plugin install resource kubernetes {kubernetes}"
    )
    assert engine.calls == []


def test_a_download_that_fails_ends_the_command(engine: FakeEngine, empty: Path) -> None:
    pin_all(empty)
    script = engine.folder / "pulumi"
    script.write_text("#!/bin/sh\necho 'error: invalid checksum, expected 01, actual 02' >&2\nexit 1\n")

    with pytest.raises(CommandError) as refused:
        Engine("dev").preview()

    version = VERSION["azure-native"]
    assert refused.value.format_message() == (
        f"`pulumi plugin install resource azure-native {version}` failed: invalid checksum, expected 01, actual 02"
    )


def test_local_stacks_need_no_checksum(engine: FakeEngine, empty: Path, tmp_path: Path) -> None:
    for file in ("Pulumi.yaml", "Pulumi.local.yaml"):
        shutil.copy(ROOT / file, tmp_path / file)
    local = Engine("local", tmp_path)
    local.prepare()
    local.preview()

    assert not [call for call in engine.calls if call.startswith("plugin install")]


def test_every_line_of_the_file_is_a_checksum_of_an_archive() -> None:
    lines = (ROOT / "tools/checksums.txt").read_text(encoding="utf-8").splitlines()

    assert [line for line in lines if not line.startswith("#")]
    for line in lines:
        assert line.startswith("#") or re.fullmatch(
            r"[0-9a-f]{64}  pulumi-(resource-[a-z-]+-)?v[\d.]+-(linux|darwin)-(x64|amd64|arm64)\.tar\.gz", line
        ), line
