"""`idstack preview --hold`: the configuration that the program sees, and the file that stays as it was."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from ops.stack.engine import Engine
from ops.stack.environment import variables
from ops.stack.errors import CommandError
from tests.unit.ops.conftest import has_plugins

_PROGRAM = """\
import json
from pathlib import Path
import pulumi
Path("seen.json").write_text(json.dumps(pulumi.Config().require_object("credentials")))
"""
_CONFIGURATION = """\
config:
  # A comment, and a sibling of the key that is set.
  idstack:credentials:
    renewal: auto
    propagation:
      settleSeconds: 30
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that writes down what it was configured with, and its stack `dev` in a backend of the test's own."""
    backend, project = tmp_path / "backend", tmp_path / "project"
    for directory in (backend, project):
        directory.mkdir()
    monkeypatch.setenv("PULUMI_BACKEND_URL", backend.as_uri())
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "of the test")
    has_plugins(tmp_path, monkeypatch)
    (project / "Pulumi.yaml").write_text("name: idstack\nruntime: python\n", encoding="utf-8")
    (project / "__main__.py").write_text(_PROGRAM, encoding="utf-8")
    subprocess.run(["pulumi", "stack", "init", "dev"], cwd=project, env=variables("dev"), check=True)
    with (project / "Pulumi.dev.yaml").open("a", encoding="utf-8") as configuration:
        configuration.write(_CONFIGURATION)
    return project


def test_preview_hold_sets_one_key_and_leaves_the_stacks_file_alone(project: Path) -> None:
    before = (project / "Pulumi.dev.yaml").read_bytes()

    Engine("dev", root=project).preview(hold=True)

    assert json.loads((project / "seen.json").read_bytes()) == {"renewal": "hold", "propagation": {"settleSeconds": 30}}
    assert (project / "Pulumi.dev.yaml").read_bytes() == before


def test_preview_hold_without_a_configuration_names_the_missing_file(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"the project has no Pulumi\.dev\.yaml"):
        Engine("dev", root=tmp_path).preview(hold=True)
