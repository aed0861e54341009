"""Which provider plugins a local stack gets: the emulated ones, or real ones that are found or fetched."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import pytest

from localcloud.testing.plugins import write_plugin
from ops.stack import environment, plugins
from ops.stack.environment import LocalPaths, local_paths, variables
from ops.stack.errors import CommandError
from ops.stack.plugins import NAMES, choose, describe, install, installed, parse
from tests.unit.golden_report import reviewed_file
from tests.unit.ops.stack.releases import Releases

VERSION = {name: metadata.version(f"pulumi-{name}") for name in NAMES}
_ECHO = '#!/bin/sh\necho "$0 $*"\n'
# Notes what it is asked for, and does as the file `outcome` beside it says.
_PULUMI = """\
#!/bin/sh
echo "$*" >> "$(dirname "$0")/calls"
. "$(dirname "$0")/outcome"
"""


@pytest.fixture
def releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Releases:
    """Every plugin is published."""
    found = Releases.in_folder(tmp_path, monkeypatch)
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    for name in NAMES:
        found.publish(name, VERSION[name], "linux-amd64")
    return found


@pytest.fixture
def caller(releases: Releases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A caller with a home, a PATH and a local cloud of the test, and a `pulumi` that unpacks nothing."""
    assert releases
    folder = tmp_path / "engine"
    folder.mkdir()
    record = folder / "engine.json"
    record.write_text(json.dumps({"bin": str(folder)}))
    monkeypatch.setattr(environment, "_ENGINE_RECORD", record)
    (folder / "pulumi").write_text(_PULUMI)
    (folder / "pulumi").chmod(0o755)
    unpacks(tmp_path, "echo 'error: no space left on device' >&2; exit 1")
    (tmp_path / "bin").mkdir()
    return {
        "HOME": str(tmp_path / "home"),
        "PATH": os.pathsep.join([str(tmp_path / "bin"), "/usr/bin", "/bin"]),
        "LOCALCLOUD_STATE_DIR": str(tmp_path / "state"),
    }


def unpacks(folder: Path, script: str) -> None:
    """What `pulumi plugin install` does with an archive."""
    (folder / "engine/outcome").write_text(script)


def archive(name: str) -> str:
    """The file that is published."""
    return f"pulumi-resource-{name}-v{VERSION[name]}-linux-amd64.tar.gz"


def fetched(folder: Path) -> list[str]:
    """The calls of `pulumi`, with the temporary folder's name left out."""
    calls = folder / "engine/calls"
    return re.sub(r"--file \S+/", "--file ", calls.read_text()).splitlines() if calls.exists() else []


def cached(folder: Path, name: str) -> Path:
    """A real plugin in the user's plugin cache."""
    return executable(folder / f"home/.pulumi/plugins/resource-{name}-v{VERSION[name]}", name)


def executable(folder: Path, name: str) -> Path:
    """A file that looks like a plugin, and prints how it is called."""
    folder.mkdir(parents=True, exist_ok=True)
    plugin = folder / f"pulumi-resource-{name}"
    plugin.write_text(_ECHO)
    plugin.chmod(0o755)
    return plugin


def prepared(caller: dict[str, str], wanted: str | None) -> None:
    """What `idstack up` does with its option, and then the engine's preparation."""
    choose("local", wanted, caller)
    local_paths(caller).create()
    install(local_paths(caller), caller)


def refusal(caller: dict[str, str], wanted: str | None) -> str:
    """Why plugins are refused."""
    with pytest.raises(CommandError) as refused:
        choose("local", wanted, caller)
    return str(refused.value)


def scripts(caller: dict[str, str]) -> dict[str, str]:
    """The plugins in the local stacks' home: what each folder's script starts."""
    return {
        script.parent.name: script.read_text().splitlines()[1].removeprefix("exec ").removesuffix(' "$@"')
        for script in sorted(local_paths(caller).plugins.glob("*/pulumi-resource-*"))
    }


def test_the_emulated_plugins_are_in_the_home_of_local_stacks(caller: dict[str, str]) -> None:
    prepared(caller, None)

    assert variables("local", caller)["PULUMI_HOME"] == str(local_paths(caller).home)
    assert scripts(caller) == {
        f"resource-{name}-v{VERSION[name]}": str(plugins._BIN / f"pulumi-resource-{name}") for name in NAMES
    }
    assert fetched(Path(caller["HOME"]).parent) == [], "they need no network"


def test_an_installed_plugin_of_any_version_is_the_one_of_this_checkout(
    caller: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = tmp_path / "a checkout"
    for name in NAMES:
        executable(checkout, name)
    monkeypatch.setattr(plugins, "_BIN", checkout)
    paths = LocalPaths(tmp_path / "state")
    older = paths.plugins / "resource-azuread-v1.2.3"
    older.mkdir(parents=True)
    (older / "pulumi-resource-azuread").write_text("of a checkout that was moved")

    install(paths, caller)

    found = sorted(paths.home.glob("plugins/*/pulumi-resource-*"))
    assert len(found) == 4
    for plugin in found:
        done = subprocess.run([plugin, "127.0.0.1:7"], capture_output=True, text=True, check=True)
        assert done.stdout == f"{checkout}/{plugin.name} 127.0.0.1:7\n"


def test_some_plugins_can_be_real_and_the_others_emulated(caller: dict[str, str], tmp_path: Path) -> None:
    real = cached(tmp_path, "azuread")

    prepared(caller, "azuread")

    assert scripts(caller) == {
        f"resource-{name}-v{VERSION[name]}": f"{plugins._BIN / 'real'} run {real}"
        if name == "azuread"
        else str(plugins._BIN / f"pulumi-resource-{name}")
        for name in NAMES
    }
    assert describe(installed(caller)) == (
        f"provider plugins: azure-native {VERSION['azure-native']} emulated, azuread {VERSION['azuread']} real, "
        f"kubernetes {VERSION['kubernetes']} emulated"
    )


def test_what_is_not_the_sdks_plugin_on_path_is_passed_over_by_name(caller: dict[str, str], tmp_path: Path) -> None:
    no_plugin = executable(tmp_path / "bin", "azuread")
    assert f"{no_plugin} was not accepted: it prints no port, as a provider plugin does; " in refusal(caller, "azuread")
    on_path = write_plugin(tmp_path / "bin", "azuread", "6.0.0")
    assert f"{on_path} is version 6.0.0; " in refusal(caller, "azuread")
    cached(tmp_path, "azuread")
    (tmp_path / "home/.pulumi").rename(tmp_path / "elsewhere")
    for place in ("elsewhere", "bin"):
        if place == "bin":  # and has the SDK's version: it comes first
            write_plugin(tmp_path / "bin", "azuread", f"v{VERSION['azuread']}")
        own = {"PULUMI_HOME": str(tmp_path / "elsewhere"), "LOCALCLOUD_STATE_DIR": str(tmp_path / f"state-{place}")}
        choose("local", "azuread", caller | own)
        [found] = [plugin.executable for plugin in installed(caller | own) if plugin.executable]
        assert found.is_relative_to(tmp_path / place)


def test_a_missing_plugin_is_fetched_into_the_users_cache(caller: dict[str, str], tmp_path: Path) -> None:
    folder = f"{tmp_path}/home/.pulumi/plugins/resource-$4-v$5"
    unpacks(tmp_path, f'mkdir -p {folder}; cp "$0" {folder}/pulumi-resource-$4')

    choose("local", "azuread,azure-native", caller)

    assert fetched(tmp_path) == [
        f"plugin install resource {name} {VERSION[name]} --exact --file {archive(name)}"
        for name in ("azure-native", "azuread")
    ]
    assert {plugin.name for plugin in installed(caller) if plugin.executable} == {"azuread", "azure-native"}


def test_what_has_no_checksum_or_is_forbidden_is_not_fetched(
    caller: dict[str, str], releases: Releases, tmp_path: Path
) -> None:
    forbidding = {**caller, "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true"}
    assert "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION forbids to download it\n" in refusal(forbidding, "azuread")
    releases.checksums.write_text("")
    assert (
        "tools/checksums.txt has no checksum of it for this machine, so it is not downloaded (`make pin`)\n"
    ) in refusal(caller, "azuread")
    assert fetched(tmp_path) == []


def test_what_is_not_to_be_had_is_named_with_what_to_do(
    caller: dict[str, str], releases: Releases, tmp_path: Path
) -> None:
    """`make golden` writes the file again: read its diff as a user would."""
    for place in (releases.github, releases.pulumi):
        shutil.rmtree(place)
    text = f"## nothing is there\n{refusal(caller, 'real')}\n"
    for name in ("kubernetes", "azuread"):
        cached(tmp_path, name)
        text += f"\n## with {name}\n{refusal(caller, 'real')}\n"
    text = text.replace(str(tmp_path), "<folder>")
    for name, version in VERSION.items():
        text = text.replace(version, f"<{name}>")
    reviewed_file(Path(__file__).parent / "golden/plugins.txt", text)
    assert not (tmp_path / "state").exists(), "nothing was begun"


@pytest.mark.parametrize(
    ("chosen", "shown", "other"), [("azuread", "azuread real", "emulated"), (None, "all emulated", "real")]
)
def test_the_choice_stays_until_the_local_cloud_goes(
    caller: dict[str, str], tmp_path: Path, chosen: str | None, shown: str, other: str
) -> None:
    for name in NAMES:
        cached(tmp_path, name)
    prepared(caller, chosen)
    before = scripts(caller)

    prepared(caller, None)

    assert scripts(caller) == before
    states = local_paths(caller).backend / ".pulumi/stacks/idstack"
    states.mkdir(parents=True)
    for name in ("local.json", "local.json.bak", "local-b.json"):
        (states / name).touch()
    assert refusal(caller, other) == (
        f"the provider plugins of the local stacks are {shown}, which is fixed, because each kind writes a different "
        "state: run `.venv/bin/idstack down --stack local-b`, `.venv/bin/idstack down --stack local`, then this "
        f"command with `--providers {other}` again"
    )


def test_a_plugin_that_is_gone_is_looked_for_again(caller: dict[str, str], tmp_path: Path) -> None:
    real = cached(tmp_path, "azuread")
    prepared(caller, "azuread")
    real.unlink()

    with pytest.raises(CommandError, match="pulumi-resource-azuread is not on PATH"):
        install(local_paths(caller), caller)
    on_path = write_plugin(tmp_path / "bin", "azuread", VERSION["azuread"])
    prepared(caller, None)
    assert str(on_path) in scripts(caller)[f"resource-azuread-v{VERSION['azuread']}"]


def test_a_newer_sdk_needs_its_own_plugin_and_the_state_its_old_one(
    caller: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = cached(tmp_path, "azuread")
    prepared(caller, "azuread")
    monkeypatch.setattr(metadata, "version", lambda package: "99.0.0")

    assert "resource-azuread-v99.0.0 is not there" in refusal(caller, None)
    newer = executable(tmp_path / "home/.pulumi/plugins/resource-azuread-v99.0.0", "azuread")
    prepared(caller, None)

    found = scripts(caller)
    assert str(older) in found[f"resource-azuread-v{VERSION['azuread']}"]
    assert str(newer) in found["resource-azuread-v99.0.0"]


@pytest.mark.parametrize(("text", "wrong"), [("Real", "Real"), ("real,azuread", "real"), ("azuread,", "an empty name")])
def test_any_other_option_is_refused_with_what_is_accepted(text: str, wrong: str) -> None:
    accepted = [sorted(parse(named)) for named in ("emulated", "real", "azuread", "azuread, kubernetes")]
    assert accepted == [[], ["azure-native", "azuread", "kubernetes"], ["azuread"], ["azuread", "kubernetes"]]
    with pytest.raises(CommandError) as refused:
        parse(text)
    assert str(refused.value) == (
        f'--providers: found "{text}"; accepted: emulated, real, or the names of real ones, separated by commas, of '
        f"azure-native, azuread, kubernetes; {wrong} is not one of them"
    )


def test_a_stack_on_azure_has_the_real_ones_always(caller: dict[str, str], tmp_path: Path) -> None:
    choose("dev", "real", caller)
    choose("dev", None, caller)

    with pytest.raises(CommandError, match="the stack dev is not local"):
        choose("dev", "emulated", caller)
    assert not (tmp_path / "state").exists()
