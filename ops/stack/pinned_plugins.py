"""Installs the provider plugins of stacks on Azure by checksum, before the engine starts.

The engine itself would download missing plugins without a checksum. With one it refuses a valid archive over HTTP/1.1,
as from a proxy that terminates TLS, because it skips the last bytes (pulumi/pulumi
`sdk/go/common/workspace/plugins.go`, checksumReader). So the archive is downloaded and compared here, and the engine
unpacks it. `make pin` writes the checksums to tools/checksums.txt.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import typer

from ops.stack.environment import pulumi_home
from ops.stack.errors import CommandError
from tools import downloads

NAMES: Final = ("azure-native", "azuread", "kubernetes")
_CHECKSUMS: Final = downloads.CHECKSUMS
# azure-native has some hundred megabytes.
_UNPACK_TIMEOUT: Final = 900.0  # seconds


def provide(stack: str, environment: Mapping[str, str]) -> None:
    """Install the missing plugins of a stack on Azure: those of the SDKs' versions, and every other pinned one.

    A state may still name the plugin of an earlier SDK. `environment` is that of the stack's commands. At a terminal
    the user is asked whether to pin the unpinned ones. Raises CommandError for a missing plugin that is not pinned,
    cannot be downloaded or has another checksum.
    """
    refused = unpinned(environment)
    if refused and _is_wanted(refused):
        from tools import pin

        with redirect_stdout(sys.stderr):
            pin.main(file=_CHECKSUMS)
        refused = unpinned(environment)
    if refused:
        raise CommandError(_refusal(stack, refused))
    for name, version in _missing(environment):
        if problem := install(name, version, environment):
            raise CommandError(problem)


def unpinned(environment: Mapping[str, str]) -> list[tuple[str, str]]:
    """Name and version of each missing plugin without a checksum: nothing downloads it."""
    return [plugin for plugin in _missing(environment) if checksum(*plugin) is None]


def listed(plugins: Iterable[tuple[str, str]]) -> str:
    """Names and versions, for a message."""
    return ", ".join(f"{name} {version}" for name, version in plugins)


def checksum(name: str, version: str) -> str | None:
    """SHA-256 in hex of a plugin's archive for this machine; None if it is not pinned."""
    archive = downloads.plugin_archive(name, version, *downloads.this_platform())
    return downloads.checksums(_CHECKSUMS).get(archive.name)


def install(name: str, version: str, environment: Mapping[str, str]) -> str | None:
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
            command,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_UNPACK_TIMEOUT,
            check=False,
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


def current() -> list[tuple[str, str]]:
    """Name and version of the plugin of each installed SDK."""
    return [(name, metadata.version(f"pulumi-{name}")) for name in NAMES]


def _wanted() -> Iterator[tuple[str, str]]:
    """Name and version of every plugin: the SDKs' first, then other pinned ones."""
    sdks = current()
    yield from sdks
    yield from (plugin for plugin in _pinned() if plugin not in sdks)


def _missing(environment: Mapping[str, str]) -> list[tuple[str, str]]:
    return [plugin for plugin in _wanted() if not os.access(cached(*plugin, environment), os.X_OK)]


def _pinned() -> Iterator[tuple[str, str]]:
    """Name and version of every plugin whose archive for this machine has a checksum."""
    ending = re.escape("-".join(downloads.this_platform()))
    archive = re.compile(rf"pulumi-resource-(?P<name>[a-z-]+)-v(?P<version>[\d.]+)-{ending}\.tar\.gz")
    for name in downloads.checksums(_CHECKSUMS):
        if match := archive.fullmatch(name):
            yield match["name"], match["version"]


def _is_wanted(plugins: list[tuple[str, str]]) -> bool:
    """Whether the user at a terminal confirms to pin these plugins."""
    return sys.stdin.isatty() and sys.stderr.isatty() and confirmed(plugins)


def confirmed(plugins: list[tuple[str, str]]) -> bool:
    """Ask whether to pin these plugins (`tools/pin.py`)."""
    return typer.confirm(
        f"The provider plugins {listed(plugins)} have no checksum for this machine. Download them from GitHub and "
        "Pulumi's site, compare both with the digest that GitHub states, and write tools/checksums.txt?",
        err=True,
    )


def _refusal(stack: str, plugins: list[tuple[str, str]]) -> str:
    installs = [
        f"  idstack pulumi --stack {stack} -- plugin install resource {name} {version}" for name, version in plugins
    ]
    return "\n".join(
        [
            f"the provider plugins {listed(plugins)} are not installed, and tools/checksums.txt has no checksum of "
            "them for this machine; nothing was downloaded and nothing was started.",
            "For everybody: `make pin`, compare the new lines with the releases on GitHub, commit them.",
            "For yourself, if you trust the download:",
            *installs,
        ]
    )
