"""Official clients that others have written: installed from their locks, or built, for the tests that run them."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from tests.source import ROOT

_HERE: Final = Path(__file__).parent
_TOOLS: Final = ROOT / ".tools"
# What has no hash in the lock is refused, and so is a package that runs code to be installed.
WHEELS_ALONE: Final = ("--require-hashes", "--only-binary", ":all:")
# A virtual environment cannot be moved, so each client is made in its place, and marked at the end.
_COMPLETE: Final = "complete"


def azure_cli() -> Path:
    """The folder with `az`, in an environment of its own."""
    return _environment("azure-cli") / "bin"


def python() -> Path:
    """Python with Microsoft's libraries, in an environment of its own."""
    return _environment("python") / "bin/python"


def javascript() -> Path:
    """The folder of the JavaScript client with its packages; needs Node."""
    source = _HERE / "javascript"

    def install(target: Path) -> None:
        shutil.copytree(source, target)
        _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], target)

    return _made("javascript", sorted(source.iterdir()), install)


def go(module: Path) -> Path:
    """A Go module's main package, built; the command has the name of the module's folder. Needs Go."""
    flags = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false", "GOWORK": "off"}

    def build(target: Path) -> None:
        _run(["go", "build", "-trimpath", "-o", str(target / module.name), "."], module, {**os.environ, **flags})

    sources = sorted(file for file in module.rglob("*") if file.suffix in {".go", ".mod", ".sum"})
    return _made(module.name, sources, build) / module.name


def _environment(name: str) -> Path:
    lock = _HERE / f"{name}.txt"

    def install(target: Path) -> None:
        _run([sys.executable, "-m", "venv", str(target)], _HERE)
        _run([str(target / "bin/pip"), "install", "--quiet", *WHEELS_ALONE, "--requirement", str(lock)], _HERE)

    return _made(name, [lock], install)


def _made(name: str, parts: Iterable[Path], make: Callable[[Path], None]) -> Path:
    """The folder of a client, made once for each state of its parts."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.read_bytes()
        digest.update(len(data).to_bytes(8, "big") + data)
    target = _TOOLS / f"{name}-{digest.hexdigest()[:16]}"
    _TOOLS.mkdir(exist_ok=True)
    with (_TOOLS / "clients.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (target / _COMPLETE).exists():
            shutil.rmtree(target, ignore_errors=True)
            make(target)
            (target / _COMPLETE).touch()
    return target


def _run(command: list[str], directory: Path, environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
