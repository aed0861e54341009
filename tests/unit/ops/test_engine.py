"""The local stack's engine: its salt stays beside its state, and out of the repository."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ops.engine import Engine
from ops.trouble import Trouble
from tests.unit.ops.conftest import FakeEngine


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the configuration of a local stack."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "Pulumi.yaml").write_text("name: idstack\nruntime: python\n")
    (root / "Pulumi.local.yaml").write_text("config:\n  idstack:cloud: local\n")
    return root


def test_the_local_stack_is_made_beside_its_state(engine: FakeEngine, project: Path, tmp_path: Path) -> None:
    Engine("local", project).prepare()
    beside = tmp_path / "state/pulumi"
    assert yaml.safe_load((beside / "Pulumi.yaml").read_text())["name"] == "idstack", "the project of the stack's URNs"
    assert yaml.safe_load((beside / "Pulumi.local.yaml").read_text()) == {"encryptionsalt": "v1:of-this-machine"}
    assert (project / "Pulumi.local.yaml").read_text() == "config:\n  idstack:cloud: local\n"


def test_the_engine_reads_a_copy_of_the_configuration_with_the_salt(
    engine: FakeEngine, project: Path, tmp_path: Path
) -> None:
    local = Engine("local", project)
    local.prepare()
    (project / "Pulumi.local.yaml").write_text("config:\n  idstack:cloud: local\n  idstack:location: eastus\n")
    local.preview()
    copy = tmp_path / "state/pulumi/configuration.yaml"
    assert f"--config-file {copy}" in engine.calls[-1]
    assert yaml.safe_load(copy.read_text()) == {
        "encryptionsalt": "v1:of-this-machine",
        "config": {"idstack:cloud": "local", "idstack:location": "eastus"},
    }


def test_a_salt_in_the_repository_is_refused(engine: FakeEngine, project: Path) -> None:
    local = Engine("local", project)
    local.prepare()
    (project / "Pulumi.local.yaml").write_text("encryptionsalt: v1:of-another\nconfig: {}\n")
    with pytest.raises(Trouble, match=r"Pulumi.local.yaml has an `encryptionsalt`.* Remove the line"):
        local.up()
    assert [call.split()[0] for call in engine.calls] == ["stack"]


def test_another_stack_is_neither_made_nor_given_a_configuration(engine: FakeEngine, project: Path) -> None:
    other = Engine("dev", project)
    other.prepare()
    other.destroy(["--yes"])
    assert engine.calls == ["destroy --yes --stack dev"]
