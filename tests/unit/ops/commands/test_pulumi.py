"""`idstack pulumi`: the engine's CLI with what belongs to the stack."""

from __future__ import annotations

from pathlib import Path

import pytest

from ops.commands import pulumi
from tests.unit.ops.conftest import FakeEngine, Idstack

BACKEND = "azblob://pulumi-state?storage_account=stdev"
_SHOWS = """\
#!/bin/sh
[ "$1 $2" != "stack init" ] || exit 0
printf '%s\\n' "$*" "stack $PULUMI_STACK" "backend $PULUMI_BACKEND_URL" "home $PULUMI_HOME" "in $(pwd)"
exit 3
"""


@pytest.fixture
def project(project: Path, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the stack dev, and an engine that shows what it was called with."""
    (project / "Pulumi.yaml").write_text("name: idstack\nruntime: python\n")
    (project / "Pulumi.dev.yaml").write_text(f"config:\n  idstack:backend: {BACKEND}\n")
    (engine.folder / "pulumi").write_text(_SHOWS)
    monkeypatch.setattr(pulumi, "ROOT", project)
    monkeypatch.delenv("PULUMI_BACKEND_URL", raising=False)
    return project


def test_the_engine_gets_the_stack_with_its_backend(project: Path, tmp_path: Path, idstack: Idstack) -> None:
    printed = idstack("pulumi", "--stack", "dev", "--", "stack", "output", "--json")

    assert (printed.code, printed.error) == (3, "")
    assert printed.output.splitlines() == [
        "stack output --json",
        "stack dev",
        f"backend {BACKEND}",
        f"home {tmp_path / 'pulumi-home'}",
        f"in {project}",
    ]
    secret = idstack("pulumi", "--stack", "dev", "--", "config", "set", "--secret", "x", "y").output
    assert (f"backend {BACKEND}" in secret, "--config-file" in secret) == (True, False), "its own key encrypts it"
    another = idstack("pulumi", "--stack", "dev", "--", "up", "--stack", "prod")
    told = "idstack: name the stack before `--`, as in `.venv/bin/idstack pulumi --stack dev -- stack output`\n"
    assert (another.code, another.output, another.error) == (1, "", told)


def test_a_run_of_a_local_stack_leaves_its_file_alone(project: Path, tmp_path: Path, idstack: Idstack) -> None:
    (project / "Pulumi.local.yaml").write_text("config:\n  idstack:cloud: local\n")
    salted = tmp_path / "state/pulumi"
    salted.mkdir(parents=True, exist_ok=True)
    (salted / "Pulumi.local.yaml").write_text("encryptionsalt: v1:of-this-machine\n")

    copied = idstack("pulumi", "--stack", "local", "--", "up", "--yes").output.splitlines()[0]
    chosen = idstack("pulumi", "--stack", "local", "--", "up", "--config-file=mine").output.splitlines()[0]

    assert copied == f"up --yes --config-file {salted}/configuration.local.yaml"
    assert (salted / "configuration.local.yaml").read_text().startswith("encryptionsalt: v1:of-this-machine\n")
    assert chosen == "up --config-file=mine"


@pytest.mark.parametrize("command", [("set", "location", "eastus"), ("rm", "tags"), ("set-all", "--path", "a=b")])
def test_a_value_is_written_into_the_file_whatever_backend_is_there(
    project: Path, idstack: Idstack, command: tuple[str, ...]
) -> None:
    printed = idstack("pulumi", "--stack", "dev", "--", "config", *command)

    words, stack, backend, *_ = printed.output.splitlines()
    assert words == f"config {' '.join(command)} --config-file {project / 'Pulumi.dev.yaml'}"
    assert stack == "stack dev"
    assert backend.startswith("backend file:///")
