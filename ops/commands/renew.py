"""`idstack renew`: renew the certificates that are due, without other changes of configuration or program.

It runs at the commit that the stack was last brought up from, in a separate work tree.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import typer
from rich.console import Console

from identity import checkout
from identity.credentials import renewal_request
from identity.credentials.renewal_request import RenewalRequest
from ops.commands.local import prepare
from ops.commands.options import RunOptions, Screen, inspector, with_options
from ops.outputs.rows import rows
from ops.renewal.guard import Renewable, Verdict, judge, renewable
from ops.stack.engine import Engine
from ops.stack.environment import local_paths
from ops.stack.errors import CommandError, message
from ops.stack.settings import require_sound_configuration
from ops.stack.stack_document import BACKEND_VARIABLE, backend_of
from ops.stack.streaming import run_passing_on
from ops.world.stacks import refuse_half_moves


@with_options
def renew(context: typer.Context, *, run: RunOptions) -> None:
    """Renew the certificates that are due, and change nothing else. Other options go to `pulumi up`.

    It runs the commit that was last deployed, not the checkout.
    """
    engine, screen = run.opened()
    prepare_renewal(context, engine, screen)
    identities = renewable(engine.resources())
    clusters = engine.outputs().get("hostedClusters", {}).values()
    if clusters and not any(cluster["controlPlane"] for cluster in clusters):
        screen.console.print(f"no identity of the stack {run.stack} has a certificate: nothing expires")
        inspector(context).show_status(engine, screen)
        return
    if not identities:
        raise CommandError(message("renew.nothing", stack=run.stack))
    verdict = RenewalRun(engine, screen.console, context.args).renew(identities)
    inspector(context).show_status(engine, screen)
    now, dates = datetime.now(UTC), rows(engine.outputs(), None)
    due = [f"{row.cluster}/{row.identity}" for row in dates if row.renew_after is not None and row.renew_after <= now]
    if overdue := [name for name in due if name in verdict.refused]:
        raise CommandError(f"a renewal is due and was left out: {', '.join(overdue)}; the reasons are printed above")
    if verdict.failed:
        raise CommandError(message("renew.would-fail", names=", ".join(sorted(verdict.failed))))


def prepare_renewal(context: typer.Context, engine: Engine, screen: Screen) -> None:
    """Prepare a run that only renews, or exit with the code of this command at the commit that was last brought up.

    Raises CommandError for an unsound configuration and an interrupted move.
    """
    prepare(engine, screen, is_known=True)
    if (code := run_instead(engine, engine.outputs().get("commit"), screen.console)) is not None:
        raise typer.Exit(code)
    require_sound_configuration(engine)
    refuse_half_moves(engine)


@dataclass(frozen=True)
class RenewalRun:
    """Renews the chosen identities in one `pulumi up`; `arguments` are further options of it."""

    engine: Engine
    console: Console
    arguments: Sequence[str] = ()

    def renew(self, identities: Sequence[Renewable], request: RenewalRequest | None = None) -> Verdict:
        """Renew the `identities` of the stack's state whose plan has a renewal and no other change.

        A schedule without a `request` decides by itself what is due. A line reports each one that is left out
        (`Verdict.refused`). Raises CommandError, before any change, if there is no plan, or it has steps of other
        resources.
        """
        # It tells the program that the run only renews.
        requests = {identity.schedule_name: request for identity in identities} if request else {}
        environment = renewal_request.write(requests)
        verdict = self._judge(identities, environment, replaces=request is RenewalRequest.REPLACE)
        done = {RenewalRequest.WITHDRAW: "withdrawn", RenewalRequest.REGISTER: "registered"}.get(
            request or RenewalRequest.RENEW, "renewed"
        )
        for name, reasons in verdict.refused.items():
            why = f"a renewal would bring up other changes: {'; '.join(reasons)}. "
            why += f"`.venv/bin/idstack up --stack {self.engine.stack}` does so, and renews what is due"
            if name in verdict.failed:
                why = f"its renewal fails: {'; '.join(reason.removeprefix('error: ') for reason in reasons)}"
            self.console.print(f"{name}: left out, because {why}")
        if verdict.renewed:
            self.console.print(f"{done} now: {', '.join(identity.name for identity in verdict.renewed)}")
            # A failed renewal must not prevent the others. But pulumi 3.276 deletes what is replaced even if it skips
            # the secret, which depends on that in the state, and then refuses the state.
            goes_on = () if request is RenewalRequest.REPLACE else ("--continue-on-error",)
            options = (*goes_on, *_targets(verdict.renewed), *self.arguments)
            self.engine.up(options, environment)
        else:
            self.console.print(f"nothing is {done}")
        return verdict

    def _judge(self, identities: Sequence[Renewable], environment: Mapping[str, str], *, replaces: bool) -> Verdict:
        """The verdict of the first plan without refusals, with those of the plans before it."""
        state, is_settled = self.engine.resources(), is_clean(self.engine.outputs().get("commit"))
        refused: dict[str, Sequence[str]] = {
            identity.name: ["its first `up` has not stored a credential yet"]
            for identity in identities
            if identity.secret is None and not replaces
        }
        failed: frozenset[str] = frozenset()
        refresh = [argument for argument in self.arguments if argument == "--refresh"]
        while chosen := [identity for identity in identities if identity.name not in refused]:
            plan = self.engine.proposed([*_targets(chosen), *refresh], environment)
            verdict = judge(chosen, plan, state, is_settled=is_settled)
            if not verdict.refused and verdict.blocked:
                raise CommandError(message("renew.blocked"), *(f"  {reason}" for reason in verdict.blocked))
            if not verdict.refused:
                return replace(verdict, refused=refused, failed=failed)
            refused |= verdict.refused
            failed |= verdict.failed
        return Verdict((), refused, (), failed)


def _targets(identities: Iterable[Renewable]) -> list[str]:
    # By names, because a pattern for all would also match identities that no `up` has created yet.
    return [argument for identity in identities for target in identity.as_targets for argument in ("--target", target)]


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
        raise CommandError(message("renew.no-commit-id", stack=stack, commit=commit))
    if not _succeeds(root, "cat-file", "-e", f"{commit}^{{commit}}"):
        raise CommandError(message("renew.not-in-this-clone", stack=stack, commit=commit))
    if _succeeds(root, "merge-base", "--is-ancestor", commit, "HEAD"):
        return
    branch = checkout.git(root, "rev-parse", "--abbrev-ref", "HEAD").strip()
    head = "the checked-out commit" if branch == "HEAD" else f"the checked-out branch {branch}"
    raise CommandError(message("renew.not-in-the-history", stack=stack, commit=commit, head=head))


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
