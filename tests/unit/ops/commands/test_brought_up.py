"""The commit that was last brought up: when it runs instead of the checkout, and what its work tree has in it."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from rich.console import Console

from identity.checkout import UnreadableCheckoutError, git
from ops.commands.renew import run_instead, work_tree
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from tests.repositories import Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.made(tmp_path / "project")


def _work_trees(repository: Repository) -> list[str]:
    listed = git(repository.root, "worktree", "list", "--porcelain").splitlines()
    return [line for line in listed if line.startswith("worktree ")]


@pytest.mark.parametrize("below", ["", "identity/stack"], ids=["top", "below the top"])
def test_the_work_tree_is_the_project_at_the_commit_and_goes_afterwards(tmp_path: Path, below: str) -> None:
    repository = Repository.made(tmp_path / "top", below)
    before = repository.head
    repository.write("__main__.py", "later")
    repository.write("Pulumi.dev.yaml", "config: {later: true}\n")
    repository.commit()
    repository.write("__main__.py", "not committed")

    with work_tree(before, repository.root, "dev") as directory:
        assert (directory / "__main__.py").read_text() == ""
        assert (directory / "Pulumi.dev.yaml").read_text() == "config: {}\n"
        assert (directory / ".venv/bin/python").read_text() == "installed"
        assert directory.match(f"*/{below}")
        assert git(directory, "rev-parse", "HEAD").strip() == before

    assert not directory.exists()
    assert len(_work_trees(repository)) == 1
    assert (repository.root / "__main__.py").read_text() == "not committed"


def test_packages_and_ignored_files_are_this_checkouts(repository: Repository) -> None:
    before = repository.head
    repository.write("__main__.py", "later")
    repository.commit()
    repository.write("hc1.credential", "a document")
    repository.write("components/__pycache__/stack.pyc", "later")
    repository.write("components/experiment.py", "decides the plan")

    with work_tree(before, repository.root, "dev") as directory:
        for name in (".venv/bin/python", ".tools/engine.json"):
            assert (directory / name).read_text() == "installed"
        assert (directory / "hc1.credential").read_text() == "a document"
        assert [path.name for path in (directory / "components").iterdir()] == ["stack.py"]

    assert (repository.root / ".venv/bin/python").read_text() == "installed", "links went, not what they lead to"
    assert (repository.root / "hc1.credential").exists()


@pytest.mark.parametrize("path", ["requirements.txt", "tools/setup"])
def test_other_packages_or_tools_are_not_this_checkouts(repository: Repository, path: str) -> None:
    before = repository.head
    repository.write(path, "another")
    repository.commit()

    with work_tree(before, repository.root, "dev") as directory:
        assert not (directory / ".venv").exists()
        assert not (directory / ".tools").exists()


def _refusal(repository: Repository, commit: str) -> str:
    """Why the commit's program does not run."""
    with pytest.raises(CommandError) as refused:
        run_instead(Engine("dev", repository.root), commit, Console())
    assert len(_work_trees(repository)) == 1
    return str(refused.value)


def test_a_commit_of_a_branch_that_was_not_merged_does_not_run(repository: Repository) -> None:
    main = git(repository.root, "rev-parse", "--abbrev-ref", "HEAD").strip()
    git(repository.root, "checkout", "--quiet", "-b", "feature")
    repository.write("__main__.py", "not reviewed")
    before = repository.commit()
    git(repository.root, "checkout", "--quiet", main)

    refusal = _refusal(repository, before)

    assert (
        f"was last brought up from commit {before}, which is not in the history of the checked-out branch {main}"
        in refusal
    )
    assert "nothing was renewed" in refusal
    assert "`.venv/bin/idstack up --stack dev`" in refusal


def test_a_branch_that_was_squashed_and_deleted_left_no_commit_that_runs(repository: Repository) -> None:
    main = git(repository.root, "rev-parse", "--abbrev-ref", "HEAD").strip()
    git(repository.root, "checkout", "--quiet", "-b", "feature")
    repository.write("__main__.py", "first")
    repository.commit()
    repository.write("__main__.py", "reviewed")
    before = repository.commit()
    git(repository.root, "checkout", "--quiet", main)
    git(repository.root, "merge", "--quiet", "--squash", "feature")
    repository.commit()
    git(repository.root, "branch", "--quiet", "-D", "feature")
    git(repository.root, "checkout", "--quiet", "--detach")

    refusal = _refusal(repository, before)

    assert "which is not in the history of the checked-out commit" in refusal
    assert "was squashed or rebased" in refusal


def test_a_checkout_that_is_behind_is_updated_first(repository: Repository) -> None:
    behind = repository.head
    repository.write("__main__.py", "later")
    before = repository.commit()
    git(repository.root, "reset", "--quiet", "--hard", behind)

    assert "Update this checkout (`git pull`)" in _refusal(repository, before)


@pytest.mark.parametrize(
    ("recorded", "told"),
    [
        *(
            (recorded, ["which is not a commit id"])
            for recorded in ("--upload-pack=evil", "HEAD", "main", "feature", "abc", "0" * 39 + "\n")
        ),
        (
            "0" * 40,
            [
                f"commit {'0' * 40}, which this clone does not have",
                "`fetch-depth: 0`), or run `.venv/bin/idstack up --stack dev`",
            ],
        ),
    ],
)
def test_what_is_no_commit_of_the_clone_is_refused(repository: Repository, recorded: str, told: list[str]) -> None:
    refusal = _refusal(repository, recorded)

    assert [words for words in told if words not in refusal] == []


@pytest.mark.parametrize("recorded", ["same", "dirty", None])
def test_the_checkout_itself_runs_if_it_is_the_commit_or_none_is_recorded(
    repository: Repository, recorded: str | None
) -> None:
    known = {"same": repository.head, "dirty": f"{'0' * 40}-dirty", None: None}[recorded]

    assert run_instead(Engine("dev", repository.root), known, Console()) is None


def test_a_checkout_that_git_does_not_trust_is_not_one_without_the_commit(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = repository.head
    repository.commit()
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")

    with pytest.raises(UnreadableCheckoutError, match=r"dubious ownership.*safe\.directory"):
        run_instead(Engine("dev", repository.root), before, Console())


@pytest.mark.parametrize("change", ["commit", "edit"])
def test_the_recorded_commit_runs_instead_of_any_other(
    repository: Repository, change: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    repository.write(
        ".venv/bin/python", '#!/bin/sh\necho "$PWD $@ in $(cat __main__.py)$(git rev-parse HEAD)"\nexit 7\n'
    )
    (repository.root / ".venv/bin/python").chmod(0o755)
    before = repository.head
    repository.write("__main__.py", "later")
    if change == "commit":
        repository.commit()
    monkeypatch.setattr("sys.argv", ["idstack", "renew", "--stack", "dev", "--yes"])

    code = run_instead(Engine("dev", repository.root), before, Console(soft_wrap=True))

    printed = capfd.readouterr().out.splitlines()
    assert code == 7
    assert printed[0] == f"at commit {before}, from which dev was last brought up; this checkout differs"
    assert printed[1].endswith(f" -m ops renew --stack dev --yes in {before}")
    assert not printed[1].startswith(str(repository.root))


_SETUP = """#!/bin/sh
mkdir -p .venv/bin
printf '#!/bin/sh\necho own packages\n' > .venv/bin/python
chmod +x .venv/bin/python
"""


@pytest.mark.parametrize(("script", "is_installed"), [(_SETUP, True), ("#!/bin/sh\nexit 1\n", False)])
def test_other_packages_are_installed_for_it_or_it_does_not_run(
    repository: Repository,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    script: str,
    is_installed: bool,
) -> None:
    repository.write("tools/setup", script)
    (repository.root / "tools/setup").chmod(0o755)
    before = repository.commit()
    repository.write("requirements.txt", "another")
    repository.commit()
    monkeypatch.setattr("sys.argv", ["idstack", "renew"])

    with nullcontext() if is_installed else pytest.raises(CommandError, match="could not be set up"):
        assert run_instead(Engine("dev", repository.root), before, Console()) == 0
    assert ("own packages" in capfd.readouterr().out) == is_installed
