"""The package `localcloud` by itself, as its README shows it: installed, started, and used by official clients."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import pytest
from packaging.requirements import Requirement

from localcloud.azure.shared.held import OPERATIONS, HeldAnswer, HeldDelivery, HeldFaults, HeldReplication, Match
from localcloud.runtime.seed_file import Seed
from tests.clients import install
from tests.coverage.tables import code, codes, matches
from tests.source import PACKAGES, ROOT, files, imports

pytestmark = pytest.mark.slow

PROJECT: Final[dict[str, Any]] = tomllib.loads((PACKAGES / "pyproject.toml").read_text(encoding="utf-8"))
# What the distributions are called whose modules have another name.
_MODULES: Final = {
    **{
        "azure-core": "azure",
        "azure-identity": "azure",
        "grpcio": "grpc",
        "protobuf": "google",
        "pulumi-plugin-py": "plugin",
    },
    **{"pyjwt": "jwt", "pyyaml": "yaml"},
    "wsproto": "uvicorn",  # which imports it
}


def blocks(language: str) -> list[str]:
    """The code blocks of a language in the README."""
    text = (PACKAGES / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def rows(header: str) -> list[list[str]]:
    """The cells of each row of the README's table below this header."""
    text = (PACKAGES / "README.md").read_text(encoding="utf-8").partition(header)[2]
    return [row.split("|") for row in text.partition("\n\n")[0].splitlines()[2:]]


@dataclass(frozen=True)
class Package:
    """The package on a search path of its own, and a working directory without anything of this project."""

    root: Path

    @property
    def directory(self) -> Path:
        """Where commands run."""
        return self.root / "work"

    def run(self, line: str, *searched: Path) -> str:
        """What a line of shell prints; it must succeed."""
        foreign = ("LOCALCLOUD_", "IDSTACK_", "AZURE_", "ARM_", "PYTHON")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        path = [self.root / "lib/bin", *searched, Path(sys.executable).parent, os.environ["PATH"]]
        variables = {**inherited, "PATH": os.pathsep.join(map(str, path)), "PYTHONPATH": str(self.root / "lib")}
        done = subprocess.run(
            ["sh", "-c", line], cwd=self.directory, env=variables, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Package]:
    """The wheels of this package and of `plugin`, unpacked, with the files of the README's examples."""
    root = tmp_path_factory.mktemp("package")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    sources = [str(PACKAGES), str(ROOT / "plugin")]
    subprocess.run([*pip, "install", "--no-deps", "--target", str(root / "lib"), *sources], check=True)
    made = Package(root)
    made.directory.mkdir()
    (made.directory / "example.py").write_text(blocks("python")[0], encoding="utf-8")
    (made.directory / "outage.json").write_text(blocks("json")[0], encoding="utf-8")
    (made.directory / "team.yaml").write_text(blocks("yaml")[0], encoding="utf-8")
    try:
        yield made
    finally:
        made.run("localcloud stop")


def commands(block: str) -> list[tuple[str, str]]:
    """Each command of a console block, and what it prints."""
    return [(line, printed) for line, printed in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)]


def test_the_readmes_lines_print_what_it_shows(package: Package) -> None:
    first, *used, last = commands(blocks("console")[0])

    assert first == ("pip install ./cloud", "")
    for line, printed in used:
        assert matches(printed, found := package.run(line)), (line, found)
    assert last[0] == "localcloud stop --remove"
    package.run("localcloud stop")


def test_a_seed_makes_a_tenant_of_its_own(package: Package) -> None:
    for line, printed in commands(blocks("console")[1]):
        assert matches(printed, found := package.run(line)), (line, found)


def test_a_held_fault_answers_until_it_is_cleared(package: Package) -> None:
    package.run("localcloud start")
    for line, printed in commands(blocks("console")[2]):
        assert matches(printed, found := package.run(line)), (line, found)

    assert json.loads((package.directory / "held.json").read_text())["answers"][0]["code"] == "Forbidden"
    assert "(Forbidden) Held by a test." in (package.directory / "errors.txt").read_text()
    for name in ("held.json", "errors.txt"):
        (package.directory / name).unlink()


def test_what_is_no_fault_is_refused_by_its_place(package: Package) -> None:
    package.run("localcloud start")
    wrong = {"answers": [{"service": "dns", "path": "("}], "replication": [{"since": "2026-01-01"}], "more": 1}
    refused = package.run(f"echo '{json.dumps(wrong)}' | localcloud faults --hold - 2>&1 && false || true")

    places = ["answers[0].service", "answers[0].path", "replication[0].since", "more"]
    assert [line.split(": ")[:2] for line in refused.splitlines()] == [["held faults", place] for place in places]
    assert package.run("localcloud faults") == HeldFaults().to_json() + "\n"


def test_each_member_of_held_faults_is_in_the_readme() -> None:
    members = rows("| member | meaning |")

    assert [code(row[1]) for row in members] == [field.name for field in fields(HeldFaults)]
    shared = {field.name for field in fields(Match)}
    kinds = {"answers": HeldAnswer, "deliveries": HeldDelivery, "replication": HeldReplication}
    for row in members:
        own = {field.name for field in fields(kinds[code(row[1])])} if code(row[1]) in kinds else set()
        assert own - shared <= set(codes(row[2]))


def test_what_a_fault_can_be_about_is_in_the_readme() -> None:
    assert [code(row[1]) for row in rows("| which requests | meaning |")] == [field.name for field in fields(Match)]
    assert {code(row[1]): codes(row[2]) for row in rows("| service | operations |")} == {
        service: list(operations) for service, operations in OPERATIONS.items()
    }


def test_each_key_of_a_seed_is_in_the_readme() -> None:
    assert [code for row in rows("| key | what it makes |") for code in codes(row[1])] == [
        str(model_field.alias) for model_field in Seed.model_fields.values()
    ]


def test_azidentity_signs_in(package: Package, tmp_path: Path) -> None:
    module = tmp_path / "readme"
    module.mkdir()
    for name in ("go.mod", "go.sum"):
        shutil.copy(PACKAGES / "tests/clients/azure-sdk-for-go" / name, module)
    (module / "main.go").write_text(blocks("go")[0], encoding="utf-8")
    program = install.go(module)
    package.run("localcloud start")

    assert package.run(f"localcloud exec -- {program}") == "signed in\n"


@pytest.mark.clients
def test_the_azure_cli_is_signed_in(package: Package) -> None:
    package.run("localcloud start && localcloud exec -- python example.py")
    [line] = blocks("azurecli")[0].splitlines()

    assert package.run(f"localcloud exec -- {line}", install.azure_cli()) == "hello\n"


def test_a_removed_local_cloud_leaves_nothing(package: Package) -> None:
    package.run("localcloud start")
    line, printed = commands(blocks("console")[0])[-1]

    assert matches(printed, package.run(line))
    assert sorted(path.name for path in package.directory.iterdir()) == ["example.py", "outage.json", "team.yaml"]


def test_an_emulated_plugin_answers_the_engine(package: Package) -> None:
    for name in ("azure-native", "azuread", "kubernetes"):
        plugin = package.root / f"lib/emulated/bin/pulumi-resource-{name}"
        assert package.run(f"timeout 20 {plugin} | head -1").strip().isdigit(), name


def test_the_wheel_has_every_file_of_both_packages(package: Package) -> None:
    for name in ("localcloud", "emulated"):
        source, installed = PACKAGES / name, package.root / "lib" / name
        found = [
            {file.relative_to(folder) for file in folder.rglob("*") if file.is_file() and file.suffix != ".pyc"}
            for folder in (source, installed)
        ]
        assert found[0] == found[1], name


def test_the_package_asks_for_what_it_imports_as_the_lock_has_it() -> None:
    project = PROJECT["project"]
    extras = {name: [Requirement(line) for line in lines] for name, lines in project["optional-dependencies"].items()}
    asked = [Requirement(line) for line in project["dependencies"]]
    lines = re.findall(r"^[^#\s]+", (ROOT / "requirements.in").read_text(encoding="utf-8"), re.MULTILINE)
    locked = {wanted.name: wanted.specifier for wanted in map(Requirement, lines)}

    def modules(*requirements: Requirement) -> set[str]:
        return {_MODULES.get(wanted.name, wanted.name.replace("-", "_")) for wanted in requirements}

    def imported(*folders: str, without: str = "") -> set[str]:
        of_others = {
            module.partition(".")[0]
            for folder in folders
            for file in files(folder)
            if not without or not file.is_relative_to(PACKAGES / without)
            for module in imports(file)
        }
        return of_others - {*sys.stdlib_module_names, "localcloud", "emulated"}

    everything = [*asked, *(wanted for extra in extras.values() for wanted in extra)]
    assert {wanted.name: wanted.specifier for wanted in everything if wanted.name in locked} == {
        wanted.name: locked[wanted.name] for wanted in everything if wanted.name in locked
    }
    assert modules(*asked, *extras["schemas"]) == imported("localcloud", without="localcloud/testing")
    of_testing = imported("localcloud/testing", without="localcloud/testing/plugins.py")
    assert of_testing <= modules(*asked, *extras["testing"])
    assert imported("emulated") <= modules(*asked, *extras["plugins"])


def test_pip_installs_it_with_all_that_it_needs(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    pip = [str(tmp_path / "venv/bin/pip"), "--quiet", "--disable-pip-version-check", "install", str(PACKAGES)]
    subprocess.run(pip, check=True)
    made = Package(tmp_path)
    made.directory.mkdir()

    installed = tmp_path / "venv/bin"
    try:
        assert matches(commands(blocks("console")[0])[1][1], made.run("localcloud start", installed))
    finally:
        made.run("localcloud stop --remove", installed)
