"""Small files of the local engine that a loss of power left empty; `tests/storm` takes them all at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.harness import LocalStack, empty_project


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> LocalStack:
    """A stack that was made and never brought up; each test leaves it whole, the last one ends it."""
    made = empty_project(tmp_path_factory.mktemp("power"), warm=True)
    made.prepare()
    return made


def _salt(file: Path) -> str:
    salt: str = yaml.safe_load(file.read_text())["encryptionsalt"]
    return salt


def test_a_stack_is_read_without_the_engines_note_of_it_and_the_version_of_the_backend(stack: LocalStack) -> None:
    """To prepare a stack is to read both."""
    [note, *_] = (stack.state / "pulumi/home/workspaces").glob("*-workspace.json")
    note.write_text("")
    stack.prepare()
    version = stack.state / "pulumi/backend/.pulumi/meta.yaml"
    for content in ("", "v", "version: "):
        version.write_text(content)
        stack.prepare()
        assert yaml.safe_load(version.read_text()) == {"version": 1}
    assert stack.name in {listed["name"] for listed in json.loads(stack.pulumi("stack", "ls", "--json").stdout)}


def test_a_stacks_salt_comes_back_out_of_its_state(stack: LocalStack) -> None:
    file = stack.state / "pulumi/Pulumi.local.yaml"
    salt = _salt(file)
    for remove in (lambda: file.write_text(""), lambda: file.write_text(f"encryptionsalt: {salt[:20]}"), file.unlink):
        remove()
        stack.prepare()
        assert _salt(file) == salt


def test_a_stack_that_lost_its_salt_and_its_state_is_created_again(stack: LocalStack) -> None:
    file = stack.state / "pulumi/Pulumi.local.yaml"
    for emptied in (file, *(stack.state / "pulumi/backend/.pulumi/stacks").rglob("*.json*")):
        emptied.write_text("")
    recovered = stack.idstack("recover", "--no-up", check=False)
    assert "before any run ended, and is empty now" in recovered.stdout
    assert _salt(file)
    stack.idstack("down")
