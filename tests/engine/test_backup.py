"""A backup brings a stack back whose backend is lost, and holds no key."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.engine.key_material import KeySearch, vault_keys
from tests.harness import LocalStack


def test_after_the_loss_of_the_backend_a_backup_without_a_key_leaves_nothing_to_do(
    small: LocalStack, tmp_path: Path
) -> None:
    before, backup = small.contents(), tmp_path / "backup.json"
    small.idstack("backup", "--output", str(backup))
    keys, content = vault_keys(small), backup.read_bytes()
    assert keys
    assert KeySearch(keys).names_in(content) == set()
    assert b'"plaintext"' not in content
    shutil.rmtree(small.state / "pulumi/backend/.pulumi")

    done = small.idstack("restore", str(backup), "--json")

    assert json.loads(done.stdout)["configuration"] == "same"
    assert small.preview() == {}
    assert small.contents() == before
