"""Real servers for the clients of `ops`, and an engine that records its calls."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from identity import resource_types
from identity.azure.records import SecretMetadata
from identity.plugin_schema import SCHEMA
from localcloud.testing.arm import world
from localcloud.testing.hosts import Serve
from ops.__main__ import main
from ops.doctor import examination
from ops.doctor.checks.check import CheckResult
from ops.doctor.examination import Examination
from ops.stack import chosen_stack, environment, plugins
from ops.stack.engine import Engine
from ops.stack.plugins import NAMES, cached
from ops.world.reader import Selection, read_world
from ops.world.seen import Part, StackWorld
from tests.json_page import require_documented
from tests.unit.access_world import FakeApiServer
from tests.unit.azure_world import azure, cloud, deployer
from tests.unit.ops import answers
from tests.unit.ops.cluster_access import access_to

__all__ = ["azure", "cloud", "deployer", "world"]

EXAMINE = examination.examine
_EVENT_LOG = re.compile(r" --event-log \S+")
# Prints the planned steps of the targets, by default each schedule's renewal, and the errors of targets and of nobody.
_PREVIEW = """\
import json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
targets = [target for option, target in zip(sys.argv, sys.argv[1:]) if option == "--target"]
if (folder / "plan.json").exists():
    plan = json.loads((folder / "plan.json").read_text())
else:
    resources = json.loads((folder / "state.json").read_text())["deployment"]["resources"]
    schedules = [resource for resource in resources if resource["type"] == "idstack:index:RenewalSchedule"]
    plan = {"steps": [
        {"op": "update", "urn": schedule["urn"], "newState": {"inputs": schedule["inputs"] | {"renewal": "now"}}}
        for schedule in schedules
    ]}
errors = [diagnostic for diagnostic in plan.get("diagnostics", []) if diagnostic.get("urn") in (None, *targets)]
steps = [step for step in plan["steps"] if step["urn"] in targets]
print(json.dumps({**plan, "steps": steps, "diagnostics": errors}))
"""
_PULUMI = """\
#!/bin/sh
[ "$2" != --help ] || exit 0
echo "$*" >> "{folder}/calls"
case "$1 $2 $3" in
    "stack export"*)
        [ -e "{folder}/outputs.json" ] || {{ echo "error: no stack named '$4' found" >&2; exit 1; }}
        cat "{folder}/state.json" ;;
    "stack history"*) cat "{folder}/history.$4.json" ;;
    "preview --json --target"*) "{python}" -Ic "$(cat "{folder}/preview.py")" "{folder}" "$@" ;;
    "whoami --json"*) echo '{{"url": "https://api.pulumi.com"}}' ;;
    "stack ls"*) cat "{folder}/stacks.json" ;;
    "stack select"*) touch "{folder}/outputs.json"; echo "encryptionsalt: v1:of-this-machine" > "Pulumi.$3.yaml" ;;
    *) [ "$1" != up ] || echo "$IDSTACK_RENEWALS" >> "{folder}/renewals"
       [ "$2" != --event-log ] || [ ! -e "{folder}/events" ] || cp "{folder}/events" "$3"
       echo "output of pulumi $1"; exit "$(cat "{folder}/code")" ;;
esac
"""


@dataclass(frozen=True)
class FakeEngine:
    """`pulumi` as the commands find it, in a folder of the test."""

    folder: Path

    @property
    def calls(self) -> list[str]:
        """The command lines so far, without the file for the event log, which has another name each time."""
        calls = self.folder / "calls"
        return [_EVENT_LOG.sub("", line) for line in calls.read_text().splitlines()] if calls.exists() else []

    @property
    def renewals(self) -> list[dict[str, str]]:
        """The renewal requests of each `up` so far, by schedule."""
        return [json.loads(line or "{}") for line in (self.folder / "renewals").read_text().splitlines()]

    def has(self, outputs: Mapping[str, Any]) -> None:
        """These are the stack's outputs; a stack without any was never brought up."""
        (self.folder / "outputs.json").write_text(json.dumps(outputs))
        self._write_state()

    def has_resources(self, *resources: Mapping[str, Any]) -> None:
        """These are in the stack's state, the plugin's in the schema of this release."""
        marked = [{**resource, "inputs": {"schema": SCHEMA, **resource.get("inputs", {})}} for resource in resources]
        (self.folder / "resources.json").write_text(json.dumps(marked))
        self._write_state()

    def _write_state(self) -> None:
        """The resources, below the stack's own with its outputs."""
        file = self.folder / "resources.json"
        resources = json.loads(file.read_text()) if file.exists() else []
        outputs = json.loads((self.folder / "outputs.json").read_text())
        is_empty = not resources and not outputs.get("hostedClusters")
        if not is_empty and not any(resource["type"] == resource_types.STACK for resource in resources):
            urn = "urn:pulumi:dev::idstack::pulumi:pulumi:Stack::idstack-dev"
            resources = [{"type": resource_types.STACK, "urn": urn, "custom": False, "outputs": outputs}, *resources]
        (self.folder / "state.json").write_text(json.dumps({"deployment": {"resources": resources}}))

    def last_run(self, kind: str, result: str, **changes: int) -> None:
        """This is the last run in the stack's history; `changes` are how many resources it changed, by operation."""
        self.has_history([(kind, result, changes, False)])

    def has_history(self, runs: Iterable[tuple[str, str, Mapping[str, int], bool]]) -> None:
        """Kind, result and changes of the runs, newest first, and whether each had targets."""
        entries = [
            {
                "kind": kind,
                "result": result,
                "startTime": "2026-11-21T16:40:00.000Z",
                "resourceChanges": changes,
                "environment": {"pulumi.flag.yes": "true", **({"pulumi.flag.target": "set"} if has_targets else {})},
            }
            for kind, result, changes, has_targets in runs
        ]
        for page in range(1 + len(entries) // 20):
            text = json.dumps(entries[page * 20 : page * 20 + 20])
            (self.folder / f"history.{page + 1}.json").write_text(text)

    def plans(self, *steps: Mapping[str, Any], errors: Sequence[Mapping[str, Any]] = ()) -> None:
        """These are the steps of a preview, as far as they are its targets'; by default every schedule renews."""
        (self.folder / "plan.json").write_text(json.dumps({"steps": steps, "diagnostics": errors}))

    def has_no_stack(self) -> None:
        """The engine knows no stack."""
        (self.folder / "outputs.json").unlink(missing_ok=True)

    def logs(self, events: Iterable[str]) -> None:
        """This is what `up` leaves in its event log."""
        (self.folder / "events").write_text("\n".join(events))

    def configures(self, **configuration: Any) -> None:
        """These are the project's keys in the file of every stack of the checkout."""
        (self.folder / "config.json").write_text(json.dumps(configuration))

    @property
    def configuration(self) -> dict[str, Any]:
        """What `configures` was given last."""
        configuration: dict[str, Any] = json.loads((self.folder / "config.json").read_text())
        return configuration

    def has_stacks(self, *names: str) -> None:
        """These are in the backend."""
        (self.folder / "stacks.json").write_text(json.dumps([{"name": name} for name in names]))

    def ends_with(self, code: int) -> None:
        """`up`, `preview` and `destroy` end with this exit code."""
        (self.folder / "code").write_text(str(code))

    def fails(self, errors: str) -> None:
        """Every command prints this on its standard error and ends with 255."""
        (self.folder / "errors").write_text(errors)
        (self.folder / "pulumi").write_text(f'#!/bin/sh\ncat "{self.folder}/errors" >&2\nexit 255\n')


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, which the commands' engines take for this one."""
    folder = tmp_path / "project"
    folder.mkdir()
    defaults = Engine.__init__.__defaults__ or ()
    changed = tuple(folder if default == environment.ROOT else default for default in defaults)
    monkeypatch.setattr(Engine.__init__, "__defaults__", changed)
    return folder


def has_plugins(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plugin cache of stacks on Azure has what the SDKs need, and no checksum is known."""
    home = folder / "pulumi-home"
    monkeypatch.setenv("PULUMI_HOME", str(home))
    for name in NAMES:
        plugin = cached(name, metadata.version(f"pulumi-{name}"), {"PULUMI_HOME": str(home)})
        plugin.parent.mkdir(parents=True)
        plugin.touch(mode=0o755)
    checksums = folder / "checksums.txt"
    checksums.touch()
    monkeypatch.setattr(plugins, "_CHECKSUMS", checksums)


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    """An engine whose stack has no hosted cluster; the local stack's state lies in the test's folder."""
    folder = tmp_path / "engine"
    folder.mkdir()
    executable = folder / "pulumi"
    executable.write_text(_PULUMI.format(folder=folder, python=sys.executable))
    executable.chmod(0o755)
    (folder / "preview.py").write_text(_PREVIEW)
    record = folder / "engine.json"
    record.write_text(json.dumps({"bin": str(folder)}))
    monkeypatch.setattr(environment, "_ENGINE_RECORD", record)
    monkeypatch.setenv("LOCALCLOUD_STATE_DIR", str(tmp_path / "state"))
    has_plugins(tmp_path, monkeypatch)
    # Its rules have tests of their own, and the sample of `dev` has placeholders.
    for command in ("up", "preview", "renew", "import_"):
        monkeypatch.setattr(f"ops.commands.{command}.require_sound_configuration", lambda _: None)
    # The checkout gets no copy of a sample, which is read where it is.
    monkeypatch.setattr(chosen_stack, "write_once", lambda *_: None)
    monkeypatch.setattr(Engine, "file", property(lambda self: chosen_stack.file_of(self.stack, self.root)))
    fake, written = FakeEngine(folder), Engine.written
    monkeypatch.setattr(
        Engine, "written", lambda self: fake.configuration if self.root == environment.ROOT else written(self)
    )
    fake.has({"hostedClusters": {}})
    fake.has_resources()
    fake.configures()
    fake.has_stacks()
    fake.last_run("update", "succeeded")
    fake.ends_with(0)
    return fake


@pytest.fixture(autouse=True)
def findings(monkeypatch: pytest.MonkeyPatch) -> list[CheckResult]:
    """What the doctor finds for `status` and `graph`, at first nothing; `tests/unit/ops/doctor` tests its checks."""
    found: list[CheckResult] = []
    monkeypatch.setattr("ops.world.reader.sign_in_refusal", lambda _: None)
    monkeypatch.setattr("ops.doctor.examination.examine", lambda *_: Examination(tuple(found)))
    return found


def examined(monkeypatch: pytest.MonkeyPatch, versions: Mapping[str, str]) -> None:
    """Let `status` and `graph` find nothing broken; the management cluster and the managed identities are read."""

    def read(engine: Engine, parts: Set[Part], selection: Selection) -> StackWorld:
        shown = parts & {Part.STATE, Part.CONTROL_PLANES, Part.MANAGED_IDENTITIES}
        return replace(read_world(engine, shown, selection), secrets=secrets(versions))

    monkeypatch.setattr(examination, "read_world", read)
    monkeypatch.setattr(examination, "diagnose", lambda *_: [])
    monkeypatch.setattr(examination, "examine", EXAMINE)


def secrets(versions: Mapping[str, str]) -> dict[str, SecretMetadata]:
    """The secrets of a vault with these current versions, by name."""
    return {name: SecretMetadata.of(answers.secret(f"/{name}", version)) for name, version in versions.items()}


@pytest.fixture
def cluster_api(serve_plain: Serve, monkeypatch: pytest.MonkeyPatch) -> FakeApiServer:
    """The API server of a stack's management cluster, whose access ARM is not asked for."""
    api = FakeApiServer()
    server = serve_plain(api.app())
    monkeypatch.setattr("ops.access.clients.stack_access", lambda *_, **__: access_to(server))
    return api


@dataclass(frozen=True)
class Printed:
    """What a command left behind."""

    code: int
    output: str
    error: str


class Idstack:
    """The `idstack` command; what its child processes print counts as well."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        self._patch = monkeypatch
        self._capture = capture

    def __call__(self, *arguments: str) -> Printed:
        self._patch.setattr("sys.argv", ["idstack", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = self._capture.readouterr()
        assert isinstance(ended.value.code, int)
        require_documented(arguments, printed.out)
        return Printed(ended.value.code, printed.out, printed.err)


@pytest.fixture
def idstack(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Idstack:
    """Runs `idstack` in this process."""
    return Idstack(monkeypatch, capfd)
