"""The local stack's engine: its salt stays beside its state, and out of the repository."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from itertools import chain, repeat
from pathlib import Path
from subprocess import CompletedProcess
from typing import Final

import pytest
import yaml

from ops.stack.engine import Engine
from ops.stack.errors import CommandError, RunInterruptedError
from ops.stack.streaming import Deadline, Ended
from tests.harness import LocalStack
from tests.unit.ops.conftest import FakeEngine


@pytest.fixture
def project(engine: FakeEngine, tmp_path: Path) -> Path:
    """A project with the configuration of a local stack, which the engine does not know yet."""
    engine.has_no_stack()
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


def test_what_the_engine_cannot_read_of_selected_stacks_is_forgotten(
    engine: FakeEngine, project: Path, tmp_path: Path
) -> None:
    notes = tmp_path / "state/pulumi/home/workspaces"
    notes.mkdir(parents=True)
    empty, whole = (notes / f"{name}-workspace.json" for name in ("empty", "whole"))
    empty.touch()
    whole.write_text('{"stacks": {}}')
    Engine("local", project).prepare()
    assert (empty.exists(), whole.exists()) == (False, True)


def add_salt(project: Path) -> str:
    """Do what a bare `pulumi preview -s local` does in a checkout; returns the configuration that it leaves."""
    configuration = project / "Pulumi.local.yaml"
    configuration.write_text("encryptionsalt: v1:of-another\n" + configuration.read_text())
    return configuration.read_text()


def test_a_salt_in_the_repository_changes_nothing(engine: FakeEngine, project: Path, tmp_path: Path) -> None:
    written = add_salt(project)
    local = Engine("local", project)
    local.prepare()
    local.up()
    local.preview(hold=True)
    copy = (tmp_path / "state/pulumi/configuration.local.yaml").read_text()
    assert [line for line in copy.splitlines() if "salt" in line] == ["encryptionsalt: v1:of-this-machine"]
    assert yaml.safe_load(copy)["config"] == {"idstack:cloud": "local"}
    assert (project / "Pulumi.local.yaml").read_text() == written, "the file is the user's"


def test_a_stack_of_the_tests_has_its_own_salt(engine: FakeEngine, project: Path, tmp_path: Path) -> None:
    add_salt(project)
    LocalStack(project).prepare()
    text = (project / "Pulumi.local.yaml").read_text()
    assert [line for line in text.splitlines() if "salt" in line] == ["encryptionsalt: v1:of-this-machine"]


@pytest.mark.parametrize("value", ["{secure: v1:x}", "[{name: a, password: {secure: v1:x}}]"])
def test_a_secret_that_another_machine_encrypted_is_refused(engine: FakeEngine, project: Path, value: str) -> None:
    local = Engine("local", project)
    local.prepare()
    with (project / "Pulumi.local.yaml").open("a") as configuration:
        configuration.write(f"  idstack:x: {value}\n")
    add_salt(project)
    with pytest.raises(CommandError, match=r"Pulumi.local.yaml has secret values and an `encryptionsalt`"):
        local.up()
    assert {call.split()[0] for call in engine.calls} == {"stack"}


def test_every_local_stack_has_a_configuration_and_a_salt_of_its_own(
    engine: FakeEngine, project: Path, tmp_path: Path
) -> None:
    (project / "Pulumi.local-hc2.yaml").write_text("config:\n  idstack:cloud: local\n  idstack:location: westus\n")
    for stack in ("local", "local-hc2"):
        engine.has_no_stack()
        Engine(stack, project).prepare()
        Engine(stack, project).preview()
    beside = tmp_path / "state/pulumi"
    assert engine.calls[-1] == f"preview --config-file {beside}/configuration.local-hc2.yaml --stack local-hc2"
    assert (beside / "Pulumi.local-hc2.yaml").exists()
    texts = [(beside / f"configuration.{stack}.yaml").read_text() for stack in ("local", "local-hc2")]
    assert ["idstack:location: westus" in text for text in texts] == [False, True]


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("config:\n  idstack:cloud: AzurePublicCloud\n", r"has `idstack:cloud: \w+`, but its stack has the name"),
        ("config:\n  idstack:location: eastus\n", r"has `idstack:cloud: \w+`, but its stack has the name"),
        (None, "there is no stack local-prod: the project has no Pulumi.local-prod.yaml"),
    ],
)
def test_a_local_stack_without_a_local_configuration_is_refused_first(
    engine: FakeEngine, project: Path, text: str | None, refusal: str
) -> None:
    if text is not None:
        (project / "Pulumi.local-prod.yaml").write_text(text)
    with pytest.raises(CommandError, match=refusal):
        Engine("local-prod", project).prepare()
    assert engine.calls == []


@pytest.mark.parametrize(
    ("ended", "message"),
    [
        (
            Ended(0, "", "the time limit of 40 minutes"),
            "interrupted by the time limit of 40 minutes: `pulumi up` has finished its operations in progress and "
            "unlocked the stack. Run the command again, which resumes from there",
        ),
        (
            Ended(-9, "", None),
            "`pulumi up` was killed by signal 9. `.venv/bin/idstack recover --stack dev` unlocks the stack and settles "
            "interrupted operations, and runs `up`",
        ),
    ],
)
def test_an_interrupted_run_is_an_error_with_the_way_on(
    engine: FakeEngine, project: Path, monkeypatch: pytest.MonkeyPatch, ended: Ended, message: str
) -> None:
    monkeypatch.setattr("ops.stack.pulumi_runs.run_streaming", lambda *_, **__: ended)

    with pytest.raises(RunInterruptedError) as caught:
        Engine("dev", project).up()

    assert str(caught.value) == message


@pytest.mark.parametrize(("run", "name"), [(Engine.state, "stack export"), (Engine.proposed, "preview")])
def test_a_short_run_that_was_killed_says_so_and_names_the_way_on(
    engine: FakeEngine, project: Path, monkeypatch: pytest.MonkeyPatch, run: Callable[[Engine], object], name: str
) -> None:
    monkeypatch.setattr("subprocess.run", lambda *_, **__: CompletedProcess([], -9, "", ""))
    with pytest.raises(RunInterruptedError) as caught:
        run(Engine("dev", project))
    assert str(caught.value) == (
        f"`pulumi {name}` was killed by signal 9. Run the command again, or `.venv/bin/idstack recover --stack dev` if "
        "the stack is locked"
    )


def test_a_backend_whose_version_is_cut_short_has_a_remedy(
    engine: FakeEngine, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What Pulumi 3.259 prints.
    error = (
        'error: corrupt store: unmarshal ".pulumi/meta.yaml": yaml: unmarshal errors:\n'
        '  line 1: cannot unmarshal !!str `v` into struct { Version *int "yaml:\\"version\\"" }\n'
    )
    monkeypatch.setattr("subprocess.run", lambda *_, **__: CompletedProcess([], 255, "", error))
    with pytest.raises(CommandError, match=r"\.pulumi/meta\.yaml of the backend is truncated.*: delete it"):
        Engine("dev", project).state()


# What Pulumi 3.259 printed while other engines wrote.
_VANISHED: Final = (
    "error: list bucket: blob (code=NotFound): lstat /b/.pulumi/stacks/idstack/c66.json.18eac650c3b270f2.tmp: "
    "no such file or directory\n"
)


@pytest.mark.parametrize(("failures", "is_listed"), [(2, True), (1000, False)])
def test_stacks_are_listed_again_if_a_draft_was_gone_meanwhile(
    engine: FakeEngine, project: Path, monkeypatch: pytest.MonkeyPatch, failures: int, is_listed: bool
) -> None:
    answers = chain(
        repeat(CompletedProcess([], 255, "", _VANISHED), failures),
        repeat(CompletedProcess([], 0, '[{"name": "dev"}]', "")),
    )
    monkeypatch.setattr("subprocess.run", lambda *_, **__: next(answers))
    with nullcontext() if is_listed else pytest.raises(CommandError, match="other engines write their states there"):
        assert Engine("dev", project).stacks() == ["dev"]


@pytest.mark.parametrize("error", ["error: no stack named 'dev' found\n", "error: disk quota exceeded\n"])
def test_a_missing_stack_has_no_resources_and_an_unreadable_one_is_an_error(
    engine: FakeEngine, project: Path, monkeypatch: pytest.MonkeyPatch, error: str
) -> None:
    monkeypatch.setattr("subprocess.run", lambda *_, **__: CompletedProcess([], 255, "", error))
    is_missing = "no stack" in error
    with nullcontext() if is_missing else pytest.raises(CommandError, match="disk quota"):
        assert Engine("dev", project).resources_if_any() == []


def test_another_stack_gets_no_configuration_and_after_the_deadline_no_engine(
    engine: FakeEngine, project: Path
) -> None:
    other = Engine("dev", project)
    other.prepare()
    other.destroy(["--yes"])
    with pytest.raises(RunInterruptedError, match="time limit of 40 minutes has passed before `pulumi refresh` began"):
        Engine("dev", project, deadline=Deadline(40.0, time.monotonic())).refresh()
    assert engine.calls == ["destroy --yes --stack dev"]


@pytest.mark.parametrize("run", [Engine.up, Engine.preview, Engine.destroy], ids=lambda run: run.__name__)
def test_no_provider_signs_in_as_somebody_else(
    run: Callable[[Engine], None], engine: FakeEngine, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARM_CLIENT_SECRET_FILE_PATH", str(project / "secret"))
    monkeypatch.setenv("ARM_CLIENT_ID", "5b2c7e0e-0000-4000-8000-000000000001")
    (project / "secret").write_text("s3cret")
    with pytest.raises(CommandError, match=r"ARM_CLIENT_SECRET_FILE_PATH is set, which .* Nothing was changed"):
        run(Engine("dev"))
    assert not engine.calls
