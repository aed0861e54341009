"""The provider plugins of stacks on Azure: installed by checksum before the engine starts, which downloads nothing.

The engine itself would download what is missing, and compares no checksum unless it is told one (pulumi/pulumi
`sdk/go/common/workspace/plugins.go`, checksumSource). tools/checksums.txt has them, written by `make pin`.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Final

from ops.stack.environment import ROOT
from ops.stack.errors import CommandError

NAMES: Final = ("azure-native", "azuread", "kubernetes")
_CHECKSUMS: Final = ROOT / "tools/checksums.txt"
# azure-native has some hundred megabytes.
DOWNLOADED_WITHIN: Final = 900.0  # seconds
_PROCESSORS: Final = {"x86_64": "amd64", "aarch64": "arm64"}


def provide(environment: Mapping[str, str]) -> None:
    """Install what the plugin cache of a stack on Azure lacks: of the SDKs' versions, and of every other one pinned.

    A state may still name the plugin of the SDK before. `environment` is that of the stack's commands. Raises
    CommandError for a plugin that is neither there nor pinned, and for one that cannot be downloaded or has another
    checksum.
    """
    missing = [each for each in _wanted() if not _is_there(*each, environment)]
    unpinned = [each for each in missing if checksum(*each) is None]
    if unpinned:
        raise CommandError(_refusal(unpinned))
    for name, version in missing:
        if problem := install(name, version, environment):
            raise CommandError(problem)


def checksum(name: str, version: str) -> str | None:
    """SHA-256 in hex of a plugin's archive for this machine; None if it is not pinned."""
    return _checksums().get((name, version))


def install(name: str, version: str, environment: Mapping[str, str]) -> str | None:
    """Let the engine download a plugin into the cache and compare its checksum; returns why that failed, if it did."""
    known = checksum(name, version)
    if known is None:
        return "tools/checksums.txt has no checksum of it for this machine, so it is not downloaded (`make pin`)"
    print(f"installing the {name} plugin {version} by its checksum", file=sys.stderr, flush=True)
    command = ["pulumi", "plugin", "install", "resource", name, version]
    try:
        done = subprocess.run(
            [*command, "--exact", "--checksum", known],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DOWNLOADED_WITHIN,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"`{' '.join(command)}` did not end within {DOWNLOADED_WITHIN:.0f} s"
    if done.returncode == 0:
        return None
    last = (done.stderr.strip().splitlines() or [f"code {done.returncode}"])[-1]
    return f"`{' '.join(command)}` failed: {last.removeprefix('error: ')}"


def cached(name: str, version: str, environment: Mapping[str, str]) -> Path:
    """Where a plugin's executable is in the cache of PULUMI_HOME, if it is there."""
    home = Path(environment.get("PULUMI_HOME") or Path(environment.get("HOME") or Path.home(), ".pulumi"))
    return home / "plugins" / f"resource-{name}-v{version}" / f"pulumi-resource-{name}"


def _wanted() -> Iterator[tuple[str, str]]:
    """Name and version of every plugin: the SDKs' first, then what else is pinned."""
    current = [(name, metadata.version(f"pulumi-{name}")) for name in NAMES]
    yield from current
    yield from (each for each in _checksums() if each not in current)


def _is_there(name: str, version: str, environment: Mapping[str, str]) -> bool:
    return os.access(cached(name, version, environment), os.X_OK)


def _checksums() -> dict[tuple[str, str], str]:
    """Checksum by name and version, of this machine's archives."""
    machine = platform.machine().lower()
    ending = f"{platform.system().lower()}-{_PROCESSORS.get(machine, machine)}.tar.gz"
    line = re.compile(
        rf"^(?P<checksum>[0-9a-f]{{64}})  pulumi-resource-(?P<name>[a-z-]+)-v(?P<version>[\d.]+)-{re.escape(ending)}$",
        re.MULTILINE,
    )
    found = line.finditer(_CHECKSUMS.read_text(encoding="utf-8"))
    return {(each["name"], each["version"]): each["checksum"] for each in found}


def _refusal(unpinned: list[tuple[str, str]]) -> str:
    plugins = ", ".join(f"{name} {version}" for name, version in unpinned)
    installs = [f"  pulumi plugin install resource {name} {version}" for name, version in unpinned]
    return "\n".join(
        [
            f"the provider plugins {plugins} are not installed, and tools/checksums.txt has no checksum of theirs for "
            "this machine; nothing was downloaded and nothing was started.",
            "For everybody: `make pin`, compare the new lines with the releases on GitHub, commit them.",
            "For yourself, if you trust the download:",
            *installs,
        ]
    )
