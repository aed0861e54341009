"""Writes into tools/checksums.txt what is missing there: `make pin`, after `make lock` has changed an SDK's version.

Each archive is downloaded from GitHub and from Pulumi's own site, and refused if the two differ, or differ from the
digest that GitHub states of it. A person reads the new lines and commits them; from then on nothing else is accepted.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tools import downloads, pinned
from tools.downloads import CHECKSUMS, Archive, DownloadError, checksums
from tools.pinned import dotted
from tools.steps import ROOT, report

PLUGINS: Final = ("azure-native", "azuread", "kubernetes")
_LOCK: Final = ROOT / "requirements.txt"
_CLI: Final = ROOT / "tools/pulumi"
# The one that the workflows run on, see `runs-on` there.
_WORKFLOWS: Final = "linux-amd64"
_PLATFORM: Final = re.compile(r"(linux|darwin)-(amd64|arm64)")
_CLI_ARCHIVE: Final = re.compile(r"pulumi-v[\d.]+-.*")


def main(arguments: Sequence[str] = (), file: Path = CHECKSUMS) -> int:
    """Write what is missing for the workflows' platform, this one, and those named; returns the exit code."""
    platforms = dict.fromkeys([_WORKFLOWS, "-".join(downloads.this_platform()), *arguments])
    if unknown := [platform for platform in platforms if not _PLATFORM.fullmatch(platform)]:
        print(f"pin: unknown platforms: {', '.join(unknown)}; known are linux and darwin, -amd64 and -arm64")
        return 1
    known = checksums(file)
    wanted = [archive for platform in platforms for archive in archives(platform)]
    try:
        found = {archive.name: checksum(archive) for archive in wanted if archive.name not in known}
    except DownloadError as error:
        print(f"pin: {error}\nNothing was written.", file=sys.stderr)
        return 1
    write(file, {**known, **found}, {archive.name for archive in wanted})
    print(f"pin: {len(found)} checksums added; GitHub, Pulumi's site and GitHub's digests agree. Commit {file.name}.")
    return 0


def archives(platform: str) -> Iterator[Archive]:
    """The archives that this checkout needs on a platform, such as `linux-amd64`."""
    system, processor = platform.split("-")
    cli = dotted(pinned.version(_CLI, "github.com/pulumi/pulumi/pkg/v3"))
    yield downloads.cli_archive(cli, system, processor)
    lock = _LOCK.read_text(encoding="utf-8")
    for name in PLUGINS:
        version = dotted(pinned.numbers(re.search(rf"^pulumi-{name}==(\S+)", lock, re.MULTILINE)))
        yield downloads.plugin_archive(name, version, system, processor)


def checksum(archive: Archive) -> str:
    """SHA-256 of an archive; raises DownloadError if a place does not have it, or not everybody has the same one."""
    with TemporaryDirectory() as directory:
        found = {}
        for url in archive.urls:
            report(f"pin: {url}")
            found[url] = downloads.download(url, Path(directory, "archive"))
    if (digest := downloads.stated_digest(archive)) is None:
        report(f"pin: GitHub states no digest of {archive.name}, which is older than that")
    else:
        found[archive.release] = digest
    if len(set(found.values())) != 1:
        raise DownloadError(f"{archive.name} is not the same everywhere: {found}")
    return next(iter(found.values()))


def write(file: Path, known: dict[str, str], wanted: set[str]) -> None:
    """Keep the head and every plugin; a CLI that is no longer wanted goes, unless its version is the wanted one's."""
    versions = {name.split("-")[1] for name in wanted if _CLI_ARCHIVE.fullmatch(name)}
    kept = {
        name: value
        for name, value in known.items()
        if not _CLI_ARCHIVE.fullmatch(name) or name.split("-")[1] in versions
    }
    head = [line for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    lines = [*head, *(f"{value}  {name}" for name, value in sorted(kept.items()))]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
