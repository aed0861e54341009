"""`idstack local exec --as`: the stack's identities by their names, anything else as the local cloud knows it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ops.stack.environment import ROOT, local_paths
from tests.unit.ops.conftest import FakeEngine, Idstack
from tests.unit.ops.stacks import local_environment

LOCAL = local_environment(Path("/nowhere"), Path("/nowhere/kubeconfig"))
IDENTITIES = {"disk": {"credentialsSecretName": "azure-disk-hc1-json"}}


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], Path]]:
    """The local cloud's commands with the folders that they ran in; each ends with code 3."""
    commands: list[tuple[list[str], Path]] = []

    def run(arguments: Sequence[str], *, directory: Path) -> int:
        commands.append((list(arguments), directory))
        return 3

    monkeypatch.setattr("ops.stack.local_cloud.run", run)
    return commands


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> None:
    """A local cloud that runs."""
    monkeypatch.setattr("ops.stack.local_cloud.record", lambda: LOCAL)


@pytest.fixture
def stack(engine: FakeEngine, cloud: None) -> FakeEngine:
    """A local stack with one identity."""
    engine.has({"keyVaultName": "kv-idstack-local", "hostedClusters": {"hc1": {"controlPlane": IDENTITIES}}})
    engine.has_stacks("local-hypershift")
    local_paths().backend.mkdir(parents=True)
    return engine


@pytest.mark.parametrize("option", [["--as", "hc1/disk"], ["--as=hc1/disk"]])
@pytest.mark.parametrize("command", ["exec", "shell"])
def test_an_identity_is_its_secret(
    stack: FakeEngine, idstack: Idstack, ran: list[tuple[list[str], Path]], command: str, option: list[str]
) -> None:
    printed = idstack("local", command, *option, "--", "az", "account", "show")

    assert printed.code == 3
    [(arguments, directory)] = ran
    assert arguments[:3] == [command, "--as", "kv-idstack-local/azure-disk-hc1-json"]
    assert arguments[-3:] == ["az", "account", "show"]
    assert directory == Path.cwd()


@pytest.mark.parametrize("command", ["start", "kubelet"])
@pytest.mark.usefixtures("engine")
def test_pods_find_the_program_wherever_the_local_cloud_is_started(
    idstack: Idstack, ran: list[tuple[list[str], Path]], command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    idstack("local", command)
    assert ran == [([command], ROOT)]


@pytest.mark.parametrize(
    "words",
    [
        *(("--as", name, "--", "true") for name in ("hc2/disk", "kv/azure-disk", "azure-disk-hc1-json", "owner")),
        ("--", "kubectl", "--as", "hc1/disk", "get", "pods"),
    ],
)
def test_another_name_and_what_a_command_is_given_are_left_to_the_local_cloud(
    stack: FakeEngine, idstack: Idstack, ran: list[tuple[list[str], Path]], words: tuple[str, ...]
) -> None:
    idstack("local", "exec", *words)

    assert [word for word in ran[0][0] if word != "--"] == ["exec", *(word for word in words if word != "--")]


def test_without_a_stack_no_name_is_the_stacks(
    engine: FakeEngine, cloud: None, idstack: Idstack, ran: list[tuple[list[str], Path]]
) -> None:
    idstack("local", "exec", "--as", "hc1/disk", "--", "true")

    assert (ran[0][0][:3], engine.calls) == (["exec", "--as", "hc1/disk"], [])


@pytest.mark.parametrize(
    ("name", "stacks", "refusal"),
    [
        ("hc1/dsk", "local", 'there is no such identity; there are hc1/disk; did you mean "hc1/disk"?'),
        (
            "hc1/disk",
            "local local-hypershift",
            "local and local-hypershift have a hosted cluster hc1; name the secret, <vault>/<secret>",
        ),
    ],
    ids=["no such identity", "in two stacks"],
)
def test_an_identity_that_is_not_the_only_one_is_refused(
    stack: FakeEngine, idstack: Idstack, ran: list[tuple[list[str], Path]], name: str, stacks: str, refusal: str
) -> None:
    stack.has_stacks(*stacks.split())

    printed = idstack("local", "exec", "--as", name, "--", "true")

    assert (printed.code, printed.error, ran) == (1, f"idstack: --as {name}: {refusal}\n", [])


@pytest.mark.parametrize("command", ["env", "exec", "shell", "faults", "requests", "contents", "recover"])
def test_without_a_local_cloud_the_way_to_one_is_told(
    engine: FakeEngine, idstack: Idstack, ran: list[tuple[list[str], Path]], command: str
) -> None:
    printed = idstack("local", command)

    assert (printed.code, ran) == (1, [])
    assert printed.error.startswith(
        "idstack: there is no local cloud: `.venv/bin/idstack up --stack local` creates one"
    )
