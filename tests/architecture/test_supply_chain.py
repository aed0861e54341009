"""What others have made is installed by checksum: by locks with hashes, go.sum, tools/checksums.txt or a digest.

GitHub's actions are held by `tests/unit/workflows`, that the locks are what was asked for by `test_requirements.py`.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.architecture.source import ROOT, files, nodes, place
from tools.downloads import checksums
from tools.steps import WHEELS_ALONE

_TRACKED: Final = [
    ROOT / line
    for line in subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    if (ROOT / line).is_file()
]
_WORKFLOWS: Final = sorted((ROOT / ".github/workflows").iterdir())
# Everything that a machine runs without a person who reads it first.
_SCRIPTS: Final = [
    *_WORKFLOWS,
    ROOT / ".ci/run",
    ROOT / "Makefile",
    ROOT / "tools/setup",
    ROOT / "identity/credentials/Containerfile",
    ROOT / "ops/fleet/workspace/Containerfile",
]
_PYTHON: Final = [*files("tools"), *files("ops"), *files("tests"), *files("cloud/tests")]
# What is installed without hashes or runs code of its own, each for a reason.
_EXCEPTIONS: Final = {
    # Installs `localcloud` of this checkout as a person does who has no lock: that is what it tests.
    "cloud/tests/test_package.py"
}
_REQUIRED: Final = " ".join(WHEELS_ALONE)
_LOCKS: Final = [file for file in _TRACKED if file.suffix == ".txt" and "uv via" in file.read_text(encoding="utf-8")]
_MODULES: Final = [file for file in _TRACKED if file.name == "go.mod"]
_PACKAGE_LOCKS: Final = [file for file in _TRACKED if file.name == "package-lock.json"]


def name_of(file: Path) -> str:
    return str(file.relative_to(ROOT))


def test_there_is_something_to_look_at() -> None:
    assert {
        "requirements.txt",
        "cloud/requirements.txt",
        "identity/credentials/requirements-probe.txt",
        "cloud/tests/clients/azure-cli.txt",
        "tools/go/requirements.txt",
    } <= {name_of(file) for file in _LOCKS}
    assert {f"tools/{tool}/go.mod" for tool in ("pulumi", "language-host", "kubelogin", "actionlint", "promtool")} <= {
        name_of(file) for file in _MODULES
    }
    assert {"tests/browser/driver/package-lock.json", "cloud/tests/clients/javascript/package-lock.json"} <= {
        name_of(file) for file in _PACKAGE_LOCKS
    }
    assert WHEELS_ALONE == ("--require-hashes", "--only-binary", ":all:")


@pytest.mark.parametrize("file", _LOCKS, ids=name_of)
def test_every_package_of_a_lock_is_one_version_with_its_hashes(file: Path) -> None:
    entries = re.findall(r"^(\S.*(?:\n .*)*)", file.read_text(encoding="utf-8"), re.MULTILINE)
    packages = [entry for entry in entries if not entry.startswith("#")]

    assert packages
    for package in packages:
        assert re.match(r"[\w.-]+(\[[\w,-]+\])?==\S+ (;|\\)", package), package.splitlines()[0]
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", package), package.splitlines()[0]


@pytest.mark.parametrize("file", _MODULES, ids=name_of)
def test_every_go_module_is_one_version_with_its_checksum(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    sums = file.with_name("go.sum").read_text(encoding="utf-8").splitlines()
    checked = {(module, version.removesuffix("/go.mod")) for module, version, _ in map(str.split, sums)}
    required = dict(re.findall(r"^(?:require |\t)(\S+) (v\S+)(?: // indirect)?$", text, re.MULTILINE))
    replaced = {old: (new, version) for old, new, version in re.findall(r"^\t(\S+) => (\S+)(.*)$", text, re.MULTILINE)}

    assert required
    assert len(replaced) == text.count("=>")
    for module, version in required.items():
        new, other = replaced.get(module, (module, version))
        assert (new, other.strip()) in checked, f"{module}: a folder in its place, or no line in go.sum"


@pytest.mark.parametrize("file", _PACKAGE_LOCKS, ids=name_of)
def test_every_npm_package_has_its_checksum(file: Path) -> None:
    packages: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))["packages"]

    assert len(packages) > 1
    for name, package in packages.items():
        assert not name or package["integrity"].startswith("sha512-"), name
        assert "hasInstallScript" not in package, f"{name} expects to run a script, which `npm ci` here does not"


def commands(file: Path) -> list[tuple[str, list[str]]]:
    """Place of each list in a Python file that may be a command, with its words and the names of spread ones."""
    return [
        (place(file, node.lineno), [word for elt in node.elts for word in _words(elt)])
        for node in nodes(file)
        if isinstance(node, ast.List | ast.Tuple)
    ]


def _words(element: ast.expr) -> list[str]:
    if isinstance(element, ast.Starred):
        return [f"*{element.value.id}"] if isinstance(element.value, ast.Name) else []
    return [node.value for node in ast.walk(element) if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def installs_packages(command: list[str]) -> bool:
    """Whether a command is pip's or uv's to install something."""
    return any(word.rpartition("/")[2] == "pip" for word in command) and bool(
        {"install", "sync", "download", "wheel"} & set(command)
    )


def test_python_packages_are_installed_by_hash_and_without_running_them() -> None:
    found = []
    for file in _PYTHON:
        for where, command in commands(file):
            if installs_packages(command) and name_of(file) not in _EXCEPTIONS:
                found.append(where)
                assert "*WHEELS_ALONE" in command, where

    assert len(found) >= 3, "packages with uv, with pip, and the clients of the cloud's tests"
    assert all(any(installs_packages(command) for _, command in commands(ROOT / name)) for name in _EXCEPTIONS)


def test_npm_installs_its_lock_and_runs_no_scripts() -> None:
    found = [command for file in _PYTHON for _, command in commands(file) if command[:1] == ["npm"]]

    assert len(found) > 1
    # `audit` with the lock alone installs nothing.
    accepted = (["npm", "ci", "--ignore-scripts"], ["npm", "audit", "--package-lock-only"])
    assert [command for command in found if len(command) > 1 and command[:3] not in accepted] == []


@pytest.mark.parametrize("file", _SCRIPTS, ids=name_of)
def test_a_script_installs_nothing_but_by_checksum(file: Path) -> None:
    logical = file.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    for line in [line.split(" # ")[0].strip() for line in logical if not line.lstrip(" -").startswith("#")]:
        if re.search(r"\bpip3?\b.*\b(install|download|wheel)\b|\buv (pip|tool|add|run --with)\b", line):
            assert set(_REQUIRED.split()) <= set(line.split()) or line.startswith("LOCK :="), line
        assert not re.search(r"\bgo (install|get)\b|@latest\b", line), line
        assert not re.search(
            r"\bnpm (install|i|exec)\b|\bnpx\b|\b(gem|cargo) install\b|\bapt(-get)? install\b", line
        ), line
        assert "plugin install" not in line, "the `idstack` command installs plugins, by checksum"
        assert not re.search(r"\b(curl|wget)\b.*\|\s*(sudo\s+)?(ba|z|da)?sh\b|<\(\s*(curl|wget)\b", line), line
        # Only GitHub's own token endpoint, in the job that signs in.
        assert "wget" not in line, line
        assert "curl" not in line or "ACTIONS_ID_TOKEN_REQUEST_TOKEN" in line, line


@pytest.mark.parametrize(
    "line",
    [
        "run: pip install --require-hashes -r requirements.txt",
        "run: uv pip sync requirements.txt",
        "run: GOBIN=/tmp go install github.com/Azure/kubelogin@v0.2.21",
        "run: npx cyclonedx",
        "run: curl -fsSL https://get.pulumi.com | sh",
        "run: pulumi plugin install resource azuread 6.11.1",
    ],
)
def test_the_rules_above_can_fail(line: str, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(f"{line}\n")
    with pytest.raises(AssertionError):
        test_a_script_installs_nothing_but_by_checksum(script)


def test_no_code_calls_an_installer_of_its_own() -> None:
    for file in [*files("tools"), *files("ops")]:
        text = file.read_text(encoding="utf-8")
        assert "PulumiCommand" not in text, "its installer runs a script that nobody has pinned"
        assert not re.search(r'"go", "(install|get)"', text), name_of(file)


@pytest.mark.parametrize("file", _WORKFLOWS, ids=name_of)
def test_a_job_that_runs_this_program_takes_the_pinned_engine(file: Path) -> None:
    for name, job in yaml.safe_load(file.read_text(encoding="utf-8"))["jobs"].items():
        scripts = " ".join(step.get("run", "") for step in job.get("steps", ()))
        if re.search(r"\bmake\b|tools/setup|\$COMMAND", scripts):
            assert job["env"]["IDSTACK_PULUMI"] == "pinned", name


def test_the_pinned_engine_can_be_downloaded_where_the_workflows_run() -> None:
    [version] = re.findall(r"pulumi/pkg/v3 v(\S+)", (ROOT / "tools/pulumi/go.mod").read_text(encoding="utf-8"))

    assert f"pulumi-v{version}-linux-x64.tar.gz" in checksums(), "run `make pin`"
    assert {yaml.safe_load(file.read_text(encoding="utf-8"))["name"] for file in _WORKFLOWS}
    for file in _WORKFLOWS:
        for job in yaml.safe_load(file.read_text(encoding="utf-8"))["jobs"].values():
            assert job.get("runs-on", "ubuntu-24.04") == "ubuntu-24.04"


def test_the_audit_looks_at_every_lock_of_python() -> None:
    audit = yaml.safe_load((ROOT / ".github/workflows/audit.yml").read_text(encoding="utf-8"))

    assert set(audit["jobs"]["python"]["strategy"]["matrix"]["lock"]) == {name_of(file) for file in _LOCKS}
