"""The places where provider plugins are published, as folders, and the file with their checksums."""

from __future__ import annotations

import hashlib
import io
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from ops.stack import plugins
from tools import downloads


@dataclass(frozen=True)
class Releases:
    """GitHub, Pulumi's own site, and tools/checksums.txt."""

    github: Path
    pulumi: Path
    checksums: Path

    @classmethod
    def in_folder(cls, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Releases:
        """Nothing is published, and nothing is pinned."""
        found = cls(folder / "github", folder / "pulumi", folder / "checksums.txt")
        for place in (found.github, found.pulumi):
            place.mkdir()
        found.checksums.write_text("")
        monkeypatch.setattr(downloads, "GITHUB", f"{found.github.as_uri()}/{{archive}}")
        monkeypatch.setattr(downloads, "PULUMI", f"{found.pulumi.as_uri()}/{{archive}}")
        monkeypatch.setattr(plugins, "_CHECKSUMS", found.checksums)
        return found

    def publish(self, name: str, version: str, machine: str = "darwin-arm64") -> None:
        """An archive with a plugin at both places, and its line in the file."""
        archive = f"pulumi-resource-{name}-v{version}-{machine}.tar.gz"
        content = _packed(f"pulumi-resource-{name}", f"#!/bin/sh\n# {archive}\n".encode())
        for place in (self.github, self.pulumi):
            (place / archive).write_bytes(content)
        with self.checksums.open("a") as file:
            file.write(f"{hashlib.sha256(content).hexdigest()}  {archive}\n")


def _packed(name: str, content: bytes) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as opened:
        member = tarfile.TarInfo(name)
        member.size, member.mode = len(content), 0o755
        opened.addfile(member, io.BytesIO(content))
    return archive.getvalue()
