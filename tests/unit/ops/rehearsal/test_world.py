"""The throw-away local cloud: variables of its own, and nothing left however the block ends."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from identity.checkout import git
from ops.rehearsal import world
from ops.rehearsal.world import ThrowAwayCloud, as_it_is, at_commit, throw_away
from ops.stack import local_cloud
from ops.stack.environment import local_paths
from ops.stack.errors import CommandError, RunInterruptedError
from tests.repositories import Repository


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """State directories whose local cloud was asked to end."""
    found: list[Path] = []

    def run(arguments: Sequence[str], *, output: int | None = None) -> int:
        assert list(arguments) == ["stop", "--remove"]
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN, "a second Ctrl-C must not keep it from that"
        found.append(local_paths().state)
        return 0

    monkeypatch.setattr(local_cloud, "run", run)
    return found


def test_the_callers_own_local_cloud_is_another(stopped: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALCLOUD_STATE_DIR", "/own")
    monkeypatch.setenv("LOCALCLOUD_CLUSTER", "apiserver")

    with throw_away(7) as made:
        assert local_paths().state == made.directory / "state"
        assert os.environ["LOCALCLOUD_FAULTS"] == '{"seed": 7}'
        assert "LOCALCLOUD_CLUSTER" not in os.environ

    assert local_paths().state == Path("/own")
    assert os.environ["LOCALCLOUD_CLUSTER"] == "apiserver"
    assert "LOCALCLOUD_FAULTS" not in os.environ
    assert stopped == [made.directory / "state"]
    assert not made.directory.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_leaves_nothing_either(stopped: list[Path], number: signal.Signals) -> None:
    handlers = [signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM)]
    kept: list[ThrowAwayCloud] = []

    def interrupted() -> None:
        with throw_away(1) as made:
            kept.append(made)
            signal.raise_signal(number)

    with pytest.raises((KeyboardInterrupt, RunInterruptedError)):
        interrupted()

    assert len(stopped) == 1
    assert not kept[0].directory.exists()
    assert [signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_the_end_of_the_log_tells_why(stopped: list[Path]) -> None:
    with throw_away(1) as made:
        os.write(made.output, b"".join(b"line %d\n" % number for number in range(40)))
        lines = made.last_lines().splitlines()

    assert lines[-1] == "line 39"
    assert len(lines) == world._LAST_LINES


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.made(tmp_path / "top")


def test_a_commit_is_laid_out_without_a_trace_in_the_repository(repository: Repository, tmp_path: Path) -> None:
    before = repository.head
    repository.write("__main__.py", "later")
    repository.commit()

    tree = at_commit(repository.root, before, tmp_path / "base")

    assert (tree.directory / "__main__.py").read_text() == ""
    assert tree.name == before[:12]
    assert list(tree.configurations()) == ["dev"]
    assert os.access(tree.directory / ".venv", os.X_OK)
    assert len(git(repository.root, "worktree", "list").splitlines()) == 1
    assert git(repository.root, "status", "--porcelain") == ""


def test_a_project_below_the_top_of_its_repository_is_found_there(tmp_path: Path) -> None:
    repository = Repository.made(tmp_path / "top", below="identity/stack")

    tree = at_commit(repository.root, "HEAD", tmp_path / "base")

    assert (tree.directory / "Pulumi.yaml").exists()


def test_the_checkout_has_what_is_not_committed_and_nothing_ignored(repository: Repository, tmp_path: Path) -> None:
    repository.write("__main__.py", "not committed")
    repository.write("components/new.py", "new")
    repository.write("hc1.credential", "secret")

    tree = as_it_is(repository.root, tmp_path / "head")

    assert (tree.directory / "__main__.py").read_text() == "not committed"
    assert (tree.directory / "components/new.py").exists()
    assert not (tree.directory / "hc1.credential").exists()


def test_other_packages_are_installed_for_a_commit(repository: Repository, tmp_path: Path) -> None:
    repository.write("tools/setup", "#!/bin/sh\nmkdir .venv\n")
    (repository.root / "tools/setup").chmod(0o755)
    before = repository.commit()
    repository.write("requirements.txt", "pulumi==3.260.0\n")
    repository.commit()

    tree = at_commit(repository.root, before, tmp_path / "base")

    assert not (tree.directory / ".venv").is_symlink()
    assert (tree.directory / ".venv").is_dir()


@pytest.mark.parametrize("commit", ["origin/main", "0" * 40, "--output=x"])
def test_an_unknown_commit_is_named_with_what_to_do(repository: Repository, tmp_path: Path, commit: str) -> None:
    with pytest.raises(CommandError, match=f"with the commit {commit}: `git fetch` it .*`fetch-depth: 0`"):
        at_commit(repository.root, commit, tmp_path / "base")


def test_a_broken_configuration_is_named_with_its_commit(repository: Repository, tmp_path: Path) -> None:
    repository.write("Pulumi.dev.yaml", "config: [\n")
    tree = as_it_is(repository.root, tmp_path / "head")

    with pytest.raises(CommandError, match=r"Pulumi\.dev\.yaml at checkout"):
        tree.configurations()


def test_a_link_that_leads_elsewhere_is_refused_by_name(repository: Repository, tmp_path: Path) -> None:
    (repository.root / "elsewhere").symlink_to("/etc/hostname")
    commit = repository.commit()

    with pytest.raises(CommandError, match="elsewhere"):
        at_commit(repository.root, commit, tmp_path / "base")


def test_without_a_repository_there_is_nothing_to_compare_with(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()

    with pytest.raises(CommandError, match="project is no git repository with the commit origin/main"):
        at_commit(tmp_path / "project", "origin/main", tmp_path / "base")
