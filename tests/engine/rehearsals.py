"""Repositories of the project in which a change of a stack's configuration is rehearsed with the real command."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from identity.checkout import git
from tests.harness import PROJECT
from tests.repositories import Repository
from tests.warm import virtual_environment

COPIED: Final = (
    *("__main__.py", "cloud", "components", "identity", "ops", "plugin", "policies", "provider"),
    *("tools", "Pulumi.yaml", "pyproject.toml", "requirements.txt", ".gitignore"),
)
"""What the commands run: links to this checkout git would not know of."""
_KEYS: Final = "idstack:{}"


@dataclass(frozen=True)
class Rehearsed:
    """What one rehearsal printed: its document, and whatever else it said."""

    code: int
    document: dict[str, Any]
    errors: str

    @property
    def findings(self) -> list[str]:
        """What speaks against the change."""
        found: list[str] = self.document["findings"]
        return found

    def failed(self) -> dict[str, set[str]]:
        """Causes of failed sign-ins by identity, of clients and of new pods."""
        found: dict[str, set[str]] = {}
        for attempt in (*self.document["signIns"], *self.document["newPods"]):
            if attempt["failed"]:
                found.setdefault(attempt["identity"], set()).update(attempt["failed"])
        return found

    def operations(self, kind: str) -> dict[str, int]:
        """Resources of a kind per operation."""
        total: dict[str, int] = {}
        for row in self.document["plan"]:
            for operation, count in row.get(kind, {}).items():
                total[operation] = total.get(operation, 0) + count
        return total


@dataclass(frozen=True)
class Rehearsals:
    """The project as a repository with one commit; its stacks' files are the project's own until they are changed."""

    repository: Repository

    @property
    def root(self) -> Path:
        """The repository's directory."""
        return self.repository.root

    def start(self, stack: str, **changes: Any) -> dict[str, Any]:
        """Commit the project's own file of a stack, changed, as the only one; returns its configuration."""
        for file in self.root.glob("Pulumi.*.yaml"):
            file.unlink()
        config = {**self.file(stack), **changes}
        self.write(stack, config)
        self.repository.commit()
        return config

    def file(self, stack: str) -> dict[str, Any]:
        """The configuration of a stack's file by key, without namespaces."""
        source = self.root / f"Pulumi.{stack}.yaml"
        config = yaml.safe_load((source if source.exists() else PROJECT / source.name).read_text())["config"]
        return {key.removeprefix("idstack:"): value for key, value in config.items() if key.startswith("idstack:")}

    def cluster(self, stack: str, **changes: Any) -> dict[str, Any]:
        """The first hosted cluster of a stack, changed."""
        return {**deepcopy(self.file(stack)["hostedClusters"][0]), **changes}

    def write(self, stack: str, config: dict[str, Any]) -> None:
        """Write a stack's file; a key with None is left out."""
        own = {_KEYS.format(key): value for key, value in config.items() if value is not None}
        guard = {"pulumi:disable-default-providers": ["azure-native", "azuread", "kubernetes"]}
        (self.root / f"Pulumi.{stack}.yaml").write_text(yaml.safe_dump({"config": guard | own}), encoding="utf-8")

    def rehearse(self, stack: str, *arguments: str) -> Rehearsed:
        """Rehearse the checkout against the last commit."""
        done = subprocess.run(
            [*self._command(stack), "--json", *arguments],
            cwd=self.root,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert done.stdout, done.stderr
        return Rehearsed(done.returncode, json.loads(done.stdout), done.stderr)

    def interrupted(self, stack: str, *, at: str, by: signal.Signals) -> str:
        """Interrupt a rehearsal once it begins a step; returns what it printed on standard error."""
        with subprocess.Popen(
            self._command(stack),
            cwd=self.root,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stderr is not None
            printed = []
            for line in process.stderr:
                printed.append(line)
                if line.startswith(at):
                    process.send_signal(by)
        assert process.returncode != 0
        return "".join(printed)

    @property
    def temporary(self) -> Path:
        """Where the rehearsals' directories are made."""
        return self.root.parent / "temporary"

    @property
    def _environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self.root), "TMPDIR": str(self.temporary)}

    def _command(self, stack: str) -> list[str]:
        # Not a warm one, which has looked for its temporary directory before.
        return [sys.executable, "-m", "ops", "rehearse", "--stack", stack, "--base", "HEAD"]


@contextmanager
def rehearsals(top: Path, *, warm: bool = True) -> Iterator[Rehearsals]:
    """A repository of the project in `top`, without a stack's file; `warm`: as `running_stack` has it."""
    root = top / "project"
    root.mkdir()
    (top / "temporary").mkdir()
    copy_project(root)
    (root / ".venv").symlink_to(virtual_environment() if warm else PROJECT / ".venv")
    (root / ".tools").symlink_to(PROJECT / ".tools")
    git(root, "init", "--quiet")
    (root / ".git/info/exclude").write_text(".venv\n.tools\n", encoding="utf-8")
    yield Rehearsals(Repository(root))


def copy_project(root: Path) -> None:
    """Copy what the commands run into a directory."""
    for name in COPIED:
        if (PROJECT / name).is_dir():
            shutil.copytree(PROJECT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(PROJECT / name, root / name)


def processes_in(directory: Path) -> list[str]:
    """Command lines of the processes that name a directory."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if str(directory) in words:
                found.append(words)
    return found
