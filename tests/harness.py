"""A stack on the real engine against a local cloud of its own, for the tests of `engine/` and `e2e/`.

The program, its settings and the plugins are the checkout's own (linked into a project directory of the test's);
state, configuration file and local cloud belong to the test alone.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import yaml

from identity.clouds import LocalEnvironment
from localcloud.testing.kubernetes import KINDS, ResourceKind, client_of
from localcloud.testing.running import ClusterKind, StateDirectory
from ops.stack import environment, plugins
from ops.stack.configuration import with_salt
from ops.stack.engine import Engine
from ops.stack.environment import LocalPaths
from ops.stack.state import State, without
from tests.json_page import require_documented
from tests.seeds import extended_seed
from tests.warm import virtual_environment

# Such as `...::pulumi:providers:idstack::default`, with a version behind it where the SDK gives one.
_DEFAULT_PROVIDER: Final = re.compile(r"::pulumi:providers:[^:]+::default[^:]*$")

PLACE: Final = ("cloud", "tenantId", "subscriptionId", "location", "resourceGroup")
"""The keys of a configuration that say where its stack is."""
PROJECT = Path(__file__).resolve().parents[1]
# The engine collects garbage for a tenth of its time; a small stack ends before it has used so much memory.
_SELDOM_COLLECTING: Final = {"GOGC": "off", "GOMEMLIMIT": "1GiB"}


@dataclass
class LocalStack:
    """One stack in `root`, a project directory whose `.localcloud` holds everything it leaves behind."""

    root: Path
    faults: Mapping[str, Any] = field(default_factory=dict)
    name: str = "local"

    @property
    def state(self) -> Path:
        """State directory of the local cloud and of the engine."""
        return self.root / ".localcloud"

    @property
    def variables(self) -> dict[str, str]:
        """Environment of every command of the stack."""
        base = {
            **os.environ,
            "LOCALCLOUD_STATE_DIR": str(self.state),
            "LOCALCLOUD_FAULTS": json.dumps(self.faults),
            **(_SELDOM_COLLECTING if self._is_warm else {}),
        }
        found = environment.variables(self.name, base)
        # The interpreter is that of `root`.
        own = {name: found[name].replace(f"{PROJECT}/", f"{self.root}/") for name in ("PATH", "VIRTUAL_ENV")}
        return found | own

    @property
    def _is_warm(self) -> bool:
        return (self.root / ".venv").resolve() != (PROJECT / ".venv").resolve()

    @property
    def python(self) -> str:
        """The interpreter of the stack's commands."""
        return str(self.root / ".venv/bin/python")

    @cached_property
    def environment(self) -> LocalEnvironment:
        """Where the local cloud answers."""
        return LocalEnvironment.from_file(self.state / "environment.json")

    @property
    def checkpoint(self) -> Path:
        """The backend's file of the stack's state."""
        return self.state / f"pulumi/backend/.pulumi/stacks/idstack/{self.name}.json"

    @property
    def outputs(self) -> dict[str, Any]:
        """The stack's outputs; nothing of them is secret (`test_stacks_show_no_secret_output`)."""
        [root] = [resource for resource in self.resources() if resource["type"] == "pulumi:pulumi:Stack"]
        outputs: dict[str, Any] = root["outputs"]
        return outputs

    @property
    def control_plane(self) -> dict[str, Any]:
        """The first hosted cluster's rows by API field."""
        rows: dict[str, Any] = next(iter(self.outputs["hostedClusters"].values()))["controlPlane"]
        return rows

    def run(
        self,
        *command: str,
        check: bool = True,
        variables: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command, in the project directory if no other is given; a failure shows what it printed."""
        done = subprocess.run(
            command,
            cwd=directory or self.root,
            env={**self.variables, **(variables or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert not check or done.returncode == 0, f"{' '.join(command)}: {done.stdout}\n{done.stderr}"
        return done

    def started(self, *command: str, **options: Any) -> subprocess.Popen[Any]:
        """Start a command in the project directory; the options are those of `subprocess.Popen`."""
        return subprocess.Popen(command, cwd=self.root, env=self.variables, stdin=subprocess.DEVNULL, **options)

    def pulumi(self, *arguments: str, check: bool = True, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the engine without a terminal."""
        variables = {"PULUMI_STACK": self.name, **variables}
        return self.run("pulumi", *arguments, "--non-interactive", check=check, variables=variables)

    def local_cloud(self, *arguments: str) -> str:
        """Run a command of the local cloud."""
        return self.run(self.python, "-m", "localcloud", *arguments).stdout

    def administer(self) -> None:
        """Let the deployer assign any role to anybody from now on, as somebody who runs scripts by hand may."""
        self.seed(deployerRoles=["User Access Administrator"])

    def seed(self, **more: Sequence[Any]) -> None:
        """Add to lists of the local cloud's seed, as somebody beside the stack does."""
        self.local_cloud("seed", "--seed", str(extended_seed(self.state, **more)))

    def prepare(self, providers: str | None = None) -> None:
        """Make the stack as `idstack up --providers` does, so that both its commands and the engine's own work here."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("LOCALCLOUD_STATE_DIR", str(self.state))
            patch.setattr(plugins, "_BIN", self.root / "cloud/emulated/bin")
            plugins.choose(self.name, providers)
            Engine(self.name, self.root).prepare()
        made = yaml.safe_load((self.state / "pulumi" / self._file.name).read_text(encoding="utf-8"))
        text = with_salt(self._file.read_text(encoding="utf-8"), made["encryptionsalt"], self._file.name)
        self._file.write_text(text, encoding="utf-8")
        self.pulumi("stack", "select", self.name)

    def beside(self, name: str, *kept: str, **configuration: Any) -> LocalStack:
        """Another, empty stack at the same place on the same local cloud.

        Of this one's other keys it has those that are `kept`; those that are neither kept nor given are missing.
        """
        other = LocalStack(self.root, self.faults, name)
        same = {key: self.configuration(key) for key in (*PLACE, *kept)}
        config = {f"idstack:{key}": value for key, value in (same | configuration).items()}
        guard = {"pulumi:disable-default-providers": ["azure-native", "azuread", "kubernetes"]}
        other._file.write_text(yaml.safe_dump({"config": guard | config}), encoding="utf-8")
        other.prepare()
        self.pulumi("stack", "select", self.name)
        return other

    @property
    def _file(self) -> Path:
        """The stack's configuration."""
        return self.root / f"Pulumi.{self.name}.yaml"

    def idstack(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run the `idstack` command."""
        done = self.run(self.python, "-m", "ops", *arguments, check=check)
        require_documented(arguments, done.stdout)
        return done

    def follow(self, printed: str) -> list[str]:
        """Run the commands of `idstack` that a failed one has printed, each on its line; returns them."""
        commands = re.findall(r"^    (\.venv/bin/idstack .*)$", printed, re.MULTILINE)
        for command in commands:
            # The script would find the configuration of the checkout.
            self.run("sh", "-c", command.replace(".venv/bin/idstack", f"{self.python} -m ops", 1))
        return commands

    def forget(self, urns: Collection[str]) -> None:
        """Take resources out of the state."""
        self.replace_state(without(json.loads(self.pulumi("stack", "export").stdout), urns))

    def replace_state(self, state: State) -> None:
        """`pulumi stack import`."""
        file = self.state / "another.json"
        file.write_text(json.dumps(state), encoding="utf-8")
        self.pulumi("stack", "import", "--file", str(file))
        file.unlink()

    def adopt(self) -> None:
        """`idstack up`, and the commands that it ends with, until it prints none."""
        while self.follow(self.idstack("up", "--continue-on-error", check=False).stderr):
            pass

    def up(self, *arguments: str, check: bool = True, **variables: str) -> subprocess.CompletedProcess[str]:
        """`pulumi up` without a separate preview; returns when every Deployment is ready."""
        return self.pulumi("up", "--yes", "--skip-preview", *arguments, check=check, **variables)

    def up_with_steps(self) -> dict[str, str]:
        """`up`, and what it did as `preview` shows it."""
        events = self.logged("up", "--yes", "--skip-preview")
        return _steps(event["resourcePreEvent"]["metadata"] for event in events if "resourcePreEvent" in event)

    def logged(self, *command: str, **variables: str) -> list[dict[str, Any]]:
        """Run a command of the engine; what it writes into an event log."""
        log = self.state / "events.jsonl"
        log.unlink(missing_ok=True)
        # The option is one for debugging, and is there only with the variable set.
        options = ("--non-interactive", "--stack", self.name, "--event-log", str(log))
        self.run("pulumi", *command, *options, variables={"PULUMI_DEBUG_COMMANDS": "true", **variables})
        return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]

    def preview(self) -> dict[str, str]:
        """What a preview shows: operation by resource name, without what stays the same."""
        return steps_of(self.pulumi("preview", "--json").stdout)

    def resources(self, stack: str | None = None) -> list[dict[str, Any]]:
        """The resources in the state, secrets encrypted; of another `stack` of the backend, `<project>/<stack>`.

        Read from the backend's file: it is what `pulumi stack export` prints, a second sooner.
        """
        file = self.checkpoint.parents[1] / f"{stack}.json" if stack else self.checkpoint
        latest = json.loads(file.read_text(encoding="utf-8"))["checkpoint"].get("latest") or {}
        return list(latest.get("resources") or ())

    def resource(self, name: str) -> dict[str, Any]:
        """The one resource with this name, as the state has it."""
        [found] = [resource for resource in self.resources() if resource["urn"].endswith(f"::{name}")]
        return found

    @contextmanager
    def configured(self, **changes: Any) -> Iterator[None]:
        """Change top-level keys of the configuration (`hostedClusters=...`) and put them back afterwards."""
        before = self._file.read_text(encoding="utf-8")
        self.configure(**changes)
        try:
            yield
        finally:
            self._file.write_text(before, encoding="utf-8")

    def configure(self, **changes: Any) -> None:
        """Change top-level keys of the configuration for good."""
        document = yaml.safe_load(self._file.read_text(encoding="utf-8"))
        document["config"].update({f"idstack:{key}": value for key, value in changes.items()})
        self._file.write_text(yaml.safe_dump(document), encoding="utf-8")

    def inventory(self) -> set[tuple[str, str]]:
        """Kind and key of all that the local cloud remembers, as `contents` has it."""
        return set(self.contents())

    def contents(self) -> dict[tuple[str, str], str]:
        """All that the local cloud remembers, as JSON by kind and key; of kube-apiserver, the kinds we make.

        Events are left out: the kubelet writes one whenever a pod is not ready for a moment.
        """
        with closing(sqlite3.connect(f"{(self.state / 'state.sqlite').as_uri()}?mode=ro", uri=True)) as connection:
            rows = connection.execute("SELECT kind, key, document FROM documents")
            found = {(kind, key): document for kind, key, document in rows if not key.startswith("core/events/")}
        if self.environment.cluster == ClusterKind.API_SERVER:
            with self.kubernetes("administrator") as http:
                found |= {("kubernetes", key): text for kind in KINDS for key, text in _objects(http, kind)}
        return found

    def kubernetes(self, user: str = "deployer") -> httpx.Client:
        """The Kubernetes API as `deployer`, `kubelet` or `administrator`; close it."""
        state = StateDirectory(self.state)
        return client_of({
            "deployer": state.kubeconfig,
            "kubelet": state.kubelet_kubeconfig,
            "administrator": state.administrator_kubeconfig,
        }[user])  # fmt: skip

    def configuration(self, key: str) -> Any:
        """One top-level key of the configuration as it is now."""
        return yaml.safe_load(self._file.read_text(encoding="utf-8"))["config"][f"idstack:{key}"]


def steps_of(preview: str) -> dict[str, str]:
    """Operation by resource name in what `preview --json` prints, without what stays the same."""
    return _steps(json.loads(preview)["steps"])


def _steps(steps: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Operation by resource name of the engine's steps (`op`, `urn`); the parts of a replacement are one `replace`.

    Of the default providers, which the engine makes itself, no preview shows anything.
    """
    named = {
        step["urn"].rpartition("::")[2]: step["op"]
        for step in steps
        if step["op"] not in ("same", "read") and not _DEFAULT_PROVIDER.search(step["urn"])
    }
    return {name: "replace" if "replace" in operation else operation for name, operation in named.items()}


@contextmanager
def running_stack(
    root: Path, *, warm: bool = True, providers: str | None = None, **faults: Any
) -> Iterator[LocalStack]:
    """A local cloud, started and seeded, and an empty stack; afterwards no process is left.

    Its interpreters are warm (`tests/warm`); with `warm=False`, each starts from nothing, as it does for users. Its
    provider plugins are those of `idstack up --providers`, the emulated ones by default.
    """
    stack = empty_project(root, warm=warm, **faults)
    try:
        stack.local_cloud("start")
        if warm:
            _without_logs(stack)
        stack.prepare(providers)
        yield stack
    finally:
        stack.local_cloud("stop", "--remove")


def _without_logs(stack: LocalStack) -> None:
    """Take from the engine the place of its logs: to compress and encrypt one takes a quarter of a command's time.

    It goes on without (`StartLogging` in pkg/logging/encrypted.go of Pulumi 3.259.0). Nothing else is made here: the
    choice of the plugins comes before.
    """
    home = LocalPaths(stack.state).home
    home.mkdir(mode=0o700, parents=True)
    (home / "logs").touch()


def empty_project(root: Path, *, warm: bool = False, **faults: Any) -> LocalStack:
    """A copy of the project in `root`, whose local cloud is not started."""
    for entry in PROJECT.iterdir():
        if entry.name not in {".git", ".venv", ".localcloud", "Pulumi.local.yaml"}:
            (root / entry.name).symlink_to(entry)
    (root / ".venv").symlink_to(virtual_environment() if warm else PROJECT / ".venv")
    (root / "Pulumi.local.yaml").write_bytes((PROJECT / "Pulumi.local.yaml").read_bytes())
    return LocalStack(root, faults)


def _objects(http: httpx.Client, kind: ResourceKind) -> Iterator[tuple[str, str]]:
    """Objects as JSON by their keys in the built-in API's store. Events come and go by themselves."""
    if kind.kind == "Event":
        return
    root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    for obj in http.get(f"{root}/{kind.plural}").raise_for_status().json()["items"]:
        metadata = obj["metadata"]
        key = f"{kind.group or 'core'}/{kind.plural}/{metadata.get('namespace', '')}/{metadata['name']}"
        yield key, json.dumps(obj)
