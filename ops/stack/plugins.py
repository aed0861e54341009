"""Which provider plugins the local stacks have: the emulated ones, or real ones behind the local cloud's proxy.

What is chosen for the first stack of a local cloud stays until `make down`: a state that a real plugin has written is
not that of an emulated one. The engine takes plugins from the local stacks' own PULUMI_HOME alone (decision records
0020 and 0035), so that is where each is installed, as a script that starts it.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

from ops.stack import files
from ops.stack.environment import LOCAL_STACK, ROOT, LocalPaths, is_local, local_paths, variables
from ops.stack.errors import CommandError
from ops.stack.pinned_plugins import NAMES, cached
from ops.stack.pinned_plugins import install as install_pinned

EMULATED: Final = "emulated"
REAL: Final = "real"
# Read by `--providers`; `make up PROVIDERS=...` sets it.
VARIABLE: Final = "LOCALCLOUD_PROVIDERS"
_BIN: Final = ROOT / "emulated/bin"
_STARTED_WITHIN: Final = 60.0  # seconds


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


class PluginUnavailableError(Exception):
    """No real plugin of the version that is needed; the message says where it was looked for, and what was found."""


def parse(text: str) -> frozenset[str]:
    """Which plugins shall be real: of `emulated`, `real` (all) or their names; raises CommandError."""
    found = [each.strip() for each in text.split(",")]
    if found == [EMULATED]:
        return frozenset()
    if found == [REAL]:
        return frozenset(NAMES)
    if unknown := [each for each in found if each not in NAMES]:
        raise CommandError(
            f'--providers: found "{text}"; accepted: {EMULATED}, {REAL}, or which ones shall be real, separated by '
            f"commas, of {', '.join(NAMES)}; {', '.join(unknown) or 'an empty name'} is none of them"
        )
    return frozenset(found)


def choose(wanted: str | None, base: Mapping[str, str] = os.environ) -> None:
    """Settle on plugins for the local stacks, once, and find the real ones; nothing wanted is what was chosen before.

    Raises CommandError if other plugins were chosen before, or if a real one is not available; nothing is changed then.
    """
    paths = local_paths(base)
    recorded = _recorded(paths)
    before = frozenset(recorded)
    real = before if wanted is None else parse(wanted)
    if real != before and (recorded or paths.passphrase.exists()):
        raise CommandError(
            f"the provider plugins of the local stack are {_listed(before)}, which is fixed, because each kind "
            f"writes a state of its own: end it with `make down`, then `make up PROVIDERS={_argument(real)}`"
        )
    _record(paths, _find(real, recorded, base))


def choose_for(stack: str, wanted: str | None, base: Mapping[str, str] = os.environ) -> None:
    """`choose`, for a local stack; any other has the real plugins always, so only that may be wanted (CommandError)."""
    if is_local(stack):
        choose(wanted, base)
    elif wanted not in (None, REAL):
        raise CommandError(
            f"--providers {wanted}: the stack {stack} is not a local one, and only those have emulated provider plugins"
        )


def install(paths: LocalPaths, base: Mapping[str, str] = os.environ) -> None:
    """Put the plugins that were chosen, by default the emulated ones, where the engine looks for them.

    Each is installed as the version of the SDK that is installed. The engine takes a plugin of exactly the version that
    the program's SDK, or the provider in the state, asks for (pulumi/pulumi `sdk/go/common/workspace/plugins.go`,
    SelectCompatiblePlugin). So the versions of earlier SDKs stay. All of the emulated ones start the plugin of this
    checkout. Raises CommandError as `choose`, if a real one is gone or an SDK has become another.
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
            files.replace(folder / _executable(plugin.name), _script(_command(plugin)), mode=0o700)


def installed(base: Mapping[str, str] = os.environ) -> Sequence[Plugin]:
    """The plugins that the local stacks have now."""
    return [_recorded(local_paths(base)).get(name) or _emulated(name) for name in NAMES]


def describe(plugins: Iterable[Plugin]) -> str:
    """The line of the tables, such as `provider plugins: azure-native 3.29.0 emulated, azuread 6.11.1 real, ...`."""
    every = list(plugins)
    if not any(each.executable for each in every):
        return "provider plugins: emulated"
    return "provider plugins: " + ", ".join(f"{each.name} {each.version} {each.kind}" for each in every)


def _find(real: Iterable[str], recorded: Mapping[str, Plugin], base: Mapping[str, str]) -> Sequence[Plugin]:
    """Every plugin; raises CommandError if one that has to be real is not available."""
    found, problems = {name: _emulated(name) for name in NAMES}, {}
    for name in sorted(real):
        version = found[name].version
        before = recorded.get(name)
        try:
            if before is not None and before.version == version and _is_executable(before.executable):
                found[name] = before
            else:
                found[name] = Plugin(name, version, _search(name, version, base))
        except PluginUnavailableError as error:
            problems[name] = str(error)
    if problems:
        raise CommandError(_missing(problems, [each for each in found.values() if each.executable]))
    return list(found.values())


def _search(name: str, version: str, base: Mapping[str, str]) -> Path:
    """The real plugin of this version: on PATH, in the user's plugin cache, or downloaded into it."""
    looked = []
    executable = _executable(name)
    on_path = shutil.which(executable, path=base.get("PATH", os.defpath))
    if on_path is None:
        looked.append(f"{executable} is not on PATH")
    else:
        stated = _stated_version(Path(on_path))
        if stated == version:
            return Path(on_path).absolute()
        looked.append(f"{on_path} {stated if ' ' in stated else f'is version {stated}'}")
    in_cache = cached(name, version, base)
    if _is_executable(in_cache):
        return in_cache.absolute()
    looked.append(f"{in_cache.parent} is not there")
    if problem := _download(name, version, base):
        raise PluginUnavailableError("; ".join([*looked, problem]))
    if not _is_executable(in_cache):
        raise PluginUnavailableError("; ".join([*looked, f"`pulumi plugin install` put no {executable} there"]))
    return in_cache.absolute()


def _stated_version(executable: Path) -> str:
    """What the plugin says that its version is; a sentence with spaces if it says nothing."""
    command = [str(_BIN / "real"), "version", str(executable)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_STARTED_WITHIN, check=False)
    except subprocess.TimeoutExpired:
        return "does not answer as a provider plugin does"
    last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
    return done.stdout.strip() if done.returncode == 0 else f"was not accepted: {last}"


def _download(name: str, version: str, base: Mapping[str, str]) -> str | None:
    """Put a plugin into the user's cache; returns why that failed, if it did."""
    if base.get("PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION", "").lower() in ("true", "1"):
        return "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION forbids to download it"
    # The caller's own home, and this checkout's engine.
    environment = {**base, "PATH": variables(LOCAL_STACK, base)["PATH"], "PULUMI_SKIP_UPDATE_CHECK": "1"}
    return install_pinned(name, version, environment)


def _missing(problems: Mapping[str, str], found: Sequence[Plugin]) -> str:
    """What is not available, where it was looked for, and what to do."""
    versions = {name: _emulated(name).version for name in problems}
    lines = [f"  {name} {versions[name]}: {problem}" for name, problem in problems.items()]
    installs = [f"  {_pulumi()} plugin install resource {name} {version}" for name, version in versions.items()]
    instead = _argument(frozenset(each.name for each in found))
    alternative = "`make up` needs none of them"
    if found:
        alternative = f"`make up PROVIDERS={instead}` takes those that there are, and emulated ones for the rest"
    return "\n".join(
        [
            "real provider plugins were asked for and are not available; nothing was started:",
            *lines,
            "Where Pulumi's downloads can be reached, install them, or copy their folders from another machine's "
            "~/.pulumi/plugins:",
            *installs,
            alternative,
        ]
    )


def _pulumi() -> str:
    """The engine of this checkout, for a command that a person types: it puts plugins into the person's own cache."""
    return shlex.quote(shutil.which("pulumi", path=variables(LOCAL_STACK)["PATH"]) or "pulumi")


def _recorded(paths: LocalPaths) -> dict[str, Plugin]:
    """The real plugins of the local stacks."""
    try:
        document = json.loads(_file(paths).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return {name: Plugin(name, each["version"], Path(each["executable"])) for name, each in document.items()}


def _record(paths: LocalPaths, plugins: Sequence[Plugin]) -> None:
    """Keep the choice; emulated plugins alone leave nothing behind."""
    document = {
        plugin.name: {"version": plugin.version, "executable": str(plugin.executable)}
        for plugin in plugins
        if plugin.executable
    }
    if not document:
        return
    for directory in (paths.state, paths.engine):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    files.replace(_file(paths), json.dumps(document, indent=2) + "\n")


def _file(paths: LocalPaths) -> Path:
    return paths.engine / "plugins.json"


def _script(command: Sequence[str]) -> str:
    return f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n'


def _command(plugin: Plugin) -> list[str]:
    if plugin.executable is None:
        return [str(_BIN / _executable(plugin.name))]
    return [str(_BIN / "real"), "run", str(plugin.executable)]


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


def _listed(real: frozenset[str]) -> str:
    return f"{', '.join(sorted(real))} real" if real else "all emulated"
