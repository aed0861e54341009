"""The commit of a checkout, in real git repositories."""

from __future__ import annotations

from pathlib import Path

import pytest

from identity.checkout import UnreadableCheckoutError, commit, git
from tests.repositories import Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.made(tmp_path / "project")


def test_a_clean_checkout_is_its_commit(repository: Repository) -> None:
    assert commit(repository.root, "dev") == repository.head
    assert len(repository.head) == 40


@pytest.mark.parametrize(
    "path",
    ["__main__.py", "components/stack.py", "provider/new.py", "requirements.txt", "Pulumi.yaml", "Pulumi.dev.yaml"],
)
def test_a_change_that_decides_the_plan_makes_it_dirty(repository: Repository, path: str) -> None:
    repository.write(path, "changed")

    assert commit(repository.root, "dev") == f"{repository.head}-dirty"
    assert commit(repository.root, "organization/idstack/dev") == f"{repository.head}-dirty"


@pytest.mark.parametrize(
    "path", ["docs/guides/first-stack.md", "tests/new.py", "Pulumi.prod.yaml", "components/__pycache__/x.pyc"]
)
def test_any_other_change_does_not(repository: Repository, path: str) -> None:
    repository.write(path, "changed")

    assert commit(repository.root, "dev") == repository.head


def test_a_removed_file_makes_it_dirty(repository: Repository) -> None:
    (repository.root / "__main__.py").unlink()

    assert commit(repository.root, "dev") == f"{repository.head}-dirty"


def test_a_project_below_the_top_of_its_repository_is_the_repositorys_commit(tmp_path: Path) -> None:
    repository = Repository.made(tmp_path / "top", below="identity/stack")

    assert commit(repository.root, "dev") == repository.head


def test_without_a_repository_there_is_no_commit(tmp_path: Path) -> None:
    assert commit(tmp_path, "dev") is None


def test_a_directory_inside_somebody_elses_repository_has_no_commit(repository: Repository) -> None:
    other = repository.root / "elsewhere"
    other.mkdir()
    (other / "Pulumi.yaml").write_text("name: another\n")

    assert commit(other, "dev") is None


def test_a_repository_without_a_commit_has_none(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: idstack\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "Pulumi.yaml")

    assert commit(tmp_path, "dev") is None


def test_without_git_a_repository_cannot_be_read_and_no_repository_is_none(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))

    with pytest.raises(UnreadableCheckoutError, match=r"No such file or directory: 'git'"):
        commit(repository.root, "dev")
    assert commit(tmp_path, "dev") is None


@pytest.mark.parametrize("locale", ["C", "de_DE.UTF-8"])
def test_a_repository_of_another_user_is_not_read_and_the_way_out_is_named(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, locale: str
) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")  # git's own switch for tests
    monkeypatch.setenv("LC_ALL", locale)

    with pytest.raises(UnreadableCheckoutError) as refused:
        commit(repository.root, "dev")

    assert "detected dubious ownership in repository at" in str(refused.value)
    assert f"`git config --global --add safe.directory {repository.root}`" in str(refused.value)


def test_a_broken_repository_is_not_taken_for_none(repository: Repository) -> None:
    (repository.root / ".git/index").write_bytes(b"broken")

    with pytest.raises(UnreadableCheckoutError, match="index"):
        commit(repository.root, "dev")


def test_a_git_hooks_variables_lead_nowhere_else(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", str(repository.root / "no-such-repository"))

    assert commit(repository.root, "dev") == repository.head
