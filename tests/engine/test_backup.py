"""A backup brings a stack back whose backend is lost, and holds no key."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.engine.key_material import KeySearch, vault_keys
from tests.harness import LocalStack


@pytest.fixture(scope="module")
def backup(small: LocalStack, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a backup."""
    file = tmp_path_factory.mktemp("backup") / "backup.json"
    small.idstack("backup", "--output", str(file))
    return file


def test_a_backup_has_no_private_key(small: LocalStack, backup: Path) -> None:
    content = backup.read_bytes()

    keys = vault_keys(small)
    assert keys
    assert KeySearch(keys).names_in(content) == set()
    assert b'"plaintext"' not in content


def test_after_the_loss_of_the_backend_a_backup_leaves_nothing_to_do(small: LocalStack, backup: Path) -> None:
    before = small.contents()
    shutil.rmtree(small.state / "pulumi/backend/.pulumi")

    done = small.idstack("restore", str(backup), "--json")

    assert json.loads(done.stdout)["configuration"] == "same"
    assert small.preview() == {}
    assert small.contents() == before
