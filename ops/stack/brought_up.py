"""Runs a command at the commit that a stack was last brought up from, in a separate work tree."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rich.console import Console

from identity import checkout
from ops.stack.engine import Engine
from ops.stack.environment import local_paths
from ops.stack.errors import CommandError, message
from ops.stack.stack_document import BACKEND_VARIABLE, backend_of
from ops.stack.streaming import run_passing_on

# What `tools/setup` reads.
_SET_UP: Final = ("requirements.txt", "tools")
_INSTALLED: Final = (".venv", ".tools")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def is_clean(recorded: str | None) -> bool:
    """Whether a run recorded its commit, and its checkout had no other changes."""
    return recorded is not None and not recorded.endswith(checkout.DIRTY)


def run_instead(engine: Engine, recorded: str | None, console: Console) -> int | None:
    """Run this process's command line at the recorded commit; returns its exit code.

    None if nothing has run: the engine's project is at that commit, or no clean commit was recorded. Raises
    CommandError for a commit that is not in the repository, is not an ancestor of the checkout, or cannot be set up.
    """
    if recorded is None or not is_clean(recorded) or checkout.commit(engine.root, engine.stack) == recorded:
        return None
    _require_part_of_checkout(recorded, engine.root, engine.stack)
    console.print(f"at commit {recorded}, from which {engine.stack} was last brought up; this checkout differs")
    try:
        return _run_at(recorded, engine, console)
    finally:
        engine.prepare()  # the emulated plugins are this checkout's again


def _run_at(commit: str, engine: Engine, console: Console) -> int:
    with work_tree(commit, engine.root, engine.stack) as directory:
        if not (directory / ".venv").exists():
            console.print("its packages differ from this checkout's: they are installed for it")
            if subprocess.run([directory / "tools/setup"], cwd=directory, stdout=sys.stderr).returncode:
                raise CommandError(f"commit {commit} could not be set up; the reason is printed above")
        # At an older commit the file may not record the backend.
        backend = None if engine.is_local else backend_of(engine.stack, engine.root, os.environ)
        environment = {
            **os.environ,
            "PYTHONPATH": str(directory),  # its own modules come first
            "LOCALCLOUD_STATE_DIR": str(local_paths().state),
            **({BACKEND_VARIABLE: backend} if backend else {}),
        }
        command = [str(directory / ".venv/bin/python"), "-m", "ops", *sys.argv[1:]]
        return run_passing_on(command, directory=directory, environment=environment)


def _require_part_of_checkout(commit: str, root: Path, stack: str) -> None:
    """Raise CommandError unless the commit is an ancestor of the checkout.

    Everybody who may write the state can name a commit; only what a protected branch contains was reviewed.
    """
    if not _COMMIT.fullmatch(commit):
        raise CommandError(message("brought_up.no-commit-id", stack=stack, commit=commit))
    if not _succeeds(root, "cat-file", "-e", f"{commit}^{{commit}}"):
        raise CommandError(message("brought_up.not-in-this-clone", stack=stack, commit=commit))
    if _succeeds(root, "merge-base", "--is-ancestor", commit, "HEAD"):
        return
    branch = checkout.git(root, "rev-parse", "--abbrev-ref", "HEAD").strip()
    head = "the checked-out commit" if branch == "HEAD" else f"the checked-out branch {branch}"
    raise CommandError(message("brought_up.not-in-the-history", stack=stack, commit=commit, head=head))


def _succeeds(root: Path, *arguments: str) -> bool:
    try:
        checkout.git(root, *arguments)
    except subprocess.CalledProcessError:
        return False
    return True


@contextmanager
def work_tree(commit: str, root: Path, stack: str) -> Iterator[Path]:
    """The project at the commit, with links to the untracked files in `root`; it is removed afterwards."""
    with TemporaryDirectory(prefix="idstack-") as temporary:
        top = Path(temporary).resolve() / commit[:12]
        checkout.git(root, "worktree", "prune")  # those of killed runs
        try:
            checkout.git(root, "worktree", "add", "--detach", "--quiet", str(top), commit)
        except subprocess.CalledProcessError as error:
            raise CommandError(f"commit {commit} cannot be checked out beside {root}: {error.stderr.strip()}") from None
        try:
            directory = top / checkout.git(root, "rev-parse", "--show-prefix").strip()
            _link_untracked(root, directory, stack, commit)
            if checkout.commit(directory, stack) != commit:
                raise CommandError(f"a fresh work tree of commit {commit} differs from it: check its git attributes")
            yield directory
        finally:
            checkout.git(root, "worktree", "remove", "--force", str(top))


def _link_untracked(root: Path, directory: Path, stack: str, commit: str) -> None:
    """Link packages, the local cloud's state, and files that the configuration names, but no inputs of the plan."""
    others = ("ls-files", "--others", "--directory", "-z")
    deciding = checkout.git(root, *others, "--exclude-standard", "--", *checkout.deciding_paths(stack))
    linked = set(checkout.git(root, *others).split("\0")) - set(deciding.split("\0"))
    for name in sorted(path.rstrip("/") for path in linked if path):
        link = directory / name
        if "__pycache__" in Path(name).parts or not link.parent.is_dir() or link.is_symlink() or link.exists():
            continue
        if name not in _INSTALLED or _succeeds(root, "diff", "--quiet", commit, "--", *_SET_UP):
            link.symlink_to(root / name)
