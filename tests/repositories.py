"""Real git repositories of a small project, in a directory of the test's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from identity.checkout import git

_FILES = {
    "Pulumi.yaml": "name: idstack\n",
    "Pulumi.dev.yaml": "config: {}\n",
    "__main__.py": "",
    "components/stack.py": "",
    "requirements.txt": "pulumi==3.259.0\n",
    "tools/setup": "#!/bin/sh\n",
    ".gitignore": ".venv/\n.venv\n.tools/\n__pycache__/\n*.credential\n",
}
_AUTHOR = ("-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false")


@dataclass(frozen=True)
class Repository:
    """The project in `root`, which has a virtual environment and tools that git ignores."""

    root: Path

    @classmethod
    def made(cls, top: Path, below: str = "") -> Self:
        """A new repository in `top` with one commit, in which the project is in the folder `below`."""
        repository = cls(top / below)
        for name, text in _FILES.items():
            repository.write(name, text)
        git(top, "init", "--quiet")
        repository.commit()
        for installed in (".venv/bin/python", ".tools/engine.json"):
            repository.write(installed, "installed")
        return repository

    @property
    def head(self) -> str:
        """Id of the commit that is checked out."""
        return git(self.root, "rev-parse", "HEAD").strip()

    def write(self, path: str, text: str) -> None:
        """Write a file of the project."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def commit(self, *paths: str) -> str:
        """Commit these paths, everything by default; returns the commit's id."""
        git(self.root, "add", "--all", *paths)
        git(self.root, *_AUTHOR, "commit", "--quiet", "--allow-empty", "--message", "change")
        return self.head
