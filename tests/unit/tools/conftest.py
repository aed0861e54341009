"""A machine made of folders: what is on its PATH, what set-up put down, and a record of every command that ran."""

from __future__ import annotations

import hashlib
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from tools import downloads, engine, environment

# Go as the build uses it: `go list -m` names the SDK's folder, `go build` writes a command that prints its version.
_GO = """\
case "$1 $2" in
    "list -m") echo "{sdk}" ;;
    "list "*) echo "a/package" ;;
    "build "*) printf '#!/bin/sh\\necho %s\\n' "${{4##*=}}" > "$6"; chmod +x "$6" ;;
esac
"""


@dataclass(frozen=True)
class Machine:
    """`first` and `second` are the folders on PATH; `tools` and `venv` stand for `.tools` and `.venv`."""

    root: Path

    @property
    def first(self) -> Path:
        return self.root / "first"

    @property
    def second(self) -> Path:
        return self.root / "second"

    @property
    def tools(self) -> Path:
        return self.root / ".tools"

    @property
    def venv(self) -> Path:
        return self.root / ".venv"

    @property
    def lock(self) -> Path:
        """requirements.txt"""
        return self.root / "requirements.txt"

    def ran(self) -> list[str]:
        """The commands since the last call, each with its first argument."""
        notes = self.root / "notes"
        lines = notes.read_text().splitlines() if notes.exists() else []
        notes.write_text("")
        return lines

    def add(self, file: Path, script: str = "") -> None:
        """A command that notes that it ran, and then does this."""
        file.parent.mkdir(parents=True, exist_ok=True)
        note = f'echo "{file.name} $1" >> "{self.root}/notes"'
        file.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{note}\n{script}\n")
        file.chmod(0o755)

    def add_pulumi(self, folder: Path, version: str, *, host: bool = True) -> None:
        """A Pulumi CLI, with or without a Python language host beside it."""
        self.add(folder / "pulumi", f"echo v{version}")
        if host:
            self.add(folder / "pulumi-language-python")

    def add_go(self) -> None:
        """A Go that can fetch modules."""
        sdk = self.root / "sdk"
        self.add(sdk / "python/cmd/pulumi-language-python-exec")
        self.add(sdk / "python/dist/pulumi-resource-pulumi-python")
        self.add(self.first / "go", _GO.format(sdk=sdk))

    @property
    def checksums(self) -> Path:
        """tools/checksums.txt"""
        return self.root / "checksums.txt"

    @property
    def releases(self) -> Path:
        """Where archives are downloaded from."""
        return self.root / "releases"

    def add_release(self, version: str, *commands: str, pinned: bool = True) -> Path:
        """An archive of Pulumi's release of this version, with these commands, and its checksum, if it is pinned."""
        self.releases.mkdir(exist_ok=True)
        archive = self.releases / f"pulumi-v{version}-linux-x64.tar.gz"
        content = self.root / "content"
        with tarfile.open(archive, "w:gz") as opened:
            for command in commands or ("pulumi", "pulumi-language-python", "pulumi-language-python-exec"):
                self.add(content / command, f"echo v{version}")
                opened.add(content / command, f"pulumi/{command}")
        if pinned:
            self.pin(archive.name, hashlib.sha256(archive.read_bytes()).hexdigest())
        return archive

    def pin(self, archive: str, checksum: str) -> None:
        """A line of tools/checksums.txt."""
        with self.checksums.open("a") as file:
            file.write(f"{checksum}  {archive}\n")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Nothing is on PATH and no site can be reached. The pinned CLI is 3.100.2, built with Go 1.25.11."""
    machine = Machine(tmp_path)
    machine.tools.mkdir()
    machine.checksums.write_text("# head\n")
    monkeypatch.delenv("IDSTACK_PULUMI", raising=False)
    monkeypatch.setattr(downloads, "this_platform", lambda: ("linux", "amd64"))
    monkeypatch.setattr(downloads, "GITHUB", f"{machine.releases.as_uri()}/{{archive}}")
    monkeypatch.setattr(downloads, "PULUMI", f"{tmp_path.as_uri()}/pulumi/{{archive}}")
    pins = {
        "pulumi": "go 1.25.11\nrequire github.com/pulumi/pulumi/pkg/v3 v3.100.2\n",
        "language-host": "go 1.25.11\nrequire github.com/pulumi/pulumi/sdk/v3 v3.79.0\n",
    }
    for name, text in pins.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "go.mod").write_text(text)
        (tmp_path / name / "go.sum").write_text("")
    machine.lock.write_text("rich==15.0.0\n")
    monkeypatch.setenv("PATH", f"{machine.first}:{machine.second}")
    for module, name, value in (
        (engine, "TOOLS", machine.tools),
        (engine, "RECORD", machine.tools / "engine.json"),
        (engine, "_CHECKSUMS", machine.checksums),
        (engine, "_CLI_MODULE", tmp_path / "pulumi"),
        (engine, "_HOST_MODULE", tmp_path / "language-host"),
        (environment, "VENV", machine.venv),
        (environment, "_LOCK", machine.lock),
        (environment, "_STAMP", machine.venv / ".setup"),
        (environment, "_PYTHON", machine.venv / "bin/python"),
        (environment, "_COMMAND", machine.venv / "bin/idstack"),
    ):
        monkeypatch.setattr(module, name, value)
    return machine
