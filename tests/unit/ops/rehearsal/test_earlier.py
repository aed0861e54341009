"""The record of the local cloud as an earlier program reads it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from identity.clouds import LOCAL_ENVIRONMENT_VARIABLE, LocalEnvironment
from ops.rehearsal.earlier import variables_for
from ops.rehearsal.trees import Tree
from ops.stack.environment import local_paths
from ops.stack.errors import CommandError
from tests.records import write_record
from tests.unit.ops.stacks import local_environment

_EARLIER = """
from dataclasses import dataclass
@dataclass
class LocalEnvironment:
    authority_host: str
    ca_file: str
"""


def tree_with(directory: Path, clouds: str) -> Tree:
    """A commit whose program has this module `identity.clouds`."""
    (directory / "identity").mkdir(parents=True)
    (directory / "identity/__init__.py").touch()
    (directory / "identity/clouds.py").write_text(clouds, encoding="utf-8")
    (directory / ".venv/bin").mkdir(parents=True)
    (directory / ".venv/bin/python").symlink_to(sys.executable)
    return Tree(directory, "0123456789ab")


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed plugin of a local cloud that left its record."""
    monkeypatch.setenv("LOCALCLOUD_STATE_DIR", str(tmp_path / "state"))
    paths = local_paths()
    paths.create()
    write_record(paths.record, local_environment(paths.state, paths.state / "kubeconfig"))
    file = paths.plugins / "resource-azuread-v6.0.0/pulumi-resource-azuread"
    file.parent.mkdir(parents=True)
    file.write_text('#!/bin/sh\nexec /bin/emulated "$@"\n', encoding="utf-8")
    return file


def test_an_earlier_program_reads_what_it_knows_and_the_plugins_all_of_it(script: Path, tmp_path: Path) -> None:
    found = variables_for(tree_with(tmp_path / "base", _EARLIER), tmp_path / "record")

    assert found == {LOCAL_ENVIRONMENT_VARIABLE: str(tmp_path / "record")}
    assert set(json.loads((tmp_path / "record").read_text())) == {"authorityHost", "caFile"}
    record = local_paths().record
    assert f"exec env {LOCAL_ENVIRONMENT_VARIABLE}={record} /bin/emulated" in script.read_text()


def test_the_program_of_this_release_reads_the_record_itself(script: Path, tmp_path: Path) -> None:
    members = "".join(f"    {name}: str\n" for name in LocalEnvironment.__dataclass_fields__)
    now = f"from dataclasses import dataclass\n@dataclass\nclass LocalEnvironment:\n{members}"

    assert variables_for(tree_with(tmp_path / "head", now), tmp_path / "record") == {}
    assert "env" not in script.read_text()


def test_a_program_without_a_local_cloud_is_refused_by_its_commit(script: Path, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="0123456789ab"):
        variables_for(tree_with(tmp_path / "base", ""), tmp_path / "record")
