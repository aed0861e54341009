"""`idstack export hypershift --script`: one script that checks everything first and keeps the order that works."""

from __future__ import annotations

import copy
import os
import shlex
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ops.outputs.hypershift import FILES, VALUES
from tests.unit.ops.commands.test_export import OUTPUTS, described, self_managed
from tests.unit.ops.conftest import FakeEngine, Idstack

# Each program writes its arguments down, a line for each call, and fails if it is told so.
_PROGRAM = """\
#!/bin/sh
echo "{name} $*" >> {record}
[ "$FAILS" != "{name} $1" ]
"""

# Of clusters without these domains in the configuration, and of self-managed ones with a Private Link.
_OF_PRIVATE_LINK = ("AZURE_PRIVATE_CREDS", "MGMT_INFRA_RG")
UNUSED = {"MGMT_DNS_ZONE_NAME", "PARENT_DNS_ZONE", *_OF_PRIVATE_LINK}
Run = Callable[[Mapping[str, str]], "subprocess.CompletedProcess[str]"]


def exported(engine: FakeEngine, idstack: Idstack, outputs: Any = OUTPUTS) -> str:
    engine.has(outputs)
    return idstack("export", "hypershift", "--stack", "dev", "--script", "hc1.sh").output


@pytest.fixture
def own(tmp_path: Path) -> dict[str, str]:
    """Every variable of the script, those of files with a file."""
    files = {name: tmp_path / name.lower() for name in FILES}
    for file in files.values():
        file.touch()
    return {name: str(file) for name, file in files.items()} | dict.fromkeys(VALUES, "a value")


@pytest.fixture
def run(
    tmp_path: Path, own: dict[str, str], monkeypatch: pytest.MonkeyPatch, engine: FakeEngine, idstack: Idstack
) -> Run:
    """Run the exported `hc1.sh` of the working directory in another one, with some other variables than its own."""
    folder, elsewhere, programs = (tmp_path / name for name in ("here", "elsewhere", "programs"))
    for directory in (folder, elsewhere, programs):
        directory.mkdir()
    monkeypatch.chdir(folder)
    exported(engine, idstack)
    for name in ("kubectl", "hypershift"):
        program = programs / name
        program.write_text(_PROGRAM.format(name=name, record=tmp_path / "record"))
        program.chmod(0o755)

    def run(changes: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": f"{programs}:{os.defpath}", "FAILS": "", **own, **changes}
        return subprocess.run(
            [folder / "hc1.sh"], cwd=elsewhere, env=environment, capture_output=True, text=True, check=False
        )

    return run


def _calls(tmp_path: Path) -> list[str]:
    record = tmp_path / "record"
    return record.read_text().splitlines() if record.exists() else []


def test_operator_and_cluster_come_in_the_order_that_works(
    run: Run, tmp_path: Path, engine: FakeEngine, idstack: Idstack
) -> None:
    printed = exported(engine, idstack).splitlines()
    done = run({"PULL_SECRET": str(tmp_path / "pull_secret")})

    files = ["managed-identities.json", "data-plane-identities.json", "infra.json", "hosted-cluster.yaml", "hc1.sh"]
    assert ([Path(line).name for line in printed], done.returncode, done.stderr) == (files, 0, "")
    calls = _calls(tmp_path)
    assert [call.split(" --")[0].split(" -f")[0] for call in calls] == [
        *["kubectl apply"] * 4,
        "hypershift install",
        "kubectl",
        "hypershift create cluster azure",
    ]
    assert calls[5].startswith("kubectl --namespace hypershift rollout status deployment/operator")
    words = shlex.split(calls[-1])
    assert words[words.index("--pull-secret") + 1] == str(tmp_path / "pull_secret")
    assert Path(words[words.index("--managed-identities-file") + 1]).is_file()


@pytest.mark.parametrize("name", sorted((FILES | VALUES).keys() - UNUSED))
def test_a_missing_variable_ends_it_before_any_change(run: Run, own: dict[str, str], tmp_path: Path, name: str) -> None:
    del own[name]

    done = run({})

    assert done.returncode != 0
    assert f"{name}: {(FILES | VALUES)[name]}" in done.stderr
    assert _calls(tmp_path) == []


def test_an_empty_variable_and_a_missing_file_or_program_end_it_before_any_change(run: Run, tmp_path: Path) -> None:
    assert run({"RELEASE_IMAGE": ""}).returncode != 0
    for name in FILES.keys() - UNUSED:
        done = run({name: "/no such file"})
        assert (done.returncode, done.stderr) == (1, "/no such file cannot be read\n")
    (tmp_path / "programs/hypershift").unlink()

    done = run({})

    assert (done.returncode, done.stderr, _calls(tmp_path)) == (1, "hypershift is not on PATH\n", [])


def test_a_step_that_fails_ends_it(run: Run, tmp_path: Path) -> None:
    assert run({"FAILS": "hypershift install"}).returncode == 1
    assert _calls(tmp_path)[-1].startswith("hypershift install")


def test_what_only_some_clusters_need_is_checked_too(run: Run, engine: FakeEngine, idstack: Idstack) -> None:
    linked = self_managed("hc1")
    linked["hostedClusterSpec"]["platform"]["azure"]["private"] = {"type": "PrivateLink", "privateLink": {}}
    bare = {key: value for key, value in described().items() if key != "externalDnsDomain"}
    bare["hostedClusterBase"] = {"metadata": {}, "spec": {}}

    for cluster, names in ((linked, _OF_PRIVATE_LINK), (bare, UNUSED.difference(_OF_PRIVATE_LINK))):
        exported(engine, idstack, {**OUTPUTS, "hostedClusters": {"hc1": cluster}})
        text = Path("hc1.sh").read_text()
        assert [name for name in names if f'"${{{name}:?{(FILES | VALUES)[name]}}}"' not in text] == []


def test_a_cluster_that_the_stack_applies_is_not_created_again(
    run: Run, engine: FakeEngine, idstack: Idstack, tmp_path: Path
) -> None:
    applied = copy.deepcopy(described())
    applied["hostedClusterBase"]["spec"]["release"] = {"image": "registry.example.com/release:1"}
    exported(engine, idstack, {**OUTPUTS, "hostedClusters": {"hc1": applied}})

    done = run({})

    assert (done.returncode, done.stderr) == (0, "")
    assert not any("create cluster" in call for call in _calls(tmp_path))
    assert "# hc1: the HostedCluster is applied by `.venv/bin/idstack up --stack dev`" in Path("hc1.sh").read_text()
