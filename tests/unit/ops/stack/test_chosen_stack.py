"""The stack of a command without `--stack`, and what a stack without a file is told."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from ops.stack.chosen_stack import chosen_stack, require_stack, stack_names
from ops.stack.environment import ROOT
from ops.stack.errors import CommandError

AZURE, FILES = "azblob://pulumi-state?storage_account=stdev", "file:///srv/states"


@pytest.fixture
def project(project: Path) -> Path:
    (project / "Pulumi.yaml").write_text("name: idstack\nruntime: python\n")
    for stack in ("dev", "prod", "local"):
        (project / f"Pulumi.{stack}.yaml").write_text("config: {}\n")
    return project


@pytest.fixture
def caller(tmp_path: Path) -> dict[str, str]:
    return {"PULUMI_HOME": str(tmp_path / "home")}


def select(caller: dict[str, str], project: Path, **stacks: str) -> None:
    """What the engine notes, by backend: `{"stacks": {"file:///srv/states": "organization/idstack/dev"}}`."""
    key = hashlib.sha1(str(project / "Pulumi.yaml").encode(), usedforsecurity=False).hexdigest()
    note = Path(caller["PULUMI_HOME"], "workspaces", f"idstack-{key}-workspace.json")
    note.parent.mkdir(parents=True)
    urls = {"azure": AZURE, "files": FILES}
    note.write_text(json.dumps({"stacks": {urls[url]: f"organization/idstack/{name}" for url, name in stacks.items()}}))


def test_the_variable_goes_before_the_selected_stack_before_the_local_one(
    project: Path, caller: dict[str, str]
) -> None:
    assert chosen_stack(caller, project) == ("local", None)
    select(caller, project, azure="dev")

    assert chosen_stack(caller, project) == ("dev", "pulumi stack select")
    assert chosen_stack({**caller, "PULUMI_STACK": "organization/idstack/prod"}, project) == ("prod", "PULUMI_STACK")
    for note in Path(caller["PULUMI_HOME"], "workspaces").iterdir():
        note.write_text('{"stacks"')
    assert chosen_stack(caller, project) == ("local", None), "a note that is truncated selects nothing"


def test_of_several_selected_stacks_the_one_in_the_callers_backend_is_chosen(
    project: Path, caller: dict[str, str]
) -> None:
    select(caller, project, azure="prod", files="dev")

    assert chosen_stack({**caller, "PULUMI_BACKEND_URL": FILES}, project)[0] == "dev"
    with pytest.raises(CommandError, match=r"stacks in several backends: dev, prod\. Choose one with --stack$"):
        chosen_stack(caller, project)
    Path(caller["PULUMI_HOME"], "credentials.json").write_text(json.dumps({"current": AZURE}))
    assert chosen_stack(caller, project)[0] == "prod"


@pytest.mark.parametrize(
    ("stack", "meant", "way"),
    [
        ("dve", '; did you mean "dev"?', "`.venv/bin/idstack init dve` creates one"),
        ("xyz", ".", "`.venv/bin/idstack init xyz` creates one"),
        ("local-hc2", '; did you mean "local"?', "docs/guides/stacks.md has an example of a local one"),
    ],
    ids=["typing error", "unknown", "local"],
)
def test_a_stack_without_a_file_is_refused_with_those_that_have_one(
    project: Path, stack: str, meant: str, way: str
) -> None:
    with pytest.raises(CommandError) as refused:
        require_stack(stack, project)

    missing = f"there is no stack {stack}: the project has no Pulumi.{stack}.yaml{meant}"
    assert str(refused.value) == f"{missing} Stacks with a file: dev, local, prod. {way}"


def test_the_first_command_copies_a_sample_and_later_ones_read_the_copy(project: Path) -> None:
    sample, copy = project / "examples/stacks/Pulumi.local-both.yaml", project / "Pulumi.local-both.yaml"
    sample.parent.mkdir(parents=True)
    sample.write_text("config: {}\n")
    before = stack_names(project)

    require_stack("local-both", project)
    copied = copy.read_text()
    copy.write_text("config: {a: b}\n")
    require_stack("local-both", project)

    assert before == stack_names(project) == ["dev", "local", "local-both", "prod"]
    assert (copied, copy.read_text()) == ("config: {}\n", "config: {a: b}\n")


def test_git_ignores_the_copy_of_every_sample() -> None:
    samples = [file.name for file in (ROOT / "examples/stacks").iterdir()]

    assert samples
    assert {f"/{name}" for name in samples} <= {*(ROOT / ".gitignore").read_text().splitlines()}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("config:\n  idstack:location: a: b\n", r"line 2, column \d+: "),
        ("config: [\n", r"line \d, column \d+: "),
        ("- a", "it is not a YAML document of a stack"),
        ("config: {1: 2}", "it is not a YAML document of a stack"),
    ],
)
def test_a_file_that_is_none_of_a_stack_is_refused_with_the_place(project: Path, text: str, reason: str) -> None:
    (project / "Pulumi.dev.yaml").write_text(text)

    with pytest.raises(CommandError, match=rf"^Pulumi\.dev\.yaml cannot be read: {reason}"):
        require_stack("dev", project)
