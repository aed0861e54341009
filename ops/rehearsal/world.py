"""A throw-away local cloud with the stacks of a rehearsal on it, which is always removed afterwards."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from types import FrameType
from typing import Any, Final

import yaml

from identity import checkout
from identity.clouds import LocalEnvironment
from identity.yaml_text import dump, load_as_go
from ops.outputs.plan import RunLog, read
from ops.rehearsal.configuration import StackCopy
from ops.stack import local_cloud
from ops.stack.chosen_stack import file_of, stack_names
from ops.stack.engine import Engine
from ops.stack.environment import LOCAL_STACK, ROOT, STATE_DIRECTORY_VARIABLE, VENV, variables
from ops.stack.errors import CommandError, RunInterruptedError

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
        (self.directory / f"Pulumi.{stack}.yaml").write_text(dump(document), encoding="utf-8")


def at_commit(root: Path, commit: str, into: Path) -> Tree:
    """The project of the repository at `root` at a commit; packages that differ from the checkout's are installed.

    Only its files are unpacked, without a work tree: a killed run leaves nothing in the repository. Raises CommandError
    if git does not know the commit, or if it cannot be set up.
    """
    try:
        full = checkout.git(root, "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}").strip()
    except subprocess.CalledProcessError:
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
    listed = checkout.git(root, "ls-files", "--cached", "--others", "--exclude-standard", "-z").split("\0")
    # A file in the middle of a merge is listed once for each side.
    for name in dict.fromkeys(name for name in listed if name and not name.startswith((".venv", ".tools"))):
        source, copy = root / name, into / name
        if source.is_file() and not source.is_symlink():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)
    (into / ".venv").symlink_to(VENV)
    return Tree(into, "checkout")


def _install(root: Path, commit: str, directory: Path) -> None:
    try:
        checkout.git(root, "diff", "--quiet", commit, "--", _PACKAGES)
    except subprocess.CalledProcessError:
        print(f"the packages of {commit[:12]} differ from this checkout's: installing them", file=sys.stderr)
        if subprocess.run([directory / "tools/setup"], cwd=directory, stdout=sys.stderr).returncode:
            raise CommandError(f"commit {commit[:12]} could not be set up; the reason is printed above") from None
    else:
        (directory / ".venv").symlink_to(VENV)


_FAULTS: Final = "LOCALCLOUD_FAULTS"
# Variables of the caller's own local cloud.
_FOREIGN: Final = ("LOCALCLOUD_CLUSTER", "LOCALCLOUD_PROVIDERS")
# What Azure keeps of deleted resources, such as the result of a resource group's deletion, and what the local cloud
# creates with its first token.
_KEPT: Final = frozenset(
    [
        "arm-deletion",
        "arm-role-assignment-name",
        "entra-deleted",
        "entra-signing-key",
        "keyvault-name",
        "keyvault-secret",
    ]
)
_RECOVERABLE: Final = "keyvault-deleted"
# They change by themselves.
_RESTLESS: Final = frozenset({"environment", "kubernetes-version"})
_EVENTS: Final = "core/events/"
_LOG: Final = "log"
_LAST_LINES: Final = 25


@dataclass(frozen=True)
class ThrowAwayCloud:
    """The local cloud in `directory`, which has all files of the rehearsal. Child processes print to `output`."""

    directory: Path
    output: int

    @property
    def documents(self) -> Path:
        """The directory of the managed identities' documents, which is on tmpfs."""
        return self.directory / "state/run/msi"

    @property
    def log(self) -> Path:
        return self.directory / _LOG

    def start(self, seed: Mapping[str, Any], copies: Sequence[StackCopy]) -> LocalEnvironment:
        """Start the local cloud with this seed, and issue the documents that the copies name."""
        file = self.directory / "seed.yaml"
        file.write_text(dump(seed), encoding="utf-8")
        local_cloud.do("start", "--seed", str(file), output=self.output)
        record = local_cloud.record()
        if record is None:
            raise CommandError("the local cloud of the rehearsal did not start")
        for path, identity in dict(pair for copy in copies for pair in copy.documents.items()).items():
            local_cloud.do("issue-msi", identity, "--output", path, output=self.output)
        return record

    def contents(self) -> frozenset[tuple[str, str]]:
        """Kind and key of each object in the local cloud."""
        command = [sys.executable, "-m", "localcloud", "contents"]
        done = subprocess.run(command, cwd=ROOT, env=variables(LOCAL_STACK), capture_output=True, text=True)
        if done.returncode:
            raise CommandError(f"the local cloud's contents cannot be read: {done.stderr.strip()}")
        entries = (json.loads(line) for line in done.stdout.splitlines())
        return frozenset((kind, key) for kind, key in entries if kind not in _RESTLESS and not key.startswith(_EVENTS))

    def engine(self, tree: Tree, copy: StackCopy) -> Engine:
        """The engine for a stack at one of the commits, whose configuration file is written."""
        tree.write_configuration(copy.name, dict(copy.document))
        engine = Engine(copy.name, tree.directory, output=self.output)
        engine.prepare()
        return engine

    def up(self, tree: Tree, copy: StackCopy, word: str) -> tuple[Engine, RunLog, str | None]:
        """One `pulumi up` of the program in `tree`; returns its steps, and why it failed. An interruption is raised.

        `word` distinguishes its files from those of other runs of the stack.
        """
        engine = self.engine(tree, copy)
        events = self.directory / f"{word}-{copy.name}.events"
        failed = None
        try:
            engine.up(events=events)
        except RunInterruptedError:
            raise
        except CommandError as error:
            failed = str(error)
        lines = events.read_text(encoding="utf-8").splitlines() if events.exists() else []
        return engine, read(lines, copy.stack), failed

    def last_lines(self) -> str:
        """The end of the log, for a run that failed without an error of its own."""
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-_LAST_LINES:])


def left(before: frozenset[tuple[str, str]], after: frozenset[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """The objects that were created or have disappeared since `before`; then those that Azure keeps recoverable."""
    new = after - before
    remaining = [f"{kind} {key}" for kind, key in sorted(new) if kind not in _KEPT and kind != _RECOVERABLE]
    missing = [f"{kind} {key}, which does not exist" for kind, key in sorted(before - after)]
    return [*remaining, *missing], [f"vault {key}, deleted softly" for kind, key in sorted(new) if kind == _RECOVERABLE]


@contextmanager
def throw_away(seed: int) -> Iterator[ThrowAwayCloud]:
    """A local cloud with its own directory and variables; ends its processes and removes all of it.

    It does so also when this process is interrupted or terminated, and a second signal is ignored meanwhile.
    """
    directory = Path(mkdtemp(prefix="idstack-rehearsal-")).resolve()
    changed = {STATE_DIRECTORY_VARIABLE: str(directory / "state"), _FAULTS: json.dumps({"seed": seed})}
    before = {name: os.environ.get(name) for name in (*changed, *_FOREIGN)}
    handler = signal.signal(signal.SIGTERM, _terminated)
    try:
        os.environ.update(changed)
        for name in _FOREIGN:
            os.environ.pop(name, None)
        with (directory / _LOG).open("a") as log:
            yield ThrowAwayCloud(directory, log.fileno())
    finally:
        ignored = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            local_cloud.run(["stop", "--remove"], output=subprocess.DEVNULL)
        finally:
            shutil.rmtree(directory, ignore_errors=True)
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value
            signal.signal(signal.SIGINT, ignored[signal.SIGINT])
            signal.signal(signal.SIGTERM, handler)


def _terminated(number: int, _: FrameType | None) -> None:
    name = signal.Signals(number).name
    raise RunInterruptedError(f"interrupted by {name}: the rehearsal has removed its local cloud", name)
