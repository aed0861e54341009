"""Archives that others have built: downloaded if tools/checksums.txt has their SHA-256, and kept if it fits."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shutil
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from tools.steps import ROOT

CHECKSUMS: Final = ROOT / "tools/checksums.txt"
# Where the archives of Pulumi's CLI and of its provider plugins lie: at GitHub, and at Pulumi's own site. The engine
# asks them in this order (pulumi/pulumi `sdk/go/common/workspace/plugins.go`, fallbackSource).
GITHUB: Final = "https://github.com/pulumi/{repository}/releases/download/v{version}/{archive}"
PULUMI: Final = "https://get.pulumi.com/releases/{folder}/{archive}"
# What GitHub says of a release: each asset's `digest` is SHA-256 as GitHub computed it at the upload
# (docs.github.com/rest/releases/releases).
RELEASE: Final = "https://api.github.com/repos/pulumi/{repository}/releases/tags/v{version}"
_LINE: Final = re.compile(r"(?P<checksum>[0-9a-f]{64})  (?P<archive>\S+)")
# To notice a closed network soon.
_ANSWERED_WITHIN: Final = 10.0  # seconds
_PIECE: Final = 1 << 20


class DownloadError(Exception):
    """An archive is not available, or is not the pinned one; the message says which and why."""


@dataclass(frozen=True)
class Archive:
    """One archive of a release, and where it lies."""

    name: str
    repository: str
    version: str
    folder: str

    @property
    def urls(self) -> tuple[str, str]:
        """At GitHub, and at Pulumi's own site."""
        return (
            GITHUB.format(repository=self.repository, version=self.version, archive=self.name),
            PULUMI.format(folder=self.folder, archive=self.name),
        )

    @property
    def release(self) -> str:
        """What GitHub says of the archive's release."""
        return RELEASE.format(repository=self.repository, version=self.version)


def checksums(file: Path = CHECKSUMS) -> dict[str, str]:
    """SHA-256 in hex by the archive's name; raises ValueError at a line that is no checksum."""
    found = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        if line and not line.startswith("#"):
            match = _LINE.fullmatch(line)
            if match is None:
                raise ValueError(f'{file.name}:{number}: found "{line}"; expected: SHA-256, two spaces, name')
            found[match["archive"]] = match["checksum"]
    return found


def this_platform() -> tuple[str, str]:
    """Operating system and processor as Go names them, such as `linux` and `amd64`."""
    machine = platform.machine().lower()
    return platform.system().lower(), {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def cli_archive(version: str, system: str, processor: str) -> Archive:
    """The archive of Pulumi's CLI, whose name calls amd64 x64."""
    name = f"pulumi-v{version}-{system}-{'x64' if processor == 'amd64' else processor}.tar.gz"
    return Archive(name, "pulumi", version, "sdk")


def plugin_archive(name: str, version: str, system: str, processor: str) -> Archive:
    """The archive of a provider plugin."""
    archive = f"pulumi-resource-{name}-v{version}-{system}-{processor}.tar.gz"
    return Archive(archive, f"pulumi-{name}", version, "plugins")


def fetch_any(urls: Iterable[str], target: Path, checksum: str) -> None:
    """Download an archive; raises DownloadError with what each place lacks, and leaves no file, if none has it."""
    problems = []
    for url in urls:
        try:
            found = download(url, target)
        except DownloadError as error:
            problems.append(str(error))
            continue
        if found == checksum:
            return
        target.unlink()
        problems.append(f"{url} has the SHA-256 {found}; {CHECKSUMS.name} has {checksum}")
    raise DownloadError("; ".join(problems))


def download(url: str, target: Path) -> str:
    """Download a file and return its SHA-256 in hex; raises DownloadError, and leaves no file, if that fails."""
    digest = hashlib.sha256()
    try:
        with _opened(url) as answer, target.open("wb") as file:
            while piece := answer.read(_PIECE):
                digest.update(piece)
                file.write(piece)
    except (OSError, ValueError) as error:
        target.unlink(missing_ok=True)
        raise DownloadError(f"{url}: {error}") from None
    return digest.hexdigest()


def stated_digest(archive: Archive) -> str | None:
    """The SHA-256 in hex that GitHub states of an archive; None of one that was uploaded before GitHub computed any.

    Raises DownloadError if GitHub does not answer, or knows no such archive.
    """
    try:
        with _opened(archive.release) as answer:
            assets = json.load(answer)["assets"]
        [digest] = [asset["digest"] for asset in assets if asset["name"] == archive.name]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DownloadError(f"{archive.release} states no digest of {archive.name}: {error}") from None
    return None if digest is None else str(digest).removeprefix("sha256:")


def _opened(url: str) -> IO[bytes]:
    # Set-up imports it when something is missing: it takes longer than the rest of a set-up without work.
    from urllib.request import urlopen

    answer: IO[bytes] = urlopen(url, timeout=_ANSWERED_WITHIN)
    return answer


def unpack(archive: Path, folder: str, target: Path) -> None:
    """Write the commands that lie directly in a folder of the archive into `target`; nothing else of it is written.

    Raises DownloadError if it is no archive or has no such folder.
    """
    target.mkdir(parents=True, exist_ok=True)
    try:
        with tarfile.open(archive) as opened:
            for member in opened:
                directory, _, name = member.name.removeprefix("./").rpartition("/")
                if directory != folder or not member.isfile() or name in {"", ".", ".."}:
                    continue
                content = opened.extractfile(member)
                assert content is not None
                with content, (target / name).open("wb") as file:
                    shutil.copyfileobj(content, file)
                (target / name).chmod(0o755)
    except (OSError, EOFError, tarfile.TarError) as error:
        raise DownloadError(f"{archive.name} cannot be unpacked: {error}") from None
    if not any(target.iterdir()):
        raise DownloadError(f"{archive.name} has no folder {folder}")
