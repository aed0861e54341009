"""`idstack init` with the real engine: the stack is there, the engine damages nothing in its file, and it goes up."""

from __future__ import annotations

import difflib
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from identity.catalogue import CONTROL_PLANE
from ops.first_stack.template import Answers, Side, stack_text
from ops.stack.environment import variables
from tests.engine.rehearsals import rehearsals
from tests.harness import empty_project

SUBSCRIPTION: Final = "22222222-2222-4222-8222-222222222222"
TENANT: Final = "11111111-1111-4111-8111-111111111111"
ZONE: Final = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/dns/providers/Microsoft.Network/dnszones/dev.contoso.com"
# The file names no key of an etcd encryption.
SIGNING_IN: Final = {row.field for row in CONTROL_PLANE if row.enabled_by_default} - {"kms"}
IMAGE: Final = "contoso.azurecr.io/idstack/credential-probe:0.1.0"


class Project:
    """The project in `root`, with a backend of files in `folder`, and somebody signed in."""

    def __init__(self, root: Path, folder: Path) -> None:
        backend = folder / "backend"
        backend.mkdir()
        self.root = root
        self.backend = backend.as_uri()
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PULUMI_")},
            "PYTHONPATH": str(self.root),
            "ARM_TENANT_ID": TENANT,
            "ARM_SUBSCRIPTION_ID": SUBSCRIPTION,
            "PULUMI_HOME": str(folder / "home"),
            "PULUMI_CONFIG_PASSPHRASE": "of the test",
        }

    def init_of(self, answers: Answers) -> str:
        """`idstack init` with every option that makes these answers."""
        return self.init(
            answers.stack,
            *("--prefix", answers.prefix, "--location", answers.location, "--cluster", answers.cluster),
            *("--side", answers.side.value, "--management-cluster", answers.management_cluster),
            *("--dns-zone", answers.dns_zone, "--backend", self.backend),
            *(("--image", answers.image) if answers.image else ()),
        )

    def init(self, stack: str, *options: str) -> str:
        command = [sys.executable, "-m", "ops", "init", stack, "--yes", "--no-pin", *options]
        done = subprocess.run(command, cwd=self.root, env=self._environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def pulumi(self, stack: str, *arguments: str) -> str:
        """As somebody types it, with the stack's backend."""
        environment = {**variables(stack, self._environment), "PULUMI_BACKEND_URL": self.backend}
        done = subprocess.run(
            ["pulumi", *arguments, "--stack", stack], cwd=self.root, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def text(self, stack: str) -> str:
        return (self.root / f"Pulumi.{stack}.yaml").read_text(encoding="utf-8")


def answers_of(stack: str, side: Side, backend: str) -> Answers:
    return Answers(
        stack=stack,
        prefix="contoso",
        location="westeurope",
        cluster="hc1",
        side=side,
        management_cluster="aks-dev/mgmt",
        dns_zone=ZONE,
        tenant_id=TENANT,
        subscription_id=SUBSCRIPTION,
        image=IMAGE if side is Side.STACK else None,
        backend=backend,
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = tmp_path_factory.mktemp("first")
    root = folder / "project"
    root.mkdir()
    return Project(empty_project(root).root, folder)


@pytest.mark.parametrize(
    ("stack", "side"), [("dev", Side.HYPERSHIFT), pytest.param("trial", Side.STACK, marks=pytest.mark.slow)]
)
def test_the_engine_only_adds_to_the_file_of_a_new_stack(project: Project, stack: str, side: Side) -> None:
    answers = answers_of(stack, side, project.backend)

    printed = project.init_of(answers)

    assert f"stack {stack}: registered in {project.backend}" in printed
    assert [line.partition(":")[0] for line in added(stack_text(answers), project.text(stack))] == ["+encryptionsalt"]
    assert project.pulumi(stack, "stack", "export")

    made = project.text(stack)
    project.pulumi(stack, "config", "set", "idstack:keyVaultUserScope", "secrets")
    project.pulumi(stack, "config", "set", "--path", "idstack:vault.softDeleteRetentionDays", "7")
    assert added(made, project.text(stack)) == [
        "+    softDeleteRetentionDays: 7",
        "+  idstack:keyVaultUserScope: secrets",
    ]

    changed = project.text(stack)
    assert f"Pulumi.{stack}.yaml: left as it is" in project.init(stack)
    assert project.text(stack) == changed


@pytest.mark.nightly
@pytest.mark.parametrize("side", list(Side))
def test_what_init_writes_goes_up_and_down_on_the_local_cloud(tmp_path: Path, side: Side) -> None:
    with rehearsals(tmp_path) as local:
        project = Project(local.root, tmp_path)
        project.init_of(answers_of("dev", side, project.backend))
        local.repository.commit()

        found = local.rehearse("dev")

    assert (found.code, found.findings, found.failed()) == (0, [], {})
    assert (found.document["plan"], found.document["remainingAfterDown"]) == ([], [])
    assert found.document["keptByAzure"] == ["vault kv-contoso-dev, deleted softly"]
    assert found.document["notRehearsed"] == []
    assert {new_pod["identity"] for new_pod in found.document["newPods"] if new_pod["succeeded"]} == SIGNING_IN


def added(before: str, after: str) -> list[str]:
    """The lines that differ, with their sign."""
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0))
    return [line for line in lines[2:] if not line.startswith("@@")]
