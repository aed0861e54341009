"""Pulumi's own commands in a fresh clone, as the guides write them: no `make`, no activated environment.

Their environment has PATH and HOME, what the guides name for the deployer and the state, and the settings of pip.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from identity.checkout import git
from ops.stack import plugins
from ops.stack.environment import LocalPaths, variables
from tests.engine.small_stack import few_resources
from tests.harness import PROJECT, LocalStack

pytestmark = pytest.mark.nightly
# Of the local cloud, too, which takes the place of Azure.
_STATE = ("PULUMI_HOME", "PULUMI_BACKEND_URL", "PULUMI_CONFIG_PASSPHRASE_FILE")
_DEPLOYER = ("ARM_", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "IDSTACK_LOCAL_ENVIRONMENT")
_AUTHOR = ("-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false")

Run = Callable[..., str]


class _Clone(LocalStack):
    """A clone, whose local cloud is this checkout's."""

    @property
    def python(self) -> str:
        return sys.executable


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """A fresh clone in a folder `idstack`, with a local cloud and the provider plugins of its stacks."""
    root = tmp_path_factory.mktemp("plain") / "idstack"
    git(PROJECT, "clone", "--quiet", str(PROJECT), str(root))
    stack = _Clone(root)
    paths = LocalPaths(stack.state)
    paths.create()
    plugins.install(paths, {"LOCALCLOUD_STATE_DIR": str(stack.state)})
    try:
        stack.local_cloud("start")
        yield stack
    finally:
        stack.local_cloud("stop", "--remove")


@pytest.fixture(scope="module")
def run(clone: LocalStack, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run a command in a folder; `signed_in` as the deployer, otherwise with the machine's settings of pip."""
    home = tmp_path_factory.mktemp("home")
    engine = Path(shutil.which("pulumi", path=variables("local")["PATH"]) or "").parent
    interpreter = Path(sys.base_prefix, "bin")

    def run(*command: str, folder: Path = clone.root, signed_in: bool = True) -> str:
        prefixes = (*_STATE, *(_DEPLOYER if signed_in else ("PIP_",)))
        given = {name: value for name, value in clone.variables.items() if name.startswith(prefixes)}
        # What was downloaded before is there, and pip does not compile azure-native, which takes minutes.
        given |= {"PIP_CACHE_DIR": str(Path.home() / ".cache/pip"), "PIP_NO_COMPILE": "1"}
        path = os.pathsep.join(map(str, (engine, interpreter, os.defpath)))
        done = subprocess.run(
            command,
            cwd=folder,
            env={**given, "PATH": path, "HOME": str(home)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}\n{done.stderr}"
        return done.stdout

    return run


def test_pulumi_alone_installs_previews_applies_its_plan_and_destroys(clone: LocalStack, run: Run) -> None:
    run("pulumi", "install", signed_in=False)
    assert run(".venv/bin/python", "-m", "pip", "check", signed_in=False) == "No broken requirements found.\n"

    run("pulumi", "stack", "init", "local")
    clone.configure(**few_resources(clone))
    run("pulumi", "config", "set", "--path", "pulumi:disable-default-providers[0]", "*")
    git(clone.root, *_AUTHOR, "commit", "--quiet", "--all", "--message", "The stack's file with its salt")
    run("pulumi", "preview", "--save-plan", "plan.json")
    run("pulumi", "up", "--yes", "--skip-preview", "--plan", "plan.json")
    run("pulumi", "preview", "--refresh", "--expect-no-changes")
    run("pulumi", "refresh", "--yes")
    run("pulumi", "destroy", "--yes", "--skip-preview")

    assert git(clone.root, "status", "--porcelain") == "?? plan.json\n", "no run writes the stack's file"


def test_another_program_previews_as_its_page_says(clone: LocalStack, run: Run) -> None:
    """After the test above, which installs what the plugin runs with."""
    other = clone.root.parent / "another"
    shutil.copytree(clone.root / "examples/another_program", other)
    project = other / "Pulumi.yaml"
    project.write_text(project.read_text(encoding="utf-8").replace("../../provider", "../idstack/provider"))
    shutil.copy(PROJECT / "Pulumi.local.yaml", other)
    (other / ".localcloud").symlink_to(clone.state)
    run("python3", "-m", "venv", ".venv", folder=other, signed_in=False)
    run(".venv/bin/pip", "install", "../idstack", folder=other, signed_in=False)

    run("pulumi", "stack", "init", "local", folder=other)
    run("pulumi", "config", "rm", "pulumi:disable-default-providers", folder=other)
    shown = run("pulumi", "preview", folder=other)

    assert "workloads" in shown
    assert "hc1-ingress-entra-schedule" in shown
