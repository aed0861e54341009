"""The provider plugins of local stacks: emulated ones, or real ones behind the local cloud's proxy.

The choice for the first stack of a local cloud is fixed until `make down`: real and emulated plugins write different
states. The engine takes plugins only from the local stacks' own PULUMI_HOME (decision records 0020 and 0035), where
each is installed as a script that starts it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rich.console import Console
from rich.prompt import Confirm

from ops.stack.environment import LOCAL_STACK, ROOT, LocalPaths, is_local, local_paths, pulumi_home, variables
from ops.stack.errors import CommandError, WrongUsageError, message
from ops.stack.stack_document import replace_file
from tools import downloads

EMULATED: Final = "emulated"
REAL: Final = "real"
# Read by `--providers`; `make up PROVIDERS=...` sets it.
VARIABLE: Final = "LOCALCLOUD_PROVIDERS"
_BIN: Final = ROOT / "cloud/emulated/bin"
_CHOICE: Final = "plugins.json"  # beside the states
_START_TIMEOUT: Final = 60.0  # seconds


@dataclass(frozen=True)
class Plugin:
    """A provider plugin of the local stacks; `executable` is the real one, None for the emulated one."""

    name: str
    version: str
    executable: Path | None = None

    @property
    def kind(self) -> str:
        """`real` or `emulated`."""
        return EMULATED if self.executable is None else REAL

    @property
    def command(self) -> list[str]:
        if self.executable is None:
            return [str(_BIN / _executable(self.name))]
        return [str(_BIN / "real"), "run", str(self.executable)]


def parse(text: str) -> frozenset[str]:
    """The plugins that shall be real, from `emulated`, `real` (all) or names; raises WrongUsageError."""
    names = [name.strip() for name in text.split(",")]
    if names == [EMULATED]:
        return frozenset()
    if names == [REAL]:
        return frozenset(NAMES)
    if unknown := [name for name in names if name not in NAMES]:
        wrong = ", ".join(unknown) or "an empty name"
        raise WrongUsageError(message("plugins.unknown", text=text, names=", ".join(NAMES), wrong=wrong))
    return frozenset(names)


def choose(stack: str, requested: str | None, base: Mapping[str, str] = os.environ) -> None:
    """Fix the plugins of the local stacks, once, and find the real ones; with None the earlier choice stays.

    Any other stack always has the real plugins. Raises CommandError for another choice for it, if other plugins were
    chosen before, or if a real one is not available.
    """
    if not is_local(stack):
        if requested not in (None, REAL):
            raise WrongUsageError(message("plugins.not-local", requested=requested, stack=stack))
        return
    paths = local_paths(base)
    recorded = _recorded(paths)
    recorded_names = frozenset(recorded)
    real = recorded_names if requested is None else parse(requested)
    if real != recorded_names and (recorded or paths.passphrase.exists()):
        listed = f"{', '.join(sorted(recorded))} real" if recorded else "all emulated"
        raise CommandError(message("plugins.fixed", listed=listed, ending=paths.ending, wanted=_argument(real)))
    _record(paths, _find(real, recorded, base))


def install(paths: LocalPaths, base: Mapping[str, str] = os.environ) -> None:
    """Install the chosen plugins, by default the emulated ones, for the engine.

    Each has the version of the installed SDK. The engine takes a plugin of exactly the version that the program's SDK,
    or the provider in the state, asks for (pulumi/pulumi `sdk/go/common/workspace/plugins.go`,
    SelectCompatiblePlugin). So the versions of earlier SDKs stay. All emulated ones start the plugin of this checkout.
    Raises CommandError as `choose` does, if a real one has disappeared or an SDK has changed.
    """
    recorded = _recorded(paths)
    plugins = _find(recorded, recorded, base)
    _record(paths, plugins)
    for plugin in plugins:
        folders = {paths.plugins / f"resource-{plugin.name}-v{plugin.version}"}
        if plugin.executable is None:
            folders |= set(paths.plugins.glob(f"resource-{plugin.name}-v*/"))
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
            script = f'#!/bin/sh\nexec {shlex.join(plugin.command)} "$@"\n'
            replace_file(folder / _executable(plugin.name), script, mode=0o700)


def installed(base: Mapping[str, str] = os.environ) -> Sequence[Plugin]:
    """The present plugins of the local stacks."""
    return [_recorded(local_paths(base)).get(name) or _emulated(name) for name in NAMES]


def describe(plugins: Sequence[Plugin]) -> str:
    """The line of the tables, such as `provider plugins: azure-native 3.29.0 emulated, azuread 6.11.1 real, ...`."""
    if not any(plugin.executable for plugin in plugins):
        return "provider plugins: emulated"
    return "provider plugins: " + ", ".join(f"{plugin.name} {plugin.version} {plugin.kind}" for plugin in plugins)


def _find(real: Iterable[str], recorded: Mapping[str, Plugin], base: Mapping[str, str]) -> Sequence[Plugin]:
    """Every plugin; raises CommandError if one that has to be real is not available."""
    plugins, problems = {name: _emulated(name) for name in NAMES}, {}
    for name in sorted(real):
        version, known = plugins[name].version, recorded.get(name)
        if known is not None and known.version == version and _is_executable(known.executable):
            plugins[name] = known
        elif isinstance(found := _search(name, version, base), Path):
            plugins[name] = Plugin(name, version, found)
        else:
            problems[f"{name} {version}"] = found
    if not problems:
        return list(plugins.values())
    # The engine of this checkout, for a command in the user's own shell.
    pulumi = shlex.quote(shutil.which("pulumi", path=variables(LOCAL_STACK)["PATH"]) or "pulumi")
    listed = "\n".join(f"  {plugin}: {problem}" for plugin, problem in problems.items())
    install = "\n".join(f"  {pulumi} plugin install resource {plugin}" for plugin in problems)
    alternative = "` needs none of them"
    if available := frozenset(plugin.name for plugin in plugins.values() if plugin.executable):
        alternative = f" --providers {_argument(available)}` uses the available ones, emulated ones for the rest"
    raise CommandError(message("plugins.not-available", listed=listed, install=install, alternative=alternative))


def _search(name: str, version: str, base: Mapping[str, str]) -> Path | str:
    """The real plugin of this version, on PATH, in the user's cache or downloaded into it; or why there is none."""
    problems = []
    executable = _executable(name)
    on_path = shutil.which(executable, path=base.get("PATH", os.defpath))
    if on_path is None:
        problems.append(f"{executable} is not on PATH")
    else:
        stated = _stated_version(Path(on_path))
        if stated == version:
            return Path(on_path).absolute()
        problems.append(f"{on_path} {stated if ' ' in stated else f'is version {stated}'}")
    in_cache = cached(name, version, base)
    if _is_executable(in_cache):
        return in_cache.absolute()
    problems.append(f"{in_cache.parent} is not there")
    if base.get("PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION", "").lower() in ("true", "1"):
        return "; ".join([*problems, "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION forbids to download it"])
    # The caller's own home, and this checkout's engine.
    environment = {**base, "PATH": variables(LOCAL_STACK, base)["PATH"], "PULUMI_SKIP_UPDATE_CHECK": "1"}
    if problem := install_pinned(name, version, environment):
        return "; ".join([*problems, problem])
    if not _is_executable(in_cache):
        return "; ".join([*problems, f"`pulumi plugin install` put no {executable} there"])
    return in_cache.absolute()


def _stated_version(executable: Path) -> str:
    """The version that the plugin reports; a phrase with spaces if it does not."""
    command = [str(_BIN / "real"), "version", str(executable)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_START_TIMEOUT)
    except subprocess.TimeoutExpired:
        return "does not answer as a provider plugin does"
    last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
    return done.stdout.strip() if done.returncode == 0 else f"was not accepted: {last}"


def _recorded(paths: LocalPaths) -> dict[str, Plugin]:
    """The real plugins of the local stacks."""
    try:
        document = json.loads((paths.engine / _CHOICE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return {name: Plugin(name, plugin["version"], Path(plugin["executable"])) for name, plugin in document.items()}


def _record(paths: LocalPaths, plugins: Sequence[Plugin]) -> None:
    """Record the choice; emulated plugins alone need no record."""
    document = {
        plugin.name: {"version": plugin.version, "executable": str(plugin.executable)}
        for plugin in plugins
        if plugin.executable
    }
    if not document:
        return
    for directory in (paths.state, paths.engine):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(paths.engine / _CHOICE, json.dumps(document, indent=2) + "\n")


def _emulated(name: str) -> Plugin:
    return Plugin(name, metadata.version(f"pulumi-{name}"))


def _executable(name: str) -> str:
    return f"pulumi-resource-{name}"


def _is_executable(file: Path | None) -> bool:
    return file is not None and os.access(file, os.X_OK) and file.is_file()


def _argument(real: frozenset[str]) -> str:
    if real == frozenset(NAMES):
        return REAL
    return ",".join(sorted(real)) or EMULATED


NAMES: Final = ("azure-native", "azuread", "kubernetes")
_CHECKSUMS: Final = downloads.CHECKSUMS
# azure-native has some hundred megabytes.
_UNPACK_TIMEOUT: Final = 900.0  # seconds


def provide_pinned(stack: str, environment: Mapping[str, str]) -> None:
    """Install the missing plugins of a stack on Azure: those of the SDKs' versions, and every other pinned one.

    A state may still name the plugin of an earlier SDK. `environment` is that of the stack's commands. At a terminal
    the user is asked whether to pin the unpinned ones. Raises CommandError for a missing plugin that is not pinned,
    cannot be downloaded or has another checksum.
    """
    refused = unpinned_plugins(environment)
    if refused and sys.stdin.isatty() and sys.stderr.isatty() and confirmed_plugins(refused):
        from tools import pin

        with redirect_stdout(sys.stderr):
            pin.main(file=_CHECKSUMS)
        refused = unpinned_plugins(environment)
    if refused:
        command = f"  .venv/bin/idstack pulumi --stack {stack} -- plugin install resource"
        install = "\n".join(f"{command} {name} {version}" for name, version in refused)
        raise CommandError(message("plugins.not-pinned", plugins=listed_plugins(refused), install=install))
    for name, version in _missing_archive(environment):
        if problem := install_pinned(name, version, environment):
            raise CommandError(problem)


def unpinned_plugins(environment: Mapping[str, str]) -> list[tuple[str, str]]:
    """Name and version of each missing plugin without a checksum: nothing downloads it."""
    return [plugin for plugin in _missing_archive(environment) if checksum(*plugin) is None]


def listed_plugins(plugins: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {version}" for name, version in plugins)


def checksum(name: str, version: str) -> str | None:
    """SHA-256 in hex of a plugin's archive for this machine; None if it is not pinned."""
    archive = downloads.plugin_archive(name, version, *downloads.this_platform())
    return downloads.checksums(_CHECKSUMS).get(archive.name)


def install_pinned(name: str, version: str, environment: Mapping[str, str]) -> str | None:
    """Install a plugin into the cache, if its archive has the pinned checksum; returns the reason of a failure.

    It is downloaded with the proxy and the certificates of this process.
    """
    pinned = checksum(name, version)
    if pinned is None:
        return "tools/checksums.txt has no checksum of it for this machine, so it is not downloaded (`make pin`)"
    print(f"installing the {name} plugin {version} by its checksum", file=sys.stderr, flush=True)
    archive = downloads.plugin_archive(name, version, *downloads.this_platform())
    with TemporaryDirectory(prefix="idstack-plugin-") as folder:
        file = Path(folder, archive.name)
        try:
            downloads.fetch_any(archive.urls, file, pinned)
        except downloads.DownloadError as error:
            return f"the {name} plugin {version} is not available: {error}"
        return _unpack(name, version, file, environment)


def _unpack(name: str, version: str, file: Path, environment: Mapping[str, str]) -> str | None:
    """Let the engine unpack an archive into the cache; returns the reason of a failure."""
    command = ["pulumi", "plugin", "install", "resource", name, version, "--exact", "--file", str(file)]
    try:
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_UNPACK_TIMEOUT
        )
    except subprocess.TimeoutExpired:
        return f"`{' '.join(command)}` did not end within {_UNPACK_TIMEOUT:.0f} s"
    if done.returncode == 0:
        return None
    last = (done.stderr.strip().splitlines() or [f"code {done.returncode}"])[-1]
    return f"`{' '.join(command)}` failed: {last.removeprefix('error: ')}"


def cached(name: str, version: str, environment: Mapping[str, str]) -> Path:
    """The path of a plugin's executable in the cache of PULUMI_HOME, whether it exists or not."""
    return pulumi_home(environment) / "plugins" / f"resource-{name}-v{version}" / f"pulumi-resource-{name}"


def _missing_archive(environment: Mapping[str, str]) -> list[tuple[str, str]]:
    """Name and version of each plugin that is not in the cache: the SDKs' first, then other pinned ones."""
    ending = re.escape("-".join(downloads.this_platform()))
    archive = re.compile(rf"pulumi-resource-([a-z-]+)-v([\d.]+)-{ending}\.tar\.gz")
    matches = map(archive.fullmatch, downloads.checksums(_CHECKSUMS))
    sdks = [(name, metadata.version(f"pulumi-{name}")) for name in NAMES]
    wanted = dict.fromkeys([*sdks, *((match[1], match[2]) for match in matches if match)])
    return [plugin for plugin in wanted if not os.access(cached(*plugin, environment), os.X_OK)]


def confirmed_plugins(plugins: list[tuple[str, str]]) -> bool:
    """Ask whether to pin these plugins (`tools/pin.py`)."""
    return Confirm.ask(
        message("plugins.to-pin", plugins=listed_plugins(plugins)),
        console=Console(stderr=True, soft_wrap=True),
        default=False,
    )
