"""The commit of a checkout of the project, with respect to the files that decide about a stack."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Final

DIRTY: Final = "-dirty"
"""Ends the name of a commit with changes that are not committed."""
# Program and plugin, their requirements, and the project's file; `deciding_paths` adds the stack's file.
_DECIDING: Final = (
    "__main__.py",
    "components",
    "identity",
    "plugin",
    "provider",
    "requirements.txt",
    "Pulumi.yaml",
)
_TIMEOUT: Final = 30  # seconds; git answers in milliseconds
# git status --porcelain=v2
_HEAD: Final = "# branch.oid "
_UNBORN: Final = "(initial)"
# Set in a git hook; with them git would use another repository than the directory's.
_HOOK_VARIABLES: Final = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"})
# Of git's messages, in English.
_NO_REPOSITORY: Final = "not a git repository"
_UNTRUSTED: Final = re.compile(r"detected dubious ownership in repository at '(?P<path>.*)'")


class UnreadableCheckoutError(Exception):
    """git is missing, hangs, or does not read a repository that is there."""


def deciding_paths(stack: str) -> tuple[str, ...]:
    """The paths in the project that decide about the stack; `stack` may begin with its organization."""
    return (*_DECIDING, f"Pulumi.{stack.rpartition('/')[2]}.yaml")


def commit(root: Path, stack: str) -> str | None:
    """The full id of the commit that is checked out in `root`, with `-dirty` if deciding paths differ from it.

    None if `root` is not the project in a git repository, or has no commit yet. Raises UnreadableCheckoutError.
    """
    if not any((directory / ".git").exists() for directory in (root.resolve(), *root.resolve().parents)):
        return None
    try:
        if not git(root, "ls-files", "Pulumi.yaml"):
            return None  # a directory below somebody else's repository
        status = git(root, "status", "--porcelain=v2", "--branch", "--", *deciding_paths(stack)).splitlines()
    except subprocess.CalledProcessError as error:
        if _NO_REPOSITORY in error.stderr:
            return None
        raise _unreadable(root, error.stderr) from None
    heads = [line.removeprefix(_HEAD) for line in status if line.startswith(_HEAD)]
    commit_id = heads[0] if heads else _UNBORN
    if commit_id == _UNBORN:
        return None
    return commit_id + DIRTY if any(not line.startswith("#") for line in status) else commit_id


def git(root: Path, *arguments: str) -> str:
    """What git prints about the repository of `root`.

    Raises subprocess.CalledProcessError with its `stderr` if it fails, and UnreadableCheckoutError if there is no git,
    if it takes too long, or if it does not trust the repository.
    """
    try:
        return subprocess.run(
            # Without git's lock, which a second command would have to wait for.
            ["git", "--no-optional-locks", *arguments],
            cwd=root,
            env={**{name: value for name, value in os.environ.items() if name not in _HOOK_VARIABLES}, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=True,
        ).stdout
    except subprocess.CalledProcessError as error:
        if _UNTRUSTED.search(error.stderr):
            raise _unreadable(root, error.stderr) from None
        raise
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _unreadable(root, str(error)) from None


def _unreadable(root: Path, reason: str) -> UnreadableCheckoutError:
    if untrusted := _UNTRUSTED.search(reason):
        fix = f"`git config --global --add safe.directory {shlex.quote(untrusted['path'])}`, or give it to this user"
        return UnreadableCheckoutError(f"git does not read the checkout {root}: {untrusted[0]}. {fix}")
    return UnreadableCheckoutError(f"git does not read the checkout {root}: {' '.join(reason.split())}")
