"""Earlier releases of this project, from its history, as the program of a stack."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from tests.harness import PROJECT, LocalStack

# What is the stack's own, whichever release it has. The local cloud stands for Azure, which has none.
_OWN: Final = frozenset({".git", ".venv", ".localcloud", "Pulumi.local.yaml", "localcloud"})


def unpacked(commit: str, directory: Path) -> Path:
    """The project at a commit, with this checkout's packages and tools; a clone without the commit fails."""
    release = directory / commit
    release.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", commit], cwd=PROJECT, capture_output=True, check=False)
    assert archive.returncode == 0, f"{archive.stderr.decode()}: fetch the whole history (`git fetch --unshallow`)"
    subprocess.run(["tar", "--extract"], cwd=release, input=archive.stdout, check=True)
    for name in (".venv", ".tools"):
        (release / name).symlink_to((PROJECT / name).resolve())
    return release


def install(stack: LocalStack, release: Path) -> None:
    """Let the stack's commands and its engine run this release from now on. Its configuration stays."""
    for entry in stack.root.iterdir():
        if entry.is_symlink() and entry.name not in _OWN:
            entry.unlink()
    for entry in release.iterdir():
        if entry.name not in _OWN:
            (stack.root / entry.name).symlink_to(entry)
