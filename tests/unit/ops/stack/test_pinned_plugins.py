"""Stacks on Azure: what the plugin cache lacks is installed by its checksum, and without one nothing starts."""

from __future__ import annotations

import os
import platform
import re
import shutil
import tempfile
from importlib import metadata
from pathlib import Path

import pytest

from ops.stack.engine import Engine
from ops.stack.environment import ROOT, variables
from ops.stack.errors import CommandError
from ops.stack.plugins import NAMES, cached, install_pinned
from tests.unit.ops.conftest import FakeEngine
from tests.unit.ops.stack.releases import Releases
from tools.downloads import this_platform

VERSION = {name: metadata.version(f"pulumi-{name}") for name in NAMES}


@pytest.fixture
def releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Releases:
    """Nothing is published yet; temporary folders lie in the test's own."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return Releases.in_folder(tmp_path, monkeypatch)


@pytest.fixture
def empty(engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache without plugins, on a machine of its own kind."""
    shutil.rmtree(tmp_path / "pulumi-home")
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "machine", lambda: "arm64")


def pin_all(releases: Releases) -> None:
    for name, version in VERSION.items():
        releases.publish(name, version)


def installed(folder: Path, calls: list[str]) -> list[str]:
    """The calls, with the temporary folder's name left out."""
    return [re.sub(rf"{re.escape(str(folder))}/temporary/idstack-plugin-[^/]+/", "", call) for call in calls]


def unpacked(name: str, version: str, machine: str = "darwin-arm64") -> str:
    """How the engine is called once an archive is there."""
    archive = f"pulumi-resource-{name}-v{version}-{machine}.tar.gz"
    return f"plugin install resource {name} {version} --exact --file {archive}"


@pytest.mark.parametrize(
    ("command", "is_on_github"),
    [*((command, True) for command in ("up", "preview", "destroy", "refresh", "proposed")), ("preview", False)],
)
@pytest.mark.usefixtures("empty")
def test_every_command_installs_by_checksum_before_it_starts(
    engine: FakeEngine, releases: Releases, tmp_path: Path, command: str, is_on_github: bool
) -> None:
    pin_all(releases)
    if not is_on_github:  # Pulumi's site has them, too
        shutil.rmtree(releases.github)

    getattr(Engine("dev"), command)()

    *installs, own = engine.calls
    assert installed(tmp_path, installs) == [unpacked(name, VERSION[name]) for name in NAMES]
    assert own.split()[0] == {"proposed": "preview"}.get(command, command)
    assert not list((tmp_path / "temporary").iterdir()), "no archive is left"


def test_a_plugin_of_the_release_before_is_installed_as_long_as_it_is_pinned(
    engine: FakeEngine, releases: Releases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    releases.publish("azuread", "1.2.3", "linux-amd64")
    releases.publish("azuread", "1.2.2", "darwin-arm64")

    Engine("dev").preview()

    assert installed(tmp_path, engine.calls[:-1]) == [unpacked("azuread", "1.2.3", "linux-amd64")]


@pytest.mark.usefixtures("empty")
def test_an_archive_with_another_checksum_never_reaches_the_engine(
    engine: FakeEngine, releases: Releases, tmp_path: Path
) -> None:
    pin_all(releases)
    (engine.folder / "pulumi").write_text("#!/bin/sh\necho 'error: unpacking: gzip: invalid header' >&2\nexit 1\n")
    with pytest.raises(CommandError) as refused:
        Engine("dev").preview()
    call = unpacked("azure-native", VERSION["azure-native"])
    told = f"`pulumi {call}` failed: unpacking: gzip: invalid header"
    assert installed(tmp_path, [str(refused.value)]) == [told], "one that it cannot unpack ends the command"
    for place in (releases.github, releases.pulumi):
        for archive in place.glob("*azure-native*"):
            archive.write_bytes(b"another")

    with pytest.raises(CommandError) as refused:
        Engine("dev").preview()

    message = str(refused.value)
    assert message.startswith(f"the azure-native plugin {VERSION['azure-native']} is not available: ")
    assert message.count(" has the SHA-256 ") == 2, "both places are named"
    assert engine.calls == []


@pytest.mark.usefixtures("empty")
def test_without_a_checksum_nothing_is_downloaded_and_nothing_starts(engine: FakeEngine, releases: Releases) -> None:
    releases.publish("azuread", VERSION["azuread"])
    releases.publish("kubernetes", VERSION["kubernetes"], "linux-amd64")

    with pytest.raises(CommandError) as refused:
        Engine("dev").preview()

    native, kubernetes = VERSION["azure-native"], VERSION["kubernetes"]
    assert str(refused.value) == (
        f"the provider plugins azure-native {native}, kubernetes {kubernetes} are not installed, and "
        "tools/checksums.txt has no checksum of them for this machine; nothing was downloaded and nothing was "
        "started.\n"
        "For everybody: `make pin`, compare the new lines with the releases on GitHub, commit them.\n"
        "For yourself, if you trust the download:\n"
        f"  .venv/bin/idstack pulumi --stack dev -- plugin install resource azure-native {native}\n"
        f"  .venv/bin/idstack pulumi --stack dev -- plugin install resource kubernetes {kubernetes}"
    )
    assert engine.calls == []


def test_the_engine_itself_unpacks_the_archive_into_the_cache(releases: Releases, tmp_path: Path) -> None:
    releases.publish("azuread", "1.2.3", "-".join(this_platform()))
    environment = variables("dev", {"PATH": os.defpath, "PULUMI_HOME": str(tmp_path / "home")})

    assert install_pinned("azuread", "1.2.3", environment) is None

    assert os.access(cached("azuread", "1.2.3", environment), os.X_OK)


def test_every_line_of_the_file_is_a_checksum_of_an_archive() -> None:
    lines = (ROOT / "tools/checksums.txt").read_text(encoding="utf-8").splitlines()

    assert [line for line in lines if not line.startswith("#")]
    for line in lines:
        assert line.startswith("#") or re.fullmatch(
            r"[0-9a-f]{64}  pulumi-(resource-[a-z-]+-)?v[\d.]+-(linux|darwin)-(x64|amd64|arm64)\.tar\.gz", line
        ), line
