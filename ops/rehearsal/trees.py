"""The project's files at a commit or of the checkout, each in a separate directory."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from identity import checkout
from identity.yaml_text import dump, load_as_go
from ops.stack.chosen_stack import file_of, stack_names
from ops.stack.environment import VENV
from ops.stack.errors import CommandError

# The pinned packages of program and plugin; the engine is the checkout's at both commits.
_PACKAGES: Final = "requirements.txt"


@dataclass(frozen=True)
class Tree:
    """The project in `directory`; `name` is the commit's short id, or `checkout`."""

    directory: Path
    name: str

    def configurations(self) -> dict[str, dict[str, Any]]:
        """The stacks' files by the stacks' names; raises CommandError for one that is not a mapping."""
        configurations = {}
        for stack in stack_names(self.directory):
            file = file_of(stack, self.directory)
            try:
                document = load_as_go(file.read_bytes())
            except yaml.YAMLError as error:
                raise CommandError(f"{file.name} at {self.name}: {' '.join(str(error).split())}") from None
            if not isinstance(document, dict):
                raise CommandError(f"{file.name} at {self.name} is not a YAML mapping")
            configurations[stack] = document
        return configurations

    def write_configuration(self, stack: str, document: dict[str, Any]) -> None:
        """Write a stack's file."""
        (self.directory / f"Pulumi.{stack}.yaml").write_text(dump(document), encoding="utf-8")


def at_commit(root: Path, commit: str, into: Path) -> Tree:
    """The project of the repository at `root` at a commit; packages that differ from the checkout's are installed.

    Only its files are unpacked, without a work tree: a killed run leaves nothing in the repository. Raises CommandError
    if git does not know the commit, or if it cannot be set up.
    """
    try:
        full = checkout.git(root, "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}").strip()
    except (OSError, subprocess.SubprocessError):
        raise CommandError(
            f"{root} is no git repository with the commit {commit}: `git fetch` it (for GitHub's actions/checkout "
            "`fetch-depth: 0`), or name another one"
        ) from None
    archive = into.with_suffix(".tar")
    checkout.git(root, "archive", "--format=tar", f"--output={archive}", full)
    into.mkdir()
    try:
        with tarfile.open(archive) as files:
            files.extractall(into, filter="data")
    except tarfile.FilterError as error:
        raise CommandError(f"commit {full[:12]} has a file that cannot be unpacked: {error}") from None
    archive.unlink()
    _install(root, full, into)
    return Tree(into, full[:12])


def as_it_is(root: Path, into: Path) -> Tree:
    """The files of the checkout that git tracks or does not ignore, with changes that are not committed."""
    into.mkdir()
    for name in _known(root):
        source, copy = root / name, into / name
        if source.is_file() and not source.is_symlink():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)
    (into / ".venv").symlink_to(VENV)
    return Tree(into, "checkout")


def _known(root: Path) -> Iterator[str]:
    listed = checkout.git(root, "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    # A file in the middle of a merge is listed once for each side.
    yield from dict.fromkeys(name for name in listed.split("\0") if name and not name.startswith((".venv", ".tools")))


def _install(root: Path, commit: str, directory: Path) -> None:
    try:
        checkout.git(root, "diff", "--quiet", commit, "--", _PACKAGES)
    except subprocess.CalledProcessError:
        print(f"the packages of {commit[:12]} differ from this checkout's: installing them", file=sys.stderr)
        if subprocess.run([directory / "tools/setup"], cwd=directory, stdout=sys.stderr).returncode:
            raise CommandError(f"commit {commit[:12]} could not be set up; the reason is printed above") from None
    else:
        (directory / ".venv").symlink_to(VENV)
